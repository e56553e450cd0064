"""Addresses as browsers understand them: by the WHATWG's rules, which are not those of urllib."""

import contextlib

import ada_url

BLANK = "about:blank"


def join(base: str, reference: str) -> str | None:
    """Return a reference made absolute, in the one form browsers give it; None if it is no URL."""
    text = reference.encode("utf-8", "replace").decode("utf-8")
    try:
        return str(ada_url.join_url(base, text))
    except ValueError:
        pass
    with contextlib.suppress(ValueError):
        return str(ada_url.normalize_url(text))  # the base is of a kind that nothing is relative to
    return None


def scheme(url: str) -> str:
    """Return an absolute URL's scheme."""
    return url.partition(":")[0]


def origin(url: str) -> str:
    """Return who answers at a URL: scheme, host and port."""
    return str(ada_url.URL(url).origin)


def without_fragment(url: str) -> str:
    """Return a URL without its fragment."""
    return url.partition("#")[0]


def bare(url: str) -> str:
    """Return a URL as the history keeps it: without user, query and fragment."""
    parts = ada_url.URL(url)
    return f"{parts.protocol}//{parts.host}{parts.pathname}"[:2000]
