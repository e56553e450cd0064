"""Examples: a sample shop to work on, jobs for it and for the public web, and a demonstration."""
