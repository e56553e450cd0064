"""A farm that runs, used by its command line and looked at by a browser that is not the farm's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from farm.cli.exits import ExitCode
from tests.e2e.conftest import RunningFarm, until
from tests.e2e.processes import ROOT, family

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Run = subprocess.CompletedProcess[str]


class Cli:
    """`farm …` against one farm, each command a process of its own."""

    def __init__(self, farm: RunningFarm, cwd: Path) -> None:
        self._farm = farm
        self._cwd = cwd

    def __call__(self, *arguments: str, code: ExitCode = ExitCode.SUCCEEDED) -> Run:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FARM_", "AGENT_"))}
        where = {"FARM_DATA_DIR": str(self._farm.data_dir), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-m", "farm.cli", *arguments],
            cwd=self._cwd,
            env={**kept, **where},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    def json(self, *arguments: str, code: ExitCode = ExitCode.SUCCEEDED) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)


@pytest.fixture
def cli(farm: RunningFarm, tmp_path: Path) -> Cli:
    return Cli(farm, tmp_path)


def order(cli: Cli, shop: str, customer: str) -> dict[str, Any]:
    """Order by the job file that comes with the shop; return the job, at rest."""
    file = str(ROOT / "examples" / "shop" / "order.yaml")
    params = ("-p", f"base={shop}", "-p", f"customer={customer}", "-p", "quantity=3")
    job: dict[str, Any] = cli.json("jobs", "submit", file, "--watch", *params)
    return job


def orders(page: Page, shop: str) -> int:
    """Ask the shop how many orders it has, by the observer's own browser."""
    page.goto(f"{shop}/order/count")
    return int(json.loads(page.inner_text("body"))["count"])


def waiting(cli: Cli, shop: str, tmp_path: Path) -> str:
    """Submit a job that would run for minutes, and return its id once it is in a tab."""
    file = tmp_path / "waits.json"
    steps = [{"goto": f"{shop}/"}, {"wait": "5m"}]
    file.write_text(json.dumps({"name": "waits", "steps": steps}))
    job_id: str = cli.json("jobs", "submit", str(file))["id"]

    def runs() -> bool:
        progress = cli.json("jobs", "show", job_id)["progress"]
        return progress is not None and progress["step_index"] == 1

    until(runs, lambda: str(cli("jobs", "show", job_id).stdout))
    return job_id


def test_an_order_placed_by_a_job_is_there_once_for_another_visitor(
    cli: Cli, shop: str, page: Page
) -> None:
    before = orders(page, shop)
    job = order(cli, shop, "Ada Byron")
    assert job["state"] == "succeeded"
    assert orders(page, shop) == before + 1

    receipt = json.loads(cli("jobs", "items", job["id"], "--json").stdout)
    page.goto(f"{shop}/thanks?order={receipt['number']}")
    expect(page.locator("#thanks")).to_have_text(receipt["message"])
    expect(page.locator("#thanks")).to_contain_text("Ada Byron")
    expect(page.locator("#count")).to_have_text(str(before + 1))

    effects = cli.json("jobs", "show", job["id"])["effects"]
    [declared] = [e for e in effects if e["effect"] == "once" and not e["observed"]]
    assert declared["done_at"] is not None


def test_what_a_job_did_to_its_window_is_not_there_for_the_next_one(
    cli: Cli, shop: str, page: Page, tmp_path: Path
) -> None:
    order(cli, shop, "Grace Hopper")
    file = tmp_path / "account.json"
    where = {"extract": {"fields": {"url": {"value": "${page.url}"}}}}
    file.write_text(json.dumps({"name": "account", "steps": [{"goto": f"{shop}/account"}, where]}))
    job_id = cli("jobs", "submit", str(file), "--watch").stdout.strip()
    page.goto(f"{shop}/account")
    assert json.loads(cli("jobs", "items", job_id, "--json").stdout) == {"url": page.url}
    assert page.url == f"{shop}/login"


def test_the_files_of_a_job_are_listed_and_downloaded(cli: Cli, shop: str, tmp_path: Path) -> None:
    job = order(cli, shop, "Mary Somerville")
    listed = cli.json("jobs", "artifacts", job["id"])
    assert {file["name"] for file in listed} == {"receipt.png", "receipt.pdf"}
    cli("jobs", "artifacts", job["id"], "-o", "files")
    for file in listed:
        assert (tmp_path / "files" / file["name"]).stat().st_size == file["size"]
    assert (tmp_path / "files" / "receipt.pdf").read_bytes().startswith(b"%PDF")


def test_a_job_is_seen_in_its_tab_and_stops_when_it_is_cancelled(
    cli: Cli, shop: str, tmp_path: Path
) -> None:
    job_id = waiting(cli, shop, tmp_path)
    assert job_id in [job["id"] for job in cli.json("jobs", "list", "--state", "running")]
    lent = [w for w in cli.json("workers") if w["assignment"] is not None]
    [worker] = [w for w in lent if w["assignment"]["job_id"] == job_id]
    [window] = [w for w in cli.json("windows") if worker["context_id"] in w["contexts"]]
    assert (window["client_id"], window["identity"]) == (worker["client_id"], None)
    [agent] = cli.json("agents")
    assert (agent["present"], agent["used_slots"]) == (True, len(lent))

    cli("jobs", "cancel", job_id)
    ended = cli.json("jobs", "watch", job_id, code=ExitCode.CANCELLED)
    assert ended["state"] == "cancelled"
    # The tab is given back, and closed because its window belonged to nobody else.
    gone = worker["context_id"]
    until(lambda: gone not in [w["context_id"] for w in cli.json("workers")], lambda: gone)


@pytest.mark.parametrize(
    "command",
    [("jobs", "list"), ("agents",), ("workers",), ("windows",)],
    ids=" ".join,
)
def test_what_is_a_table_for_people_is_a_list_for_programs(
    cli: Cli, command: tuple[str, ...]
) -> None:
    assert isinstance(cli.json(*command), list)
    assert cli(*command).stdout.splitlines()


def test_no_process_of_the_browser_knows_a_token(
    cli: Cli, farm: RunningFarm, shop: str, tmp_path: Path
) -> None:
    job_id = waiting(cli, shop, tmp_path)
    browsers = [one for one in family(farm.pid) if "chrom" in one.name()]
    assert len(browsers) > 1
    for one in browsers:
        proc = Path("/proc") / str(one.pid)
        shown = (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes()
        for secret in (farm.token.encode(), b"tf_", b"TOKEN", b"FARM_", b"AGENT_"):
            assert secret not in shown
    cli("jobs", "cancel", job_id)


def test_a_job_that_fails_ends_its_watch_with_a_code_of_its_own(
    cli: Cli, shop: str, tmp_path: Path
) -> None:
    file = tmp_path / "missing.json"
    steps = [{"goto": f"{shop}/"}, {"click": {"selector": "#nowhere", "timeout": "2s"}}]
    file.write_text(json.dumps({"name": "missing", "steps": steps}))
    job = cli.json("jobs", "submit", str(file), "--watch", code=ExitCode.FAILED)
    assert (job["state"], job["failure"]["reason"]) == ("failed", "selector_not_found")
    kept = {file["name"] for file in cli.json("jobs", "artifacts", job["id"])}
    assert any(name.endswith(".png") for name in kept)
    assert any(name.endswith(".html") for name in kept)
