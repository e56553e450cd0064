from typing import Any

from farm.clock import system_clock
from farm.core.decide import Verdict
from farm.core.eligibility import Reason
from farm.core.model import (
    Bounds,
    Capacity,
    Client,
    ClientId,
    ClientType,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Owner,
    Request,
    TaskId,
    Window,
    WindowId,
)
from farm.core.pools import Exclusion
from farm.core.reservation import Denial
from farm.jobs.ports import Progress
from tests.api.stack import AGENT, DEFAULT, Stack


async def connect(stack: Stack, name: str = AGENT, *namespaces: str) -> None:
    """Let an agent in that has one window with two tabs."""
    client_id, link = ClientId(name), LinkId(f"link-{name}")
    client = await stack.registry.register(
        Client(
            client_id=client_id,
            client_type=ClientType.BROWSER,
            link=link,
            epoch=0,
            instance="i",
            namespaces=tuple(Namespace(one) for one in namespaces or ("default",)),
            node="n1",
            metadata={"region": "eu"},
            capacity=Capacity(max_concurrency=2, max_windows=2, max_tabs_per_window=2),
            seen_at=system_clock(),
        ),
        epoch_name="e",
        highest_token=None,
        now=system_clock(),
    )
    assert isinstance(client, Client)
    window = WindowId("window-1")
    reported = await stack.registry.report(
        client_id,
        link,
        epoch=client.epoch,
        number=1,
        windows=[Window(window_id=window, identity="shared")],
        contexts=[Context(context_id=ContextId(f"context-{n}"), window_id=window) for n in (1, 2)],
        now=system_clock(),
    )
    assert not isinstance(reported, Denial)


async def ask(stack: Stack, path: str) -> Any:
    async with stack.http.get(stack.url + path, headers=stack.as_admin()) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def assign(stack: Stack, namespace: Namespace = DEFAULT) -> Any:
    return await stack.registry.assign(
        Request(namespace=namespace, task_id=TaskId("task"), identity="shared"),
        AGENT,
        ContextId("context-1"),
        now=system_clock(),
        timeout_s=60,
    )


async def test_an_agent_is_shown_with_what_it_may_hold_and_holds(stack: Stack) -> None:
    await connect(stack)
    assert not isinstance(await assign(stack), Denial)
    [agent] = (await ask(stack, "/v1/agents"))["items"]
    assert agent["client_id"] == AGENT
    assert agent["present"] is True
    assert agent["metadata"] == {"region": "eu"}
    assert (agent["task_queue"], agent["activity_types"], agent["node"]) == (
        "default",
        ["job"],
        "n1",
    )
    assert agent["capacity"]["max_concurrency"] == 2
    assert (agent["used_slots"], agent["windows"], agent["contexts"]) == (1, 1, 2)


async def test_a_worker_is_shown_with_the_job_and_step_it_is_lent_to(stack: Stack) -> None:
    await connect(stack)
    assignment = await assign(stack)
    job_id = await stack.submit()
    await stack.ledger.start_attempt(
        job_id,
        attempt_id="attempt",
        command_id="command",
        client_id=AGENT,
        epoch=assignment.epoch,
        context_id=assignment.context_id,
        token=assignment.token,
        now=system_clock(),
    )
    stack.dispatcher.does[job_id] = Progress(step_index=3, step="pay", verb="click")
    busy, free = (await ask(stack, "/v1/workers"))["items"]
    assert busy["label"] == "window-1 · context-1"
    assert busy["assignment"]["job_id"] == job_id
    assert busy["assignment"]["job"] == "a job"
    assert busy["assignment"]["progress"]["step"] == "pay"
    assert (free["context_id"], free["assignment"]) == ("context-2", None)


async def test_windows_are_shown_with_their_identity_and_contexts(stack: Stack) -> None:
    await connect(stack)
    [window] = (await ask(stack, "/v1/windows"))["items"]
    assert window["identity"] == "shared"
    assert window["contexts"] == ["context-1", "context-2"]


async def test_what_a_person_or_a_task_has_opened_is_told_apart(stack: Stack) -> None:
    await connect(stack)
    bounds = Bounds(left=10, top=20, width=800, height=600)
    window, theirs = WindowId("W1"), WindowId("U1")
    opened = ContextId("T1")
    await stack.registry.report(
        AGENT,
        LinkId(f"link-{AGENT}"),
        epoch=(await stack.registry.snapshot(now=system_clock())).clients[0].epoch,
        number=2,
        windows=[
            Window(window_id=window, bounds=bounds),
            Window(window_id=theirs, owner=Owner.USER),
        ],
        contexts=[
            Context(context_id=opened, window_id=window),
            Context(context_id=ContextId("T2"), window_id=window, clean=False, opener=opened),
            Context(context_id=ContextId("T3"), window_id=theirs, owner=Owner.USER),
        ],
        now=system_clock(),
    )
    workers = (await ask(stack, "/v1/workers"))["items"]
    assert [(w["label"], w["owner"], w["opener"]) for w in workers] == [
        ("W1 · T1", "worker", None),
        ("W1 · T2", "worker", "T1"),
        ("U1 · T3", "user", None),
    ]
    own, person = (await ask(stack, "/v1/windows"))["items"]
    assert own["bounds"] == {"left": 10, "top": 20, "width": 800, "height": 600}
    assert (person["owner"], person["bounds"]) == ("user", None)


