"""Names and media types of files, made safe: both come from pages and downloads (P18)."""

import re
import unicodedata

MAX_CHARACTERS = 120
MAX_BYTES = 200
DEFAULT_MEDIA_TYPE = "application/octet-stream"
MEDIA_TYPES = frozenset(
    {
        "application/gzip",
        "application/json",
        "application/pdf",
        "application/xml",
        "application/zip",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/csv",
        "text/html",
        "text/plain",
        "video/mp4",
        "video/webm",
        DEFAULT_MEDIA_TYPE,
    }
)
"""What a file may be kept as. Nothing here is ever shown by the farm, only handed out."""

_UNSAFE = re.compile(r'[<>:"|?*]')
_SPACES = re.compile(r"\s+")
_RESERVED = re.compile(r"^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories nobody can see: controls, direction marks, surrogates, unassigned."""


def safe_name(name: str) -> str:
    """Turn any text into one path segment that every file system and terminal takes as it is.

    The last segment counts. Never empty, hidden, `.` or `..`; at most 120 characters and 200
    bytes, with the ending kept.
    """
    text = unicodedata.normalize("NFC", name)
    text = re.split(r"[/\\]", text)[-1]
    text = "".join(_seen(c) for c in text)
    text = _SPACES.sub(" ", text)
    text = _UNSAFE.sub("_", text).strip(" ").lstrip(".").strip(". ")
    if _RESERVED.match(text):
        text = f"_{text}"
    return _shortened(text) or "artifact"


def _seen(character: str) -> str:
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in _UNSEEN else character


def _shortened(text: str) -> str:
    stem, dot, ending = text.rpartition(".")
    if not dot or not stem or len(ending.encode()) > MAX_BYTES // 4:
        stem, ending = text, ""
    tail = f".{ending}" if ending else ""
    stem = stem[: MAX_CHARACTERS - len(tail)]
    room = MAX_BYTES - len(tail.encode())
    stem = stem.encode()[:room].decode(errors="ignore").rstrip(". ")
    return stem + tail


def media_type(content_type: str | None) -> str:
    """Return the media type a file is kept as: one of ours, or plain bytes."""
    named = (content_type or "").partition(";")[0].strip().lower()
    return named if named in MEDIA_TYPES else DEFAULT_MEDIA_TYPE
