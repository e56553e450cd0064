"""A report as report.lua keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from farm.core.model import Context, Owner, Window, WindowId
from farm.stores.redis.records import context_text, flat, json_text, place


def report_parts(windows: Sequence[Window], contexts: Sequence[Context]) -> list[list[str | int]]:
    """Return what report.lua keeps of a report, a list a part and in its order."""
    tabs: dict[WindowId, list[Context]] = {}
    for context in contexts:
        if context.window_id is not None:
            tabs.setdefault(context.window_id, []).append(context)
    places = {window.window_id: place(window.identity, window.profile) for window in windows}
    placed = [(context, _place_of(context, places)) for context in contexts]
    idle = [(context, where) for context, where in placed if context.lendable]
    return [
        flat({one.window_id: _window_text(one, tabs.get(one.window_id, ())) for one in windows}),
        flat({context.context_id: context_text(context, where) for context, where in placed}),
        flat({window_id: _tabs_text(those) for window_id, those in tabs.items()}),
        sorted({where for _, where in idle}),
        sorted({one.identity for one in windows if one.identity is not None}),
        [part for context, where in idle for part in (0, f"{where}\0{context.context_id}")],
    ]


def _place_of(context: Context, places: Mapping[WindowId, str]) -> str:
    nowhere = place(None, "")
    return nowhere if context.window_id is None else places.get(context.window_id, nowhere)


def _window_text(window: Window, tabs: Sequence[Context]) -> str:
    return json_text(
        {
            "window_id": window.window_id,
            "identity": window.identity,
            "profile": window.profile,
            "owner": window.owner,
            "bounds": None if window.bounds is None else asdict(window.bounds),
            "prepared": window.prepared,
            "tabs": sum(tab.opener is None for tab in tabs),
        }
    )


def _tabs_text(contexts: Sequence[Context]) -> str:
    """Return what `reject_company` looks at of the tabs of one window."""
    strange = any(c.owner is not Owner.WORKER or not c.clean for c in contexts)
    return json_text({"ids": [context.context_id for context in contexts], "strange": strange})
