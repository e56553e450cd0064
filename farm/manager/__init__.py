"""The pool: lends contexts to tasks, one assignment at a time."""

from farm.core.commands import Answer, Answers, Effect
from farm.core.decide import Candidate
from farm.core.placement import BrowserPlacement, Fill, Mode
from farm.manager.awaited import SentCommand
from farm.manager.delivery import AppNode
from farm.manager.evidence import CommandResult
from farm.manager.handle import ContextHandle
from farm.manager.manager import Acquired, NotAcquired, WorkerContextManager
from farm.manager.misses import Miss
from farm.manager.queues import DeclaredQueues
from farm.manager.relay import Relay
from farm.manager.slots import SlotReservation, WorkerSlots
from farm.manager.strategies import (
    CompositeStrategy,
    LeastBusyStrategy,
    RoundRobinStrategy,
    ScoringStrategy,
    Strategy,
)

__all__ = [
    "Acquired",
    "Answer",
    "Answers",
    "AppNode",
    "BrowserPlacement",
    "Candidate",
    "CommandResult",
    "CompositeStrategy",
    "ContextHandle",
    "DeclaredQueues",
    "Effect",
    "Fill",
    "LeastBusyStrategy",
    "Miss",
    "Mode",
    "NotAcquired",
    "Relay",
    "RoundRobinStrategy",
    "ScoringStrategy",
    "SentCommand",
    "SlotReservation",
    "Strategy",
    "WorkerContextManager",
    "WorkerSlots",
]
