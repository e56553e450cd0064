"""What is remembered: ports, and what implements them."""
