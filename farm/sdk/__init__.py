"""The Python client of a farm's HTTP API."""

from farm.sdk.client import FarmClient
from farm.sdk.errors import FarmApiError, FarmUnreachableError

__all__ = ["FarmApiError", "FarmClient", "FarmUnreachableError"]
