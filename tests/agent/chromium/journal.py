"""Evidence that stays here, and plans in few words."""

from pathlib import Path
from typing import Any

from farm.protocol.messages import AttemptEvent, Notice, StepStarted
from farm.protocol.plan import Plan
from farm.protocol.recordings import RecordingKind


class Journal:
    """An `Evidence` that keeps everything and is never slow."""

    def __init__(self) -> None:
        self.events: list[AttemptEvent] = []
        self.files: list[str] = []

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
        return name

    def notices(self, code: str) -> list[str]:
        return [e.detail for e in self.events if isinstance(e, Notice) and e.code == code]

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
