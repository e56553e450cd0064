"""Makes the recorders of an attempt."""

from collections.abc import Callable
from contextlib import nullcontext
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
from farm.protocol.plan import Plan
from farm.protocol.recordings import FILES, Recording, RecordingKind


class Studio:
    """What the recordings of one browser life share."""

    def __init__(self, traces: Path, ffmpeg: str | None) -> None:
        """Take what is needed.

        Args:
            traces: The directory in which the browser's driver gathers traces.
            ffmpeg: What encodes video; without it there is none.
        """
        self._traces = TraceFiles(traces)
        self._ffmpeg = ffmpeg

    def recordings(
        self, tab: Tab, plan: Plan, evidence: Evidence, *, alone: Callable[[], bool]
    ) -> Recordings | None:
        """Return what is to be recorded of an attempt; None is nothing, and costs nothing.

        `alone` tells whether no other attempt runs in the tab's window.
        """
        order = plan.record
        if order is None:
            return None
        workspace, mine = Workspace(), Mine(tab)
        made = [
            self._recorder(kind, plan.attempt_id, order, tab, mine, workspace.path / FILES[kind][0])
            for kind in order.kinds
        ]
        return Recordings(order, evidence, made, alone=alone, clear=workspace.remove)

    def _recorder(
        self, kind: RecordingKind, name: str, order: Recording, tab: Tab, mine: Mine, path: Path
    ) -> Recorder:
        context = tab.page.context
        match kind:
            case RecordingKind.VIDEO:
                return VideoRecorder(tab.page, path, self._ffmpeg)
            case RecordingKind.TRACE:
                return TraceRecorder(context, mine, path, self._traces, name)
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
