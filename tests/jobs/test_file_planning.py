"""What a checked job asks for."""

import hashlib
from typing import Any

import pytest

from farm.core.eligibility import canonical
from farm.core.model import Namespace
from farm.jobs.files import (
    JobSpec,
    Place,
    canonical_hash,
    identity,
    match_key,
    parse,
    private_hosts,
    requirements,
    to_plan,
)
from farm.protocol.plan import Egress, Plan, Timeouts
from farm.protocol.recordings import RECORDS, RECORDS_VIDEO, Recording, RecordingKind

HERE = Namespace("default")


def job(more: str = "", steps: str = "[back]", **params: object) -> JobSpec:
    text = f"name: a\nsteps: {steps}\n{more}\n"
    return parse(text.encode(), content_type=None, params=params)


@pytest.mark.parametrize(
    ("said", "most"), [("", 5), ("popups: adopt", 5), ("popups: close", 0), ("popups: 12", 12)]
)
def test_what_becomes_of_popups_is_a_number_in_the_plan(said: str, most: int) -> None:
    plan = to_plan(
        job(f"browser: {{{said}}}"),
        job_id="j",
        attempt_id="t",
        attempt_number=1,
        place=Place.TAB,
        egress=Egress(),
        recording_max_bytes=1,
    )
    assert plan.popups == most


def test_a_plan_has_everything_an_agent_needs_and_survives_the_wire() -> None:
    spec = job(
        "params: {p: 1}\ntimeout: {job: 9s, step: 2s}\neffects: idempotent\n"
        "browser: {context: reuse}"
    )
    plan = to_plan(
        spec,
        job_id="j",
        attempt_id="t",
        attempt_number=2,
        place=Place.TAB,
        egress=Egress(allow=("127.0.0.1:1",)),
        recording_max_bytes=1,
    )
    assert plan == Plan(
        job_id="j",
        attempt_id="t",
        attempt_number=2,
        name="a",
        steps=spec.steps,
        params={"p": 1},
        timeouts=Timeouts(job=9_000, step=2_000, navigation=30_000),
        effects=spec.effects,
        reuse=True,
        egress=Egress(allow=("127.0.0.1:1",)),
    )
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_what_is_recorded_is_asked_of_the_agent_and_bounded_by_the_farm() -> None:
    spec = job("record: {kinds: [trace, video, trace], keep: on_failure, overlay: false}")
    plan = to_plan(
        spec,
        job_id="j",
        attempt_id="t",
        attempt_number=1,
        place=Place.TAB,
        egress=Egress(),
        recording_max_bytes=9,
    )
    assert plan.record == Recording(
        kinds=(RecordingKind.TRACE, RecordingKind.VIDEO),
        keep="on_failure",
        overlay=False,
        max_bytes=9,
    )
    assert job("record: har").record == job("record: [har]").record


def test_a_word_stands_for_a_mapping_with_that_alone() -> None:
    assert job("identity: shopper") == job("identity: {name: shopper}")
    assert job("proxy: 'socks5://p.example:1'") == job("proxy: {server: 'socks5://p.example:1'}")


def test_a_job_that_records_goes_to_agents_that_can() -> None:
    region = "requires: {metadata: {region: eu}}\n"
    assert requirements(job(region)) == {"region": "eu"}
    assert requirements(job(region + "record: har")) == {"region": "eu", RECORDS: True}
    assert requirements(job("record: video")) == {RECORDS: True, RECORDS_VIDEO: True}
    keys = {match_key(job(f"record: [{kind}]"), HERE) for kind in ("har", "trace", "video")}
    assert len(keys) == 2
    assert match_key(job(), HERE) not in keys


def test_a_job_that_records_nothing_has_the_hash_it_had_before_there_were_recordings() -> None:
    assert canonical_hash(job()) != canonical_hash(job("record: har"))
    assert "record" not in job().model_dump(mode="json", exclude={"record"})
    before = {"record": True, "browser": {"use"}, "queue": True, "node": True}
    assert canonical_hash(job()) == _hash_without(before)
    assert canonical_hash(job("browser: auto")) != canonical_hash(job())


