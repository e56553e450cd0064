"""How much more there may be after a soak than before its first kill."""

from tests.soak.soaking import Sample

PSS_TIMES, PSS_MB = 1.15, 60
PROCESSES = 2
DESCRIPTORS = 60
"""A browser opens and closes its own as it likes; a leak of one a job would be hundreds."""
FILES = 40


def exceeded(first: Sample, last: Sample) -> list[str]:
    """Return what has grown too much, in words."""
    bounds = {
        "PSS": (last.pss_mb, first.pss_mb * PSS_TIMES + PSS_MB),
        "processes": (last.processes, first.processes + PROCESSES),
        "zombies": (last.zombies, 0),
        "descriptors": (last.descriptors, first.descriptors + DESCRIPTORS),
        "files": (last.files, first.files + FILES),
    }
    return [
        f"{name}: {there:g}, and at most {most:g} would be flat"
        for name, (there, most) in bounds.items()
        if there > most
    ]
