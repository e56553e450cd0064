"""http: a request beside the page, its answer kept as a value."""

import json

from agent.console import urls
from agent.console.fetching import Answer, Ask
from agent.console.navigation import resolve
from agent.console.page import text_of
from agent.console.stage import Stage
from agent.steps.failed import StepFailed, clean
from agent.steps.values import to_json_value
from farm.protocol.failures import Reason
from farm.protocol.steps import Http

_TOKEN_CHARS = frozenset("!#$%&'*+-.^_`|~")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


async def http(stage: Stage, step: Http) -> None:
    """Ask, check how it was answered, and keep the answer; journalled where it may change things.

    Raises:
        StepFailed: `http_status` for an answer that is not wanted, `egress_denied`,
            `navigation_failed`, `value_invalid`.
    """
    ask = _ask(stage, step)
    async with stage.effect(method=step.method, url=urls.bare(ask.url)):
        answer = await stage.fetch(ask)
    if step.var is not None:
        stage.flow.variables[step.var] = {
            "status": answer.status,
            "url": answer.url,
            "headers": dict(answer.headers),
            "body": _body(answer),
        }
    _check_status(step, answer)


def _ask(stage: Stage, step: Http) -> Ask:
    url = resolve(stage.flow.page, step.url)
    if urls.scheme(url) not in ("http", "https"):
        raise StepFailed(Reason.VALUE_INVALID, clean(f"only http and https are asked, not {url}"))
    headers = {"Accept": "*/*"}
    for name, value in step.headers.items():
        if not _is_header(name, value):
            raise StepFailed(Reason.VALUE_INVALID, clean(f"{name}: {value!r} is no header"))
        headers = {k: v for k, v in headers.items() if k.lower() != name.lower()} | {name: value}
    body = None if step.body is None else step.body.encode()
    if step.json_body is not None:
        body = json.dumps(step.json_body, ensure_ascii=False).encode()
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
    return Ask(url=url, method=step.method, headers=headers, body=body)


def _is_header(name: str, value: str) -> bool:
    token = bool(name) and all(c.isascii() and (c.isalnum() or c in _TOKEN_CHARS) for c in name)
    return token and name.lower() not in _OURS and value.isprintable()


def _body(answer: Answer) -> object:
    text = text_of(answer.body, answer.content_type)
    kind = answer.content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return to_json_value(json.loads(text))
        except (ValueError, RecursionError):
            return text
    return text


def _check_status(step: Http, answer: Answer) -> None:
    wanted = step.expect_status
    if answer.status < 400 if wanted is None else answer.status in wanted:
        return
    said = "below 400" if wanted is None else " or ".join(map(str, wanted))
    raise StepFailed(
        Reason.HTTP_STATUS,
        clean(f"expected {said}, got {answer.status} from {answer.url}"),
        status=answer.status,
    )