async def test_nothing_of_another_namespace_is_shown(stack: Stack) -> None:
    await connect(stack, AGENT, "default", "other")
    await connect(stack, "agent-2", "other")
    assert not isinstance(await assign(stack, Namespace("other")), Denial)
    assert [a["client_id"] for a in (await ask(stack, "/v1/agents"))["items"]] == [AGENT]
    workers = (await ask(stack, "/v1/workers"))["items"]
    assert [worker["context_id"] for worker in workers] == ["context-2"]
    assert (await ask(stack, "/v1/windows"))["items"] == []


async def test_why_the_last_acquisitions_came_to_nothing_is_said_to_their_namespace(
    stack: Stack,
) -> None:
    verdict = Verdict(
        clients={
            AGENT: Reason.AT_CAPACITY,
            ClientId("agent-2"): Reason.AT_CAPACITY,
            ClientId("foreign"): Reason.OTHER_NAMESPACE,
        },
        contexts={},
    )
    nobody = Verdict(clients={ClientId("foreign"): Reason.OTHER_NAMESPACE}, contexts={})
    for task, said in (("one", verdict), ("two", nobody)):
        wanted = Request(namespace=DEFAULT, task_id=TaskId(task))
        stack.misses.note(wanted, said, Instant(1_000.0))
    elsewhere = Request(namespace=Namespace("other"), task_id=TaskId("three"))
    stack.misses.note(elsewhere, verdict, Instant(1_000.0))
    two, one = (await ask(stack, "/v1/pools/misses"))["items"]
    assert (one["task_id"], one["reason"], one["times"]) == ("one", "at_capacity", 1)
    assert one["remedy"]
    assert one["counts"] == {"at_capacity": 2}
    assert one["clients"] == {AGENT: "at_capacity", "agent-2": "at_capacity"}
    assert (two["reason"], two["counts"], two["clients"]) == ("no_agent", {}, {})


async def test_metrics_are_read_when_they_are_asked_for(stack: Stack) -> None:
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        assert response.content_type == "text/plain"
        before = await response.text()
    assert 'farm_jobs{state="queued"} 0.0' in before
    assert 'farm_agents{presence="present"} 0.0' in before
    await connect(stack)
    job_id = await stack.submit()
    await stack.ledger.hold_queued(DEFAULT, job_id, paused=True, by="anna", now=system_clock())
    await assign(stack)
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        after = await response.text()
    assert 'farm_jobs{state="queued"} 1.0' in after
    assert 'farm_jobs_held{control="paused"} 1.0' in after
    assert 'farm_jobs_held{control="human"} 0.0' in after
    assert 'farm_agents{presence="present"} 1.0' in after
    assert 'farm_contexts{state="idle"} 2.0' in after
    assert 'farm_agents_present{namespace="default",type="browser"} 1.0' in after
    assert 'farm_assignments_in_flight{namespace="default"} 1.0' in after
    assert "farm_slots 2.0" in after
    assert "farm_windows_prepared 0.0" in after
    assert "farm_windows_of_people 0.0" in after
    assert "farm_agents_draining 0.0" in after
    assert "farm_slots_used 1.0" in after
    assert AGENT not in after
    await stack.registry.set_draining(AGENT)
    await has_windows_of_each_kind(stack)
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        told = await response.text()
    assert "farm_windows 3.0" in told
    assert "farm_windows_prepared 1.0" in told
    assert "farm_windows_of_people 1.0" in told
    assert "farm_agents_draining 1.0" in told
    assert 'farm_agents_excluded{exclusion="reachability_lost"} 0.0' in told
    lost = {AGENT: Exclusion.REACHABILITY_LOST}
    await stack.registry.publish_exclusions("one", lost, now=system_clock(), lease_s=60)
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        excluded = await response.text()
    assert 'farm_agents_excluded{exclusion="reachability_lost"} 1.0' in excluded
    assert 'farm_agents_excluded{exclusion="opening_probation"} 0.0' in excluded


async def has_windows_of_each_kind(stack: Stack) -> None:
    """Report a window that works, one that is prepared, and one of a person's."""
    (client,) = (await stack.registry.snapshot(now=system_clock())).clients
    kinds = ((Owner.WORKER, False), (Owner.WORKER, True), (Owner.USER, False))
    await stack.registry.report(
        AGENT,
        LinkId(f"link-{AGENT}"),
        epoch=client.epoch,
        number=2,
        windows=[
            Window(window_id=WindowId(f"window-{n}"), owner=owner, prepared=prepared)
            for n, (owner, prepared) in enumerate(kinds, start=1)
        ],
        contexts=list(client.contexts.values()),
        now=system_clock(),
    )


async def test_an_agent_not_heard_of_counts_as_absent(stack: Stack) -> None:
    await connect(stack)
    link = LinkId(f"link-{AGENT}")
    await stack.registry.unlink(AGENT, link, now=Instant(system_clock()))
    [agent] = (await ask(stack, "/v1/agents"))["items"]
    assert agent["present"] is False
    async with stack.http.get(f"{stack.url}/metrics", headers=stack.as_admin()) as response:
        assert 'farm_agents{presence="absent"} 1.0' in await response.text()
