"""Makes the recorders of an attempt."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from agent.chromium.recording.logs import ConsoleLog, NetworkLog
from agent.chromium.recording.recorder import Mine, Recorder
from agent.chromium.recording.recordings import Recordings
from agent.chromium.recording.snapshot import SnapshotRecorder
from agent.chromium.recording.traces import HarRecorder, TraceFiles, TraceRecorder
from agent.chromium.recording.video import VideoRecorder
from agent.chromium.tabs import Tab
from agent.chromium.workspace import Workspace
from agent.ports import Evidence
from farm.protocol.recordings import FILES, Recording, RecordingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """What the recordings of a browser have in common."""

    traces: TraceFiles
    ffmpeg: str | None
    """What encodes video; without it there is none."""

    def recordings(
        self,
        order: Recording,
        tab: Tab,
        name: str,
        evidence: Evidence,
        *,
        alone: Callable[[], bool],
    ) -> Recordings:
        """Return what is to be recorded of an attempt.

        Args:
            order: What was asked for.
            tab: Where the attempt runs.
            name: The attempt's, or any that no other has in this browser.
            evidence: Where they are handed in.
            alone: Tells whether no other attempt runs in the tab's window.
        """
        workspace, mine = Workspace(), Mine(tab)
        made = [
            self._recorder(kind, name, order, tab, mine, workspace.path / FILES[kind][0])
            for kind in order.kinds
        ]
        return Recordings(order, evidence, made, alone=alone, clear=workspace.remove)

    def _recorder(
        self, kind: RecordingKind, name: str, order: Recording, tab: Tab, mine: Mine, path: Path
    ) -> Recorder:
        context = tab.page.context
        match kind:
            case RecordingKind.VIDEO:
                return VideoRecorder(tab.page, path, self.ffmpeg)
            case RecordingKind.TRACE:
                return TraceRecorder(context, mine, path, self.traces, name)
            case RecordingKind.HAR:
                return HarRecorder(context, mine, path)
            case RecordingKind.CONSOLE:
                return ConsoleLog(context, mine, path, order.max_bytes)
            case RecordingKind.NETWORK:
                return NetworkLog(context, mine, path, order.max_bytes)
            case RecordingKind.DOM:
                bare = nullcontext if tab.overlay is None else tab.overlay.bare
                return SnapshotRecorder(tab.page, bare, path)
            case _:
                assert_never(kind)
