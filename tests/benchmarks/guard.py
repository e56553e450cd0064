"""`make bench`: for how long people's input passes while automation acts in a guarded tab.

One headed browser; in a page of one button and one field each kind of act is done again and again,
and it is timed from the moment the guard is lifted until it is set again. Prints a table and
writes `build/guard-bench.json`.
"""

import argparse
import asyncio
import json
import os
import statistics
from pathlib import Path
from time import perf_counter
from typing import Any

from agent.telemetry import configure_logging
from agent.xvfb import Xvfb
from tests.agent.chromium.rig import Rig

_PAGE = "data:text/html,<button>x</button><input>"
_ACTS: dict[str, dict[str, Any]] = {
    "click": {"type": "click", "selector": "button"},
    "key": {"type": "press", "selector": "input", "key": "a"},
    "twenty characters": {"type": "type", "selector": "input", "text": "abcdefghij" * 2},
}


class Leaks:
    """Hears when the guard of a tab is lifted and set again."""

    def __init__(self, session: Any) -> None:
        self._session, self._send = session, session.send
        self._since: float | None = None
        self.lasted_s: list[float] = []

    def listen(self) -> None:
        """Note every change from now on."""
        self._session.send = self._noted

    async def _noted(self, method: str, params: dict[str, Any] | None = None) -> Any:
        lifts = method == "Input.setIgnoreInputEvents" and params == {"ignore": False}
        if lifts:
            self._since = perf_counter()
        answer = await self._send(method, params)
        if method == "Input.setIgnoreInputEvents" and not lifts and self._since is not None:
            self.lasted_s.append(perf_counter() - self._since)
            self._since = None
        return answer


async def run(number: int) -> list[dict[str, Any]]:
    """Do each kind of act so many times."""
    screen = Xvfb()
    env = {**os.environ, "DISPLAY": await screen.start(os.environ)}
    rows = []
    try:
        async with Rig(headless=False, guard=True, env=env) as rig:
            for name, act in _ACTS.items():
                await rig.window()
                control = rig.browser._windows["w"].tabs["c"].control
                (session,) = control._sessions
                leaks = Leaks(session)
                leaks.listen()
                went = {"type": "goto", "url": _PAGE}
                outcome = await rig.run(went, *[act | {"effect": "none"}] * number)
                if outcome.outcome != "succeeded" or len(leaks.lasted_s) < number:
                    raise RuntimeError(f"{name}: {outcome}, lifted {len(leaks.lasted_s)} times")
                lasted = sorted(1000 * seconds for seconds in leaks.lasted_s)
                rows.append(
                    {
                        "act": name,
                        "times": len(lasted),
                        "p50_ms": round(statistics.median(lasted), 1),
                        "p95_ms": round(lasted[int(0.95 * len(lasted))], 1),
                    }
                )
                await rig.browser.close_window("w")
    finally:
        await screen.stop()
    return rows


def main() -> None:
    """Read the arguments, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acts", type=int, default=40, help="of each kind")
    parser.add_argument("--out", type=Path, default=Path("build/guard-bench.json"))
    given = parser.parse_args()
    configure_logging(level="error")
    rows = asyncio.run(run(given.acts))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"{'act':<20}{'times':>8}{'p50 ms':>10}{'p95 ms':>10}")
    for row in rows:
        print(f"{row['act']:<20}{row['times']:>8}{row['p50_ms']:>10}{row['p95_ms']:>10}")


if __name__ == "__main__":
    main()
