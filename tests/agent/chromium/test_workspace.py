"""The places of browser lives on the disk, and whether there is room for more."""

from pathlib import Path

from agent.chromium.workspace import Room, Workspace, sweep


def test_what_a_dead_agent_has_left_is_swept_and_what_a_living_one_has_is_not(
    tmp_path: Path,
) -> None:
    living, dead = Workspace(tmp_path), Workspace(tmp_path)
    (dead.home / "file").write_text("left")
    copy = dead.path.with_name(f"{dead.path.name}-copy")
    dead.path.rename(copy)  # its lock is on the file, which the copy below does not have
    (dead.path / "home").mkdir(parents=True)
    (dead.path / "lock").touch()
    assert sweep(tmp_path) == [dead.path]
    assert living.path.exists()
    living.remove()
    dead.remove()


def test_a_disk_with_room_is_not_short(tmp_path: Path) -> None:
    assert Room(tmp_path, least_bytes=1, least_inodes=0).short() is None


def test_what_is_short_is_said(tmp_path: Path) -> None:
    short = Room(tmp_path, least_bytes=1 << 60, least_inodes=0).short()
    assert short is not None
    assert "bytes are free" in short


def test_inodes_count_as_bytes_do(tmp_path: Path) -> None:
    short = Room(tmp_path, least_bytes=0, least_inodes=1 << 60).short()
    assert short is None or "inodes are free" in short


def test_a_disk_that_can_not_be_asked_is_not_short(tmp_path: Path) -> None:
    assert Room(tmp_path / "none", least_bytes=1 << 60, least_inodes=0).short() is None
