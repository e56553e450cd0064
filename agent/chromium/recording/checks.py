"""Whether a recording is whole, and nothing in it is of another attempt. All of it reads files."""

import json
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path

from agent.chromium.recording.recorder import RecordingFailed

_EBML = bytes.fromhex("1a45dfa3")
"""What Matroska files, and so WebM, begin with."""


def narrow_trace(path: Path, strangers: Collection[str]) -> None:
    """Take what is of other pages of the window out of a trace.

    Each of its lines names the page it is about, by a name that is found nowhere else.
    """
    narrow = path.with_name(f"{path.name}.narrow")
    names = [name.encode() for name in strangers]
    try:
        with (
            zipfile.ZipFile(path) as whole,
            zipfile.ZipFile(narrow, "w", zipfile.ZIP_DEFLATED) as part,
        ):
            kept = b""
            for member in whole.namelist():
                if member.endswith((".trace", ".network")):
                    lines = whole.read(member).splitlines(keepends=True)
                    text = b"".join(line for line in lines if not _has_any(line, names))
                    part.writestr(member, text)
                    kept += text
            for member in _others(whole):
                if member.rpartition("/")[2].encode() in kept or "/" not in member:
                    part.writestr(member, whole.read(member))
    except (OSError, zipfile.BadZipFile) as error:
        raise RecordingFailed(f"the trace can't be read: {error}") from error
    narrow.replace(path)


def _others(archive: zipfile.ZipFile) -> Iterator[str]:
    return (name for name in archive.namelist() if not name.endswith((".trace", ".network")))


def _has_any(line: bytes, names: Collection[bytes]) -> bool:
    return any(name in line for name in names)


def check_trace(path: Path) -> None:
    """See that Playwright's viewer finds in it what it needs.

    Raises:
        RecordingFailed: If not.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
            if broken is not None:
                raise RecordingFailed(f"the trace is broken at {broken}")
            with archive.open("trace.trace") as lines:
                first = json.loads(lines.readline())
            archive.getinfo("trace.network")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise RecordingFailed(f"the trace is not whole: {error}") from error
    if first.get("type") != "context-options":
        raise RecordingFailed("the trace does not begin as one")


def narrow_har(path: Path, strangers: Collection[str]) -> None:
    """Take what is of other pages of the window out of a HAR, and see that it is one.

    Raises:
        RecordingFailed: If it is none.
    """
    try:
        har = json.loads(path.read_bytes())
        log = har["log"]
        if log["version"] != "1.2":
            raise RecordingFailed(f"the HAR has version {log['version']}")
        log["pages"] = [page for page in log.get("pages", ()) if page["id"] not in strangers]
        log["entries"] = [one for one in log["entries"] if one.get("pageref") not in strangers]
        if strangers:
            path.write_text(json.dumps(har))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingFailed(f"the HAR is not whole: {error}") from error


def check_mhtml(path: Path) -> None:
    """See that a snapshot ends where its first part says that it ends.

    Raises:
        RecordingFailed: If it is cut off, or none.
    """
    content = path.read_bytes()
    head, _, _ = content.partition(b"\r\n\r\n")
    _, found, rest = head.partition(b'boundary="')
    boundary = rest.partition(b'"')[0]
    if not found or not content.rstrip().endswith(b"--" + boundary + b"--"):
        raise RecordingFailed("the snapshot is not whole")


def check_video(path: Path) -> None:
    """See that there is a WebM file.

    Raises:
        RecordingFailed: If there is none.
    """
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except OSError as error:
        raise RecordingFailed(f"the video is not there: {error.strerror}") from error
    if begins != _EBML:
        raise RecordingFailed("the video is not whole")
