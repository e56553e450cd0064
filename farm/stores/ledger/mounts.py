"""Tells whether a path is on a network file system, where SQLite's locks can't be trusted."""

from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "lustre", "ncpfs"}
    | {"nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs"}
    | {"fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.gcsfuse"}
)


def network_file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the network file system `path` is on, or None.

    `mounts` is in the form of Linux's mountinfo; where there is none, nothing is known.
    """
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    target = path.resolve()
    longest, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = Path(_unescape(before.split(" ")[4]))
        # The last of several mounts on one point is the one that is seen.
        if target.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), after.split(" ")[0]
    return kind if kind in _NETWORK else None


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