def _hash_without(keys: dict[str, Any]) -> str:
    text = canonical(job().model_dump(mode="json", exclude=keys))
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_fresh_job_has_no_identity_whatever_its_options() -> None:
    assert identity(job("browser: {locale: en}")) is None


def test_jobs_that_reuse_share_an_identity_exactly_where_their_options_are_equal() -> None:
    plain = identity(job("browser: {context: reuse}"))
    english = identity(job("browser: {context: reuse, locale: en}"))
    assert plain == "shared"
    assert english is not None
    assert english.startswith("shared-")
    assert english == identity(job("browser: {locale: en, context: reuse}", "[reload]"))
    assert english != identity(job("browser: {context: reuse, locale: de}"))


def test_jobs_that_ask_for_the_same_kind_of_worker_have_one_key() -> None:
    eu = "requires: {metadata: {region: eu, n: 1}}"
    assert match_key(job(eu), HERE) == match_key(
        job("requires: {metadata: {n: 1, region: eu}}", "[reload]"), HERE
    )
    others = [
        match_key(job(eu), Namespace("other")),
        match_key(job(), HERE),
        match_key(job("requires: {metadata: {region: eu, n: 1.0}}"), HERE),
        match_key(job(f"{eu}\nbrowser: {{context: reuse}}"), HERE),
        match_key(job("requires: {client_type: browser}"), HERE),
        match_key(job(f"{eu}\nqueue: crawl"), HERE),
        match_key(job(f"{eu}\nnode: n1"), HERE),
        match_key(job(f"{eu}\nnode: n1"), HERE, Place.FLOW),
        match_key(job(f"{eu}\nqueue: n1"), HERE, Place.FLOW),
    ]
    assert len({match_key(job(eu), HERE), *others}) == 10


def test_the_hash_is_of_what_was_meant_and_not_of_how_it_was_written() -> None:
    one = parse(b'{"steps": [{"goto": "x"}], "name": "a"}', content_type="application/json")
    two = job("version: 1", "[{navigate: {url: x}}]")
    assert canonical_hash(one) == canonical_hash(two)
    assert canonical_hash(one) != canonical_hash(job(steps="[{goto: y}]"))


def test_the_hash_counts_params_as_filled_in() -> None:
    declared = "params: {p: 1}"
    assert canonical_hash(job(declared)) == canonical_hash(job(declared, p="1"))
    assert canonical_hash(job(declared)) != canonical_hash(job(declared, p="2"))


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://127.0.0.1:8000/a", ("127.0.0.1:8000",)),
        ("http://localhost/", ("localhost:80",)),
        ("https://shop.localhost/", ("shop.localhost:443",)),
        ("http://[::1]:8000/", ("[::1]:8000",)),
        ("http://10.1.2.3/", ("10.1.2.3:80",)),
        ("http://192.168.0.1:99999/", ()),
        ("http://[::ffff:127.0.0.1]:1/", ("[::ffff:127.0.0.1]:1",)),
        ("http://169.254.169.254/", ()),
        ("https://example.org/?u=http://127.0.0.1/", ()),
        ("http://8.8.8.8/", ()),
        ("/relative", ()),
        ("${vars.url}", ()),
        ("http://[broken/", ()),
    ],
)
def test_private_hosts_are_those_named_literally_and_private(
    url: str, hosts: tuple[str, ...]
) -> None:
    assert private_hosts(job(steps=f"[{{goto: '{url}'}}, {{goto: '{url}'}}]")) == hosts


def test_a_job_that_names_no_queue_and_no_node_has_the_hash_and_the_key_it_had_before() -> None:
    assert canonical_hash(job("queue: default")) == canonical_hash(job())
    assert match_key(job("queue: default"), HERE) == match_key(job(), HERE)
    assert job('queue: ""') == job()
    for said in ("queue: crawl", "node: n1"):
        assert canonical_hash(job(said)) != canonical_hash(job())
