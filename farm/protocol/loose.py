"""What a message has that can't be understood as a whole."""

import json
from typing import Any


def members_of(text: str) -> dict[str, Any]:
    """Return its members, none of them checked; none at all where it is no mapping in JSON."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
