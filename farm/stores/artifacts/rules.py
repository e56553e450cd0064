"""What holds wherever files are kept: where each one lies, and how large it may be."""

import hashlib
import re
from uuid import uuid4

from farm.errors import NotFoundError, TooLargeError

MARK = ".ledger"
"""What has the number that tells one store from any other."""

_FOLDER = re.compile(r"[A-Za-z0-9_-]{1,128}")
_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}/[0-9a-f]{32}")


def new_key(job_id: str) -> str:
    """Return `<folder>/<name>`: a folder of the job's and a name that no other file has."""
    return f"{folder_of(job_id)}/{uuid4().hex}"


def is_key(key: str) -> bool:
    """Tell whether `new_key` makes such keys."""
    return _KEY.fullmatch(key) is not None


def require_key(key: str) -> None:
    """Raise NotFoundError where it is none that `new_key` makes, so that none leads elsewhere."""
    if not is_key(key):
        raise NotFoundError(f"no artifact {key!r}")


def require_size(size: int, max_bytes: int) -> None:
    """Raise TooLargeError where a file is larger than allowed."""
    if size > max_bytes:
        raise TooLargeError(f"an artifact may have at most {max_bytes} bytes", max_bytes=max_bytes)


def folder_of(job_id: str) -> str:
    """Name a job's folder: its id where that is one safe segment, else a hash of it."""
    if _FOLDER.fullmatch(job_id):
        return job_id
    return hashlib.sha256(job_id.encode(errors="surrogatepass")).hexdigest()
