"""How messages lie in the frames of a data channel's WebSocket, whatever it is for.

A text frame is one JSON object, told apart by `op`. A binary frame is one such object with bytes
beside it: its length (4 bytes, the highest first), the object, the bytes.
"""

from __future__ import annotations

_LENGTH_BYTES = 4
MAX_HEADER_BYTES = 16 * 1024


class FrameError(ValueError):
    """A binary frame is none of ours; the text says what is wrong with it."""


def pack(header: str, payload: bytes) -> bytes:
    """Return a binary frame of a JSON text and the bytes beside it."""
    head = header.encode()
    if len(head) > MAX_HEADER_BYTES:
        raise FrameError(f"a header has at most {MAX_HEADER_BYTES} bytes, not {len(head)}")
    return b"".join((len(head).to_bytes(_LENGTH_BYTES, "big"), head, payload))


def unpack(frame: bytes) -> tuple[bytes, memoryview]:
    """Return a binary frame's JSON text, not yet parsed, and the bytes beside it, not copied.

    Raises:
        FrameError: If it is shorter than it says, or its header is too long.
    """
    length = int.from_bytes(frame[:_LENGTH_BYTES], "big")
    if len(frame) < _LENGTH_BYTES + length:
        raise FrameError("the frame is shorter than its header says")
    if length > MAX_HEADER_BYTES:
        raise FrameError(f"a header has at most {MAX_HEADER_BYTES} bytes, not {length}")
    return frame[_LENGTH_BYTES : _LENGTH_BYTES + length], memoryview(frame)[
        _LENGTH_BYTES + length :
    ]
