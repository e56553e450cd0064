"""What is recorded of an attempt on request: begun before its first step, handed in before its end.

A recording that fails is said to have failed, and fails nothing else.
"""

from agent.chromium.recording.recordings import Recordings
from agent.chromium.recording.studio import Studio

__all__ = ["Recordings", "Studio"]
