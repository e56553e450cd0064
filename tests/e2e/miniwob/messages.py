"""Tasks that want something done with posts and mails."""

from tests.e2e.miniwob.episodes import Look, Play, Solver
from tests.e2e.miniwob.moves import click, fill

_USERS = {"fields": {"users": {"selector": ".details .username", "all": True}}}


def post_button() -> Play:
    seen = yield Look(extract=_USERS)
    user, action = seen.bold
    post = f"#area .media:nth-child({seen.items[0]['users'].index(user) + 1})"
    if action in ("Reply", "Retweet", "Like"):
        return [click(f"{post} .{action.lower()}")]
    return [click(f"{post} .more"), click(f"{post} li >> text={action}")]


def mail() -> Play:
    sender = {"selector": ".email-sender", "required": True}
    seen = yield Look(extract={"list": "#main .email-thread", "fields": {"sender": sender}})
    place = [item["sender"] for item in seen.items].index(seen.bold[0])
    opened = click("#main .email-thread .email-sender", nth=place)
    if "trash" in seen.utterance:
        return [click("#main .email-thread .trash", nth=place)]
    if "star" in seen.utterance:
        return [click("#main .email-thread .star", nth=place)]
    kind, field = ("reply", "#reply-text"), "#reply-text"
    if "forward" in seen.utterance:
        kind, field = ("forward", "#forward"), "#forward .forward-sender"
    return [
        opened,
        click(f"#email .email-{kind[0]}"),
        fill(field, seen.bold[1]),
        click(f"#send-{kind[0]}"),
    ]


def post_buttons() -> Play:
    seen = yield Look(extract=_USERS)
    action, *amount, user = seen.bold
    theirs = [i for i, name in enumerate(seen.items[0]["users"], 1) if name == user]
    wanted = theirs[: int(amount[0])] if amount else theirs
    presses = [click(f"#area .media:nth-child({place}) .{action.lower()}") for place in wanted]
    return [*presses, click("#submitRow button")]


TASKS: dict[str, Solver] = {
    "email-inbox": mail,
    "email-inbox-delete": mail,
    "email-inbox-forward": mail,
    "email-inbox-important": mail,
    "email-inbox-noscroll": mail,
    "email-inbox-reply": mail,
    "email-inbox-star-reply": mail,
    "social-media": post_button,
    "social-media-all": post_buttons,
    "social-media-some": post_buttons,
}
