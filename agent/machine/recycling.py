"""When a window or the whole browser has served long enough, and what has to end before it goes.

Chromium grows with use, and what a page can leave behind in a process is not known to anybody. So
a browser has a measure of uses, age and memory. When one is full it is due; it drains once nobody
has a kept identity or a window of a person's in it, or has been due for too long; and it is
replaced, in a new epoch, when nothing runs and nothing is held.
"""

from dataclasses import dataclass

from agent.machine import events as ev


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long things serve; None is for ever."""

    window_uses: int | None = None
    window_age_s: float | None = None
    browser_uses: int | None = None
    browser_age_s: float | None = None
    browser_mb: float | None = None
    renderer_mb: float | None = None
    patience_s: float = 600.0
    """For so long a browser that is due waits for kept identities and people, and then, as long
    again, for what is held."""


FOR_EVER = Limits()


class Recycling:
    """One browser life: what it has served, and how far it is on its way out."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """A new life has begun."""
        self._began = now
        self._uses = 0
        self._weight: ev.Weighed | None = None
        self._due_since: float | None = None
        self._draining_since: float | None = None
        self.reason: str | None = None
        """Why it is due, such as `browser_uses: 2000`; None while it is not."""

    @property
    def draining(self) -> bool:
        """Tell whether nothing new is begun in it."""
        return self._draining_since is not None

    def used(self) -> None:
        """Count an attempt."""
        self._uses += 1

    def weighed(self, weight: ev.Weighed) -> None:
        """Take in how much memory it has."""
        self._weight = weight

    def wants_weighing(self) -> bool:
        """Tell whether memory counts at all."""
        return self._limits.browser_mb is not None or self._limits.renderer_mb is not None

    def starts_to_drain(self, now: float, *, kept: bool) -> bool:
        """Tell, once, that nothing new is to be begun.

        `kept`: there are windows of named identities or of people, which a new life has not.
        """
        if self.draining:
            return False
        if self.reason is None:
            self.reason, self._due_since = self._why(now), now
        if self.reason is None:
            return False
        if kept and not self._is_over(self._due_since, now):
            return False
        self._draining_since = now
        return True

    def is_over(self, now: float, *, held: bool) -> bool:
        """Tell whether the browser may be replaced now; nothing runs in it. `held`: by leases."""
        return self.draining and (not held or self._is_over(self._draining_since, now))

    def worn(self, uses: int, opened_at: float, now: float) -> bool:
        """Tell whether a window has served long enough."""
        limits = self._limits
        return _full(uses, limits.window_uses) or _full(now - opened_at, limits.window_age_s)

    def _is_over(self, since: float | None, now: float) -> bool:
        return since is not None and now - since >= self._limits.patience_s

    def _why(self, now: float) -> str | None:
        weight = self._weight
        measures = (
            ("browser_uses", float(self._uses), self._limits.browser_uses),
            ("browser_age_s", now - self._began, self._limits.browser_age_s),
            ("browser_mb", weight.browser_mb if weight else 0.0, self._limits.browser_mb),
            ("renderer_mb", weight.renderer_mb if weight else 0.0, self._limits.renderer_mb),
        )
        for name, value, limit in measures:
            if _full(value, limit):
                return f"{name}: {value:.0f}"
        return None


def _full(value: float, limit: float | None) -> bool:
    return limit is not None and value >= limit
