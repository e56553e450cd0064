"""Web tasks that nobody here wrote, solved by jobs; the page's own reward says whether they are."""

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.asking import Done
from tests.e2e.conftest import RunningFarm, Site
from tests.e2e.miniwob import choosing, clicking, dragging, entering, messages, shapes
from tests.e2e.miniwob.episodes import Solver, play
from tests.e2e.miniwob.seeds import SEEDS, with_seeds

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_KINDS = (choosing, clicking, dragging, entering, messages, shapes)
TASKS: dict[str, Solver] = {task: by for kind in _KINDS for task, by in kind.TASKS.items()}
_AT_ONCE = 6
_WITHIN_S = 600

Outcome = Done | Exception


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tasks are; the package itself is not imported, it wants a great deal more."""
    found = find_spec("miniwob")
    if found is not None and found.submodule_search_locations:
        html = Path(found.submodule_search_locations[0]) / "html"
        return with_seeds(html, tmp_path_factory.mktemp("miniwob"))
    if os.environ.get("CI"):
        pytest.fail("the Python package miniwob is missing")
    pytest.skip("the Python package miniwob is missing")


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, farm: RunningFarm, site: Site, pages: Path
) -> dict[tuple[str, int], Outcome]:
    """Play all episodes that are asked for, several at once."""
    chosen = {item.nodeid.rpartition("[")[2] for item in request.session.items}
    every = [(task, seed) for task in TASKS for seed in SEEDS]
    asked = [one for one in every if "{}-{}]".format(*one) in chosen]
    return asyncio.run(play_all(farm, site(pages), asked))


async def play_all(
    farm: RunningFarm, base: str, asked: list[tuple[str, int]]
) -> dict[tuple[str, int], Outcome]:
    found: dict[tuple[str, int], Outcome] = {}
    room = asyncio.Semaphore(_AT_ONCE)
    async with asyncio.timeout(_WITHIN_S), farm.client() as client:

        async def one(task: str, seed: int) -> None:
            async with room:
                try:
                    found[task, seed] = await play(client, base, task, seed, TASKS[task])
                except Exception as error:  # noqa: BLE001 - the test of this episode raises it
                    found[task, seed] = error

        async with asyncio.TaskGroup() as group:
            for task, seed in asked:
                group.create_task(one(task, seed), name=f"{task} {seed}")
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", sorted(TASKS))
def test_a_task_is_rewarded_in_full(
    task: str, seed: int, outcomes: dict[tuple[str, int], Outcome]
) -> None:
    outcome = outcomes[task, seed]
    if isinstance(outcome, Exception):
        raise outcome
    assert outcome.job.state == "succeeded", outcome.story
    assert outcome.items == [{"reward": pytest.approx(1)}]


def test_there_are_tasks_enough() -> None:
    assert len(TASKS) >= 80
