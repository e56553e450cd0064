"""The registries of a farm that is one process: no persistence, no sharing."""

from farm.stores.memory.cluster_events import MemoryClusterEvents
from farm.stores.memory.commands import MemoryCommandLog
from farm.stores.memory.parcels import MemoryParcels, PostOffice
from farm.stores.memory.registry import MemoryRegistry

__all__ = [
    "MemoryClusterEvents",
    "MemoryCommandLog",
    "MemoryParcels",
    "MemoryRegistry",
    "PostOffice",
]
