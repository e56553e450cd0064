"""What the farm draws in the page of a headed browser. Stands alone; the page is hostile."""
