"""What each verb does on a page."""
