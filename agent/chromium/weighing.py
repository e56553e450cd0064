"""How much memory a browser has: the proportional set size of its processes, as Linux counts it."""

from dataclasses import dataclass
from pathlib import Path

from agent.chromium import processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """In MB, 1024 x 1024 bytes each. Memory that processes share is counted once."""

    browser_mb: float
    """All processes together."""
    renderer_mb: float
    """The heaviest renderer."""


def weigh(groups: set[int]) -> Weight:
    """Weigh the processes of these groups; it takes some milliseconds for each."""
    weights = {p.pid: _pss_mb(p.pid) for p in processes.table() if p.group in groups}
    renderers = [mb for pid, mb in weights.items() if _is_renderer(pid)]
    return Weight(browser_mb=sum(weights.values()), renderer_mb=max(renderers, default=0.0))


def _pss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0  # it has ended meanwhile
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _is_renderer(pid: int) -> bool:
    # A renderer rewrites its command line into one text.
    return any("--type=renderer" in argument for argument in processes.command_line(pid))
