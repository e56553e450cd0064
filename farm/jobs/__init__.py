"""Durable work above the pool: job files, their life, what they produce."""
