"""Episodes of MiniWoB tasks, played by jobs.

The same seed gives the same task again. So a task is first looked at by one job, or several, each
in an episode of its own; what these find decides the steps of the last job, which solves it. Only
the page says whether it did: by the reward of the episode.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from farm.sdk import FarmClient
from tests.e2e.asking import Done, Item, run_job

Step = dict[str, Any]

_COVER = "#sync-task-cover"
"""What lies over a task until a click begins the episode."""
_REWARD = "WOB_DONE_GLOBAL ? WOB_RAW_REWARD_GLOBAL : null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Ask for a look at the task: read what it wants, do these steps, then take these records."""

    extract: dict[str, Any] | None = None
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look has found."""

    utterance: str
    bold: list[str]
    """The words of the utterance that stand out."""
    items: list[Item]


Play = Generator[Look, Seen, list[Step]]
"""Asks for looks and returns the steps that solve the task."""
Solver = Callable[[], Play]


async def play(client: FarmClient, base: str, task: str, seed: int, solver: Solver) -> Done:
    """Play one episode; the last job has one record, with the `reward`."""
    moves = solver()
    steps: list[Step] | None = None
    seen: Seen | None = None
    while steps is None:
        try:
            # What a generator returns comes as the end of its iteration.
            look = next(moves) if seen is None else moves.send(seen)
        except StopIteration as solved:
            steps = solved.value
        else:
            seen = await _look(client, base, task, seed, look)
    return await run_job(client, _job(base, task, seed, [*steps, *_verdict()]))


async def _look(client: FarmClient, base: str, task: str, seed: int, look: Look) -> Seen:
    words = {"utterance": "#query", "bold": {"selector": "#query .bold, #query b", "all": True}}
    steps: list[Step] = [{"extract": {"fields": words}}, *look.steps]
    if look.extract is not None:
        steps.append({"extract": look.extract})
    done = await run_job(client, _job(base, task, seed, steps))
    assert done.job.state == "succeeded", done.story
    said, *items = done.items
    return Seen(utterance=said["utterance"], bold=said["bold"], items=items)


def _verdict() -> list[Step]:
    ended = {"selector": "#episode-id", "text": "1", "message": "the episode did not end"}
    reward = {"value": "${vars.reward}", "type": "number"}
    return [
        {"assert": ended},
        {"eval": {"script": _REWARD, "var": "reward", "effect": "none"}},
        {"extract": {"fields": {"reward": reward}}},
    ]


def _job(base: str, task: str, seed: int, steps: list[Step]) -> dict[str, Any]:
    return {
        "name": f"{task} {seed}",
        "timeout": {"job": "60s", "navigation": "20s", "step": "10s"},
        "effects": "idempotent",
        "browser": {"locale": "en-US", "viewport": {"width": 600, "height": 600}},
        "steps": [
            {"goto": f"{base}/miniwob/{task}.html?seed={seed}"},
            {"click": _COVER},
            *steps,
        ],
    }
