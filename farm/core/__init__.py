"""Decisions: pure, synchronous, standard library only."""
