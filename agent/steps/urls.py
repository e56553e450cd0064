"""Addresses as they are written down."""

from urllib.parse import urlsplit, urlunsplit


def bare(url: str) -> str:
    """Return an address without what may be secret in it: user, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition(":")[0]
    if parts.scheme in ("data", "blob", "javascript"):
        return f"{parts.scheme}:"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))[:2000]
