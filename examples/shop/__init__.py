"""A small shop to try jobs on: a catalogue, a login, an order form, and pages that misbehave."""

from examples.shop.app import Orders, build_app

__all__ = ["Orders", "build_app"]
