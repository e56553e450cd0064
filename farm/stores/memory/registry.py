"""The four registries over one dictionary."""

from farm.stores.memory.connections import MemoryConnections
from farm.stores.memory.contexts import MemoryContexts
from farm.stores.memory.exclusions import MemoryExclusions
from farm.stores.memory.slots import MemorySlots
from farm.stores.memory.windows import MemoryWindows


class MemoryRegistry(
    MemoryConnections, MemoryContexts, MemoryWindows, MemorySlots, MemoryExclusions
):
    """All registry ports (`Registry`), for one process."""
