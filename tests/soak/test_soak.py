"""The short form of the soak: `make soak` runs the long one."""

from pathlib import Path

import pytest

from tests.soak.bounds import exceeded
from tests.soak.soaking import Sample, Soak

SEED = 7


@pytest.mark.browser
@pytest.mark.slow
async def test_sixty_jobs_and_four_kills_lose_nothing_and_leave_nothing(
    tmp_path: Path, chromium_executable: str
) -> None:
    said: list[str] = []
    soak = Soak(seed=SEED, jobs=60, kills=4, say=said.append)
    await soak.run(tmp_path)
    story = "\n".join(said)
    assert soak.ends == {"succeeded": 60}, story
    assert soak.killed == {"renderer": 1, "driver": 1, "browser": 1, "agent": 1}
    assert exceeded(soak.samples[0], soak.samples[-1]) == [], story


def test_what_grows_beyond_its_bound_is_named() -> None:
    first = Sample(jobs=1, pss_mb=500, processes=9, zombies=0, descriptors=300, files=9)
    last = Sample(jobs=9, pss_mb=700, processes=12, zombies=1, descriptors=361, files=50)
    assert exceeded(first, first) == []
    assert [text.partition(":")[0] for text in exceeded(first, last)] == [
        "PSS",
        "processes",
        "zombies",
        "descriptors",
        "files",
    ]
