"""The windows of one browser life: a BrowserContext each, with a proxy of its own."""

import contextlib
from collections.abc import Callable, Iterator

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import BrowserContext, Download, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Geolocation as PlaywrightGeolocation

from agent.chromium.control import Guarding, TabControl
from agent.chromium.forwarder import Forwarder
from agent.chromium.guards import guard_headed, guard_page
from agent.chromium.overlays import TabOverlay
from agent.chromium.resetting import Unproven
from agent.chromium.shielding import within
from agent.chromium.sight import Shown
from agent.chromium.tabs import End, Tab
from agent.egress.policy import Policy
from agent.egress.upstream import Upstream
from agent.ports import BrowserEvent, Denied, Stirred, TabCrashed, TabGone, WindowGone
from farm.protocol.identities import ProxyRoute
from farm.protocol.plan import BrowserOptions, Egress, Geolocation

CLOSE_S = 4.0


class Window:
    """One window, in an identity of its own."""

    def __init__(
        self,
        window_id: str,
        tell: Callable[[BrowserEvent], None],
        *,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self.window_id = window_id
        self.tabs: dict[str, Tab] = {}
        self._tell = tell
        self._forwarder = Forwarder(self._on_denied, may_act=may_act)
        self._context: BrowserContext | None = None
        self._opening = 0
        self._closing = False
        self._lost = False
        self._unclaimed: list[Page] = []
        self._running: dict[str, Egress] = {}
        self._upstream: Upstream | None = None

    @property
    def context(self) -> BrowserContext:
        """The identity."""
        if self._context is None:
            raise RuntimeError("the window is not open")
        return self._context

    async def open(
        self, browser: PlaywrightBrowser, options: BrowserOptions, *, headed: bool
    ) -> None:
        """Make the identity; it has no tab yet.

        Raises:
            PlaywrightError: If the browser does not do it.
        """
        await self._forwarder.start()
        viewport, place = options.viewport, options.geolocation
        self._context = await browser.new_context(
            proxy={"server": self._forwarder.address},
            viewport={"width": viewport.width, "height": viewport.height} if viewport else None,
            no_viewport=True if headed and viewport is None else None,
            device_scale_factor=options.device_scale_factor,
            locale=options.locale,
            timezone_id=options.timezone,
            user_agent=options.user_agent,
            geolocation=None if place is None else _geolocation(place),
            # Asks for any other are denied at once, instead of waiting for a person.
            permissions=list(options.permissions or ()),
            color_scheme=options.color_scheme,
            accept_downloads=True,  # so that they are ours to cancel, by name
            service_workers="allow",
        )
        self._context.on("page", self._on_page)
        # Not on the page: one that is opened for a download is gone before anybody could listen.
        self._context.on("download", self._on_download)
        self._context.on("close", lambda _: self._on_close())
        # Runs listen to requests: with this one always there, the driver is told once a window.
        self._context.on("request", lambda _: None)
        if headed:
            await guard_headed(self._context)

    async def open_tab(self, context_id: str, *, overlay: bool, guarding: Guarding) -> Tab:
        """Open one more tab, with or without the overlay, and the guard against people's input."""
        self._opening += 1
        try:
            shown = TabOverlay(f"{self.window_id} · {context_id}") if overlay else None
            tab = await Tab.open(context_id, self.context, shown, TabControl(guarding))
        finally:
            self._opening -= 1
        guard_page(tab.page, tab)
        self.tabs[context_id] = tab
        tab.page.on("crash", lambda _: self._on_crash(tab))
        tab.page.on("close", lambda _: self._on_page_closed(tab))
        self._unclaimed = [page for page in self._unclaimed if page is not tab.page]
        if not self._opening:
            strangers, self._unclaimed = self._unclaimed, []
            for page in strangers:
                await self._adopt(page)
        return tab

    def shown(self) -> Iterator[Shown]:
        """Return its pages, in the order in which they were opened."""
        for tab in self.tabs.values():
            yield Shown(window_id=self.window_id, page=tab.page, context_id=tab.context_id)
        for tab in self.tabs.values():
            for page, crashed in tab.extras.items():
                yield Shown(
                    window_id=self.window_id, page=page, opener=tab.context_id, crashed=crashed
                )

    def begin(self, context_id: str, egress: Egress, route: ProxyRoute | None = None) -> None:
        """Let the window go where the attempt on one of its tabs may go, by way of a proxy or not.

        A window that others work in, too, has no proxy of one attempt.

        Raises:
            ValueError: If an entry of `egress` or the proxy means nothing.
        """
        Policy.of(egress)
        self._upstream = None if route is None else Upstream.of(route)
        for tab in self.tabs.values():
            if tab.company is not None:
                tab.company()
        self._running[context_id] = egress
        self._apply_egress()

    def alone(self) -> bool:
        """Tell whether no more than one attempt runs in it."""
        return len(self._running) <= 1

    def finish(self, context_id: str) -> None:
        """The attempt is over; what it left running keeps its ways until the next one."""
        if len(self._running) > 1:
            del self._running[context_id]
            self._apply_egress()
        else:
            self._running.clear()

    async def reset(self, context_id: str) -> None:
        """Make its only tab as a new one.

        Raises:
            Unproven: If something may be left; the window must not be used again.
        """
        tab = self.tabs.get(context_id)
        if tab is None:
            raise Unproven("its page has closed")
        if len(self.context.pages) > 1:
            raise Unproven("there is more than one page in it")
        self._forwarder.shut()  # connections tell a server who comes again; the next run opens it
        await tab.reset()

    def abandon(self, context_id: str) -> None:
        """Cut the attempt on a tab off from the world, at once, unless others share its ways."""
        if set(self._running) <= {context_id}:
            self._forwarder.shut()

    def _apply_egress(self) -> None:
        # Tabs of one window share its connections, and whoever asked for them its identity.
        entries = dict.fromkeys(e for egress in self._running.values() for e in egress.allow)
        self._forwarder.apply(Policy.of(Egress(allow=tuple(entries))), self._upstream)

    async def close(self) -> bool:
        """Close it with all its tabs; tell whether the browser did so in time. May be repeated."""
        self._closing = True
        closed = self._context is None or self._lost or await self._close_context(self._context)
        await self._forwarder.close()
        return closed

    async def _close_context(self, context: BrowserContext) -> bool:
        try:
            return await within(CLOSE_S, context.close())
        except PlaywrightError:
            return all(page.is_closed() for page in context.pages)

    def lose(self) -> None:
        """The browser is gone: end the tabs, without a word to anybody."""
        self._lost = True
        tabs, self.tabs = self.tabs, {}
        for tab in tabs.values():
            tab.end(End.LOST)

    def _on_denied(self, denied: Denied) -> None:
        for tab in self.tabs.values():
            if tab.happenings is not None:
                tab.happenings.deny(denied)

    def _on_crash(self, tab: Tab) -> None:
        if self.tabs.get(tab.context_id) is tab:
            tab.end(End.CRASHED)
            self._tell(TabCrashed(tab.context_id))

    async def _on_page_closed(self, tab: Tab) -> None:
        self._on_tab_closed(tab)
        if not self.tabs and not self._closing and not self._lost:
            await self.close()  # an identity without a tab is a window nobody can see

    def _on_tab_closed(self, tab: Tab) -> None:
        if self.tabs.get(tab.context_id) is tab:
            del self.tabs[tab.context_id]
            tab.end(End.CLOSED)
            self._tell(TabGone(tab.context_id))

    def _on_close(self) -> None:
        for tab in tuple(self.tabs.values()):
            self._on_tab_closed(tab)
        self._tell(WindowGone(self.window_id))

    async def _on_download(self, download: Download) -> None:
        """Keep a download that a step waits for, and cancel every other."""
        tabs = self.tabs.values()
        page = download.page
        owner = next((tab for tab in tabs if page is tab.page or page in tab.extras), None)
        owner = owner or await self._owner(page)
        if owner is not None and owner.take(download):
            return
        if owner is not None:
            owner.note("download_cancelled", download.suggested_filename)
        with contextlib.suppress(PlaywrightError):
            await download.cancel()

    async def _on_page(self, page: Page) -> None:
        if self._opening:
            self._unclaimed.append(page)
        else:
            await self._adopt(page)

    async def _adopt(self, page: Page) -> None:
        """Take a page that a page has opened in, for as long as its attempt lasts."""
        owner = await self._owner(page)
        if owner is None or owner.happenings is None:
            await _close_quietly(page)
        elif len(owner.extras) >= owner.most_extras:
            owner.note("popup_closed", f"more than {owner.most_extras}: {page.url}")
            await _close_quietly(page)
        else:
            guard_page(page, owner)
            owner.note("popup_opened", page.url)
            await owner.adopt(page, lambda: self._tell(Stirred()))

    async def _owner(self, page: Page) -> Tab | None:
        running = [tab for tab in self.tabs.values() if tab.happenings is not None]
        if len(running) <= 1:
            return running[0] if running else None
        with contextlib.suppress(PlaywrightError):
            opener = await page.opener()
            for tab in running:
                if opener is tab.page or opener in tab.extras:
                    return tab
        return None


def _geolocation(place: Geolocation) -> PlaywrightGeolocation:
    return {
        "latitude": place.latitude,
        "longitude": place.longitude,
        "accuracy": place.accuracy,
    }


async def _close_quietly(page: Page) -> None:
    with contextlib.suppress(PlaywrightError):
        await within(CLOSE_S, page.close())
