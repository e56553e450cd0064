import asyncio
import csv
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from farm.api import results
from farm.core.job_states import AttemptState, JobState
from farm.jobs import export
from farm.stores.records import Expected
from tests.api.stack import AGENT, MAX_ARTIFACT, Stack, running
from tests.patience import PATIENCE_S


async def get(stack: Stack, path: str, **headers: str) -> tuple[int, str, str]:
    async with stack.http.get(stack.url + path, headers=stack.as_admin(**headers)) as response:
        return response.status, response.headers["Content-Type"], await response.text()


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


async def test_items_are_json_lines_unless_csv_is_asked_for(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.add_items(attempt, {"a": 1}, {"a": 2, "b": {"c": "x"}})
    path = f"/v1/jobs/{job_id}/items"
    status, kind, text = await get(stack, path)
    assert (status, kind) == (200, "application/x-ndjson; charset=utf-8")
    assert lines(text) == [{"a": 1}, {"a": 2, "b": {"c": "x"}}]
    for query, headers in (("?format=csv", {}), ("", {"Accept": "text/csv"})):
        _, kind, text = await get(stack, path + query, **headers)
        assert kind == "text/csv; charset=utf-8"
        assert list(csv.reader(io.StringIO(text))) == [["a", "b.c"], ["1", ""], ["2", "x"]]
    _, kind, _ = await get(stack, f"{path}?format=jsonl", Accept="text/csv")
    assert kind.startswith("application/x-ndjson")


async def test_a_cell_that_a_spreadsheet_would_run_is_quoted(stack: Stack) -> None:
    job_id = await stack.submit()
    await stack.add_items(await stack.start(job_id), {"=x": '=cmd|"/c calc"!A1', "n": -5})
    _, _, text = await get(stack, f"/v1/jobs/{job_id}/items?format=csv")
    assert list(csv.reader(io.StringIO(text))) == [["'=x", "n"], ['\'=cmd|"/c calc"!A1', "-5"]]


async def test_every_attempts_items_carry_their_attempt(stack: Stack) -> None:
    job_id = await stack.submit()
    first = await stack.start(job_id)
    await stack.add_items(first, {"a": 1})
    await stack.finish(first, attempt_state=AttemptState.FAILED, job_state=JobState.QUEUED)
    second = await stack.start(job_id, 2)
    await stack.add_items(second, {"a": 2})
    await stack.finish(second)
    path = f"/v1/jobs/{job_id}/items"
    assert lines((await get(stack, path))[2]) == [{"a": 2}]
    assert lines((await get(stack, f"{path}?attempt=1"))[2]) == [{"a": 1}]
    assert lines((await get(stack, f"{path}?attempt=all"))[2]) == [
        {"_attempt": 1, "a": 1},
        {"_attempt": 2, "a": 2},
    ]
    assert (await get(stack, f"{path}?attempt=3"))[0] == 404
    assert (await get(stack, f"{path}?attempt=x"))[0] == 422
    assert (await get(stack, f"{path}?attempt={'9' * 5000}"))[0] == 422
    assert (await get(stack, f"{path}?format=xml"))[0] == 422


async def test_items_of_several_data_sets_are_told_apart(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.add_items(attempt, {"a": 1})
    await stack.add_items(attempt, {"b": 1}, seq=2, dataset="more")
    path = f"/v1/jobs/{job_id}/items"
    assert lines((await get(stack, path))[2]) == [{"a": 1}, {"_dataset": "more", "b": 1}]
    assert lines((await get(stack, f"{path}?dataset=more"))[2]) == [{"b": 1}]


async def test_a_job_without_items_gives_an_empty_answer(stack: Stack) -> None:
    job_id = await stack.submit()
    for query in ("", "?format=csv"):
        status, _, text = await get(stack, f"/v1/jobs/{job_id}/items{query}")
        assert (status, text) == (200, "")


async def put(
    stack: Stack, attempt_id: str, name: str, data: Any, token: str = "1.1", **headers: str
) -> tuple[int, Any]:
    sent = stack.as_agent(**{"X-Tabfarm-Token": token, **headers})
    async with stack.http.put(
        f"{stack.url}/v1/attempts/{attempt_id}/artifacts/{name}", data=data, headers=sent
    ) as response:
        return response.status, await response.json()


async def test_a_file_handed_in_is_given_out_as_an_attachment_nobody_runs(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    page = b"<script>alert(1)</script>"
    status, body = await put(
        stack, attempt.attempt_id, "Seite%20%C3%A4%22.html", page, **{"Content-Type": "text/html"}
    )
    assert (status, body) == (200, {"name": "Seite ä_.html"})
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}/artifacts/{body['name']}", headers=stack.as_admin()
    ) as response:
        assert await response.read() == page
        headers = response.headers
    assert headers["Content-Type"] == "text/html"
    assert headers["Content-Length"] == str(len(page))
    assert headers["Content-Disposition"] == (
        "attachment; filename=\"Seite __.html\"; filename*=UTF-8''Seite%20%C3%A4_.html"
    )
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    _, _, text = await get(stack, f"/v1/jobs/{job_id}/artifacts")
    [item] = json.loads(text)["items"]
    assert (item["name"], item["size"]) == (body["name"], len(page))


@pytest.mark.parametrize(
    ("asked", "kept"),
    [("..%2F..%2Fetc%2Fpasswd", "passwd"), ("%2E%2E%2F", "artifact"), ("a%5Cb.png", "b.png")],
)
async def test_a_name_is_one_safe_segment(stack: Stack, asked: str, kept: str) -> None:
    attempt = await stack.start(await stack.submit())
    status, body = await put(stack, attempt.attempt_id, asked, b"x")
    assert (status, body) == (200, {"name": kept})


async def test_a_name_that_is_taken_is_numbered(stack: Stack) -> None:
    attempt = await stack.start(await stack.submit())
    names = [(await put(stack, attempt.attempt_id, "a.png", b"x"))[1]["name"] for _ in range(2)]
    assert names[0] == "a.png"
    assert names[1] != "a.png"
    assert names[1].endswith(".png")


async def test_a_media_type_that_is_none_of_ours_becomes_plain_bytes(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await put(stack, attempt.attempt_id, "a", b"x", **{"Content-Type": "image/svg+xml"})
    assert (await get(stack, f"/v1/jobs/{job_id}/artifacts/a"))[1] == "application/octet-stream"


async def test_a_huge_file_is_refused_whether_or_not_it_says_its_size(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)

    async def unsized() -> Any:
        for _ in range(MAX_ARTIFACT // 65536 + 1):
            yield bytes(65536)

    for data in (bytes(MAX_ARTIFACT + 1), unsized()):
        status, body = await put(stack, attempt.attempt_id, "big", data)
        assert (status, body["type"]) == (413, "/problems/too-large")
    status, _ = await put(stack, attempt.attempt_id, "fits", bytes(MAX_ARTIFACT))
    assert status == 200
    _, _, text = await get(stack, f"/v1/jobs/{job_id}/artifacts")
    assert [item["name"] for item in json.loads(text)["items"]] == ["fits"]


async def test_a_file_under_a_lease_that_has_ended_is_refused(stack: Stack) -> None:
    attempt = await stack.start(await stack.submit())
    for token in ("1.2", "0.1", "2.1"):
        status, body = await put(stack, attempt.attempt_id, "a", b"x", token)
        assert (status, body["type"]) == (409, "/problems/stale-assignment")
    await stack.finish(attempt)
    status, body = await put(stack, attempt.attempt_id, "a", b"x")
    assert (status, body["type"]) == (409, "/problems/stale-assignment")


@pytest.mark.parametrize("token", ["", "1", "1.x", "-1.1", "1.1.1", "²·1"])
async def test_a_fencing_token_of_another_form_is_refused(stack: Stack, token: str) -> None:
    attempt = await stack.start(await stack.submit())
    assert (await put(stack, attempt.attempt_id, "a", b"x", token))[0] == 422


async def test_an_agents_token_reaches_only_its_own_agents_attempts(stack: Stack) -> None:
    attempt = await stack.start(await stack.submit())
    stack.owners[AGENT] = "another token"
    known = await put(stack, attempt.attempt_id, "a", b"x")
    unknown = await put(stack, "nothing", "a", b"x")
    assert known[0] == unknown[0] == 403
    assert known[1]["detail"] == unknown[1]["detail"]


async def test_a_file_that_breaks_off_is_not_kept(stack: Stack, tmp_path: Path) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    host, port = stack.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"PUT /v1/attempts/{attempt.attempt_id}/artifacts/a HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {stack.agent}\r\nX-Tabfarm-Token: 1.1\r\n"
        "Content-Length: 1000\r\n\r\nhalf".encode()
    )
    await writer.drain()
    incoming = tmp_path / "artifacts" / ".incoming"
    async with asyncio.timeout(PATIENCE_S):
        while not list(incoming.iterdir()):
            await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        while list(incoming.iterdir()):
            await asyncio.sleep(0.01)
    status, _ = await put(stack, attempt.attempt_id, "b", b"x")
    assert status == 200
    _, _, text = await get(stack, f"/v1/jobs/{job_id}/artifacts")
    assert [item["name"] for item in json.loads(text)["items"]] == ["b"]


async def test_a_full_disk_is_a_problem_of_its_own_and_keeps_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, min_free_bytes=2**62) as stack:
        job_id = await stack.submit()
        attempt = await stack.start(job_id)
        status, body = await put(stack, attempt.attempt_id, "a", b"x")
        assert (status, body["type"]) == (507, "/problems/artifact-store-full")
        _, _, text = await get(stack, f"/v1/jobs/{job_id}/artifacts")
        assert json.loads(text)["items"] == []


async def test_a_client_that_reads_no_more_is_cut_off(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = asyncio.Event()

    async def endless(_: object) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x" * 65_536
        finally:
            let_go.set()

    monkeypatch.setattr(results, "_UNREAD_S", 0.05)
    monkeypatch.setattr(export, "json_lines", endless)
    job_id = await stack.submit()
    host, port = stack.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1)
    try:
        head = "".join(f"{name}: {value}\r\n" for name, value in stack.as_admin().items())
        writer.write(f"GET /v1/jobs/{job_id}/items HTTP/1.1\r\nHost: {host}\r\n{head}\r\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.readexactly(12) == b"HTTP/1.1 200"  # and nothing more is taken
            await let_go.wait()
    finally:
        writer.close()


TRACE = Expected("trace", "trace.zip", "application/zip")
AS_TRACE = {"X-Tabfarm-Recording": "trace", "Content-Type": "application/zip"}


async def listed(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    _, _, text = await get(stack, f"/v1/jobs/{job_id}/artifacts")
    return list(json.loads(text)["items"])


async def test_a_recording_is_listed_while_it_is_pending_and_given_out_when_it_is_there(
    stack: Stack,
) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id, recordings=(TRACE,))
    [item] = await listed(stack, job_id)
    assert (item["name"], item["recording"], item["state"]) == ("trace.zip", "trace", "pending")
    path = f"/v1/jobs/{job_id}/artifacts/trace.zip"
    status, _, text = await get(stack, path)
    assert (status, json.loads(text)["detail"]) == (409, "trace.zip is pending")
    status, body = await put(stack, attempt.attempt_id, "any.zip", b"zip", **AS_TRACE)
    assert (status, body) == (200, {"name": "trace.zip"})
    assert (await get(stack, path))[0] == 200
    [item] = await listed(stack, job_id)
    assert (item["state"], item["size"]) == ("ready", 3)


async def test_only_a_recording_that_is_waited_for_is_taken(stack: Stack) -> None:
    attempt = await stack.start(await stack.submit())
    status, body = await put(stack, attempt.attempt_id, "t", b"zip", **AS_TRACE)
    assert (status, body["type"]) == (409, "/problems/stale-assignment")
    status, body = await put(
        stack, attempt.attempt_id, "t", b"zip", **{"X-Tabfarm-Recording": "trance"}
    )
    assert (status, body["type"]) == (422, "/problems/invalid-input")
    assert "video, trace" in body["detail"]


async def test_recordings_beyond_the_namespaces_share_are_refused_and_other_files_are_not(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, recordings_max_bytes=5) as stack:
        job_id = await stack.submit()
        har = Expected("har", "a.har", "application/json")
        attempt = await stack.start(job_id, recordings=(TRACE, har))
        assert (await put(stack, attempt.attempt_id, "t", b"four", **AS_TRACE))[0] == 200
        as_har = {"X-Tabfarm-Recording": "har"}
        status, body = await put(stack, attempt.attempt_id, "h", b"four", **as_har)
        assert (status, body["type"]) == (507, "/problems/artifact-store-full")
        assert body["detail"] == "the namespace's recordings have 4 of 5 bytes"
        assert [one["state"] for one in await listed(stack, job_id)] == ["ready", "pending"]
        assert (await put(stack, attempt.attempt_id, "a.png", b"a picture"))[0] == 200
