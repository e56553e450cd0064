"""How long a test waits for what must come."""

PATIENCE_S = 45.0
"""Only a test that fails takes as long; a busy machine may need some of it."""
