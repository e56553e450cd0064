import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from examples.shop import Orders, build_app
from farm.cli.exits import ExitCode
from tests.e2e.processes import ROOT, ended, eventually, interrupt, process

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("chromium_executable")]

SHOP = ROOT / "examples" / "shop"


@pytest.fixture
def orders() -> Orders:
    return Orders()


@pytest.fixture
async def shop(orders: Orders) -> AsyncIterator[str]:
    async with TestServer(build_app(orders)) as server:
        yield f"http://127.0.0.1:{server.port}"


def write(tmp_path: Path, steps: list[object], **envelope: object) -> str:
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"name": "job", "steps": steps, **envelope}))
    return str(file)


def records(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (out / "items.jsonl").read_text().splitlines()]


async def test_a_job_file_becomes_records_and_files_in_a_folder(shop: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = str(SHOP / "catalogue.yaml")
    async with process(
        "farm.cli", "run", job, "-o", str(out), "--param", f"base={shop}", cwd=tmp_path
    ) as run:
        code, said, talk = await ended(run, 90)
    assert code == ExitCode.SUCCEEDED, talk
    assert said == ""
    found = records(out)
    assert len(found) == 24
    assert all(isinstance(record["price"], float | int) for record in found)
    assert (out / "items.csv").read_text().count("\n") == 25
    history = json.loads((out / "job.json").read_text())
    assert history["state"] == "succeeded"
    assert len(history["history"]) == 1
    assert (out / "artifacts" / "last-page.png").read_bytes().startswith(b"\x89PNG")


async def test_without_a_folder_the_records_are_json_lines_on_stdout(
    shop: str, tmp_path: Path
) -> None:
    job = write(tmp_path, [{"goto": f"{shop}/"}, {"extract": {"fields": {"title": "h1"}}}])
    async with process("farm.cli", "run", job, cwd=tmp_path) as run:
        code, said, talk = await ended(run, 60)
    assert code == ExitCode.SUCCEEDED, talk
    assert [json.loads(line) for line in said.splitlines()] == [
        {"title": "Good things for the house"}
    ]


async def test_an_order_is_placed_once(shop: str, orders: Orders, tmp_path: Path) -> None:
    job = str(SHOP / "order.yaml")
    async with process(
        "farm.cli",
        "run",
        job,
        "--json",
        "--param",
        f"base={shop}",
        "-p",
        "quantity=3",
        cwd=tmp_path,
    ) as run:
        code, said, talk = await ended(run, 60)
    assert code == ExitCode.SUCCEEDED, talk
    assert [order.quantity for order in orders.placed] == [3]
    assert json.loads(said)["items"][0]["number"] == 1


@pytest.mark.parametrize(
    ("path", "timeout", "expected", "reason"),
    [
        ("/status/404", "30s", ExitCode.FAILED, "http_status"),
        ("/hang-response", "2s", ExitCode.TIMED_OUT, "job_timeout"),
        ("/crash", "30s", ExitCode.FAILED, "page_crashed"),
    ],
)
async def test_the_exit_code_and_the_folder_say_how_it_went_wrong(
    shop: str, tmp_path: Path, path: str, timeout: str, expected: ExitCode, reason: str
) -> None:
    out = tmp_path / "out"
    steps = [
        {"goto": {"url": f"{shop}{path}", "expect_status": 200}},
        {"wait_for": "#never"},
    ]
    job = write(tmp_path, steps, timeout={"job": timeout}, retry={"max_attempts": 1})
    async with process("farm.cli", "run", job, "-o", str(out), cwd=tmp_path) as run:
        code, _, talk = await ended(run, 60)
    assert code == expected, talk
    assert json.loads((out / "job.json").read_text())["failure"]["reason"] == reason
    assert reason in talk


async def test_ctrl_c_keeps_what_was_extracted(shop: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    steps = [
        {"goto": f"{shop}/products"},
        {"extract": {"list": "article.product", "fields": {"sku": "@data-sku"}}},
        {"wait": "5m"},
    ]
    job = write(tmp_path, steps)
    async with process("farm.cli", "run", job, "-o", str(out), cwd=tmp_path) as run:
        await eventually(lambda: (out / "items.jsonl").exists() and len(records(out)) == 8, 60)
        interrupt(run)
        code, _, talk = await ended(run, 10)
    assert code == ExitCode.INTERRUPTED, talk
    assert len(records(out)) == 8
    assert json.loads((out / "job.json").read_text())["state"] == "cancelled"
    assert (out / "items.csv").exists()


async def test_a_private_host_that_the_job_does_not_name_is_out_of_reach_unless_allowed(
    shop: str, tmp_path: Path
) -> None:
    port = shop.rpartition(":")[2]
    steps = [{"set": {"var": "u", "value": f"{shop}/"}}, {"goto": "${vars.u}"}]
    job = write(tmp_path, steps, retry={"max_attempts": 1})
    async with process("farm.cli", "run", job, "--json", cwd=tmp_path) as run:
        code, said, talk = await ended(run, 60)
    assert code == ExitCode.FAILED, talk
    assert json.loads(said)["failure"]["reason"] == "egress_denied"
    async with process("farm.cli", "run", job, "--allow", f"127.0.0.1:{port}", cwd=tmp_path) as run:
        code, _, talk = await ended(run, 60)
    assert code == ExitCode.SUCCEEDED, talk
