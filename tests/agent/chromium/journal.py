"""Evidence that stays here, and plans in few words."""

from pathlib import Path
from typing import Any

from agent.ports import UploadRefused
from farm.protocol.messages import AttemptEvent, Notice, Recorded, StepStarted
from farm.protocol.plan import Plan
from farm.protocol.recordings import RecordingKind


class Journal:
    """An `Evidence` that keeps everything and is never slow."""

    def __init__(self) -> None:
        self.events: list[AttemptEvent] = []
        self.files: list[str] = []
        self.sizes: dict[str, int] = {}
        """Of the files that were handed in from the disk."""
        self.store: dict[str, int] = {}
        """What there is to fetch: sizes by reference."""
        self.recordings: dict[RecordingKind, bytes] = {}

    async def note(self, event: AttemptEvent) -> None:
        self.events.append(event)

    async def settle(self, event: AttemptEvent) -> None:
        self.events.append(event)

    async def upload(
        self,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        self.files.append(name)
        if isinstance(content, Path):
            self.sizes[name] = content.stat().st_size
        if recording is not None and isinstance(content, Path):
            self.recordings[recording] = content.read_bytes()
        return name

    async def fetch(self, reference: str, into: Path, max_bytes: int) -> Path:
        if reference not in self.store:
            raise UploadRefused("value_invalid", "no such file")
        if self.store[reference] > max_bytes:
            raise UploadRefused("artifact_too_large", "too large")
        into.mkdir()
        path = into / reference.partition("/")[2]
        with path.open("wb") as file:
            file.truncate(self.store[reference])
        return path

    def notices(self, code: str) -> list[str]:
        return [e.detail for e in self.events if isinstance(e, Notice) and e.code == code]

    def ends(self) -> dict[str, tuple[str, str]]:
        """How each recording ended, and why."""
        said = [e for e in self.events if isinstance(e, Recorded)]
        assert len({e.recording for e in said}) == len(said), "each ends once"
        return {e.recording.value: (e.state, e.detail) for e in said}

    def begun(self, verb: str) -> bool:
        return any(isinstance(e, StepStarted) and e.verb == verb for e in self.events)


def plan(*steps: dict[str, Any], **keys: Any) -> Plan:
    return Plan.model_validate(
        {"job_id": "j", "attempt_id": "a", "name": "test", "steps": steps, **keys}
    )


def goto(url: str) -> dict[str, Any]:
    return {"type": "goto", "url": url}


def script(text: str, **keys: Any) -> dict[str, Any]:
    return {"type": "eval", "script": text, **keys}
