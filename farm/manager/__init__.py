"""The pool: lends contexts to tasks, one assignment at a time."""

from farm.manager.handle import ContextHandle
from farm.manager.manager import Acquired, NotAcquired, WorkerContextManager

__all__ = ["Acquired", "ContextHandle", "NotAcquired", "WorkerContextManager"]
