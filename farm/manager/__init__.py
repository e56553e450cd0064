"""The pool: lends contexts to tasks, one assignment at a time."""

from farm.core.decide import Candidate
from farm.core.placement import BrowserPlacement, Fill, Mode
from farm.manager.handle import ContextHandle
from farm.manager.manager import Acquired, NotAcquired, WorkerContextManager
from farm.manager.misses import Miss
from farm.manager.strategies import (
    CompositeStrategy,
    LeastBusyStrategy,
    RoundRobinStrategy,
    ScoringStrategy,
    Strategy,
)

__all__ = [
    "Acquired",
    "BrowserPlacement",
    "Candidate",
    "CompositeStrategy",
    "ContextHandle",
    "Fill",
    "LeastBusyStrategy",
    "Miss",
    "Mode",
    "NotAcquired",
    "RoundRobinStrategy",
    "ScoringStrategy",
    "Strategy",
    "WorkerContextManager",
]
