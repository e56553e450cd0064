"""What a job asks of the pool."""

from farm.core.model import Namespace
from farm.jobs.files import Place, parse
from farm.jobs.placement import request_for


def profile(context: str, namespace: str = "a", more: str = "") -> tuple[str, bool]:
    text = f"name: a\nsteps: [back]\nbrowser: {{context: {context}{more}}}\n"
    spec = parse(text.encode(), content_type=None, params={})
    request = request_for("j", Namespace(namespace), spec, Place.TAB)
    assert (request.identity is None) == (context != "reuse")
    return request.profile, request.resets


def test_a_window_that_is_reset_is_for_one_namespace_and_equal_options_only() -> None:
    assert profile("reset") == profile("reset")
    assert profile("reset")[1]
    assert not profile("fresh")[1]
    asked = [
        profile("fresh"),
        profile("reset"),
        profile("reset", "b"),
        profile("reset", more=", locale: de-DE"),
        profile("fresh", more=", locale: de-DE"),
    ]
    assert len({name for name, _ in asked}) == len(asked)


def test_a_job_asks_for_its_queue_its_node_and_agents_that_do_jobs() -> None:
    for place in Place:
        text = b"name: a\nsteps: [back]\nqueue: crawl\nnode: n1\n"
        spec = parse(text, content_type=None, params={})
        request = request_for("j", Namespace("a"), spec, place)
        assert (request.task_queue, request.node, request.activity_type) == ("crawl", "n1", "job")
