"""What an agent should do next, as a state machine without I/O.

Events go in through `Machine.handle`; instructions come out. Whoever carries an instruction out
(`agent.runner`) reports how it went as another event. Nothing here awaits, sleeps or reads a
clock; `now` is an argument, on any clock that never jumps.
"""

from agent.machine.events import Event, Instruction
from agent.machine.machine import Machine, Profile
from agent.machine.recycling import Limits

__all__ = ["Event", "Instruction", "Limits", "Machine", "Profile"]
