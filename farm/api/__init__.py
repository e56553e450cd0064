"""The HTTP and WebSocket edges: everything that comes in passes here."""
