"""What the machine knows of its connection to the farm."""

from agent.machine.tabs import Tabs
from farm.protocol import messages as wire

_DEFAULT_WINDOW_S = 10.0


class LinkState:
    """Whether the farm hears us, and since when it may not."""

    def __init__(self, hello: wire.Hello) -> None:
        self._hello = hello
        self.browser: str | None = None
        self.connected = False
        self._epoch_number: int | None = None
        self._epoch_is_over = False
        self._report_number = 0
        self._window_s = _DEFAULT_WINDOW_S
        self._interval_s = _DEFAULT_WINDOW_S / 4
        self._highest: wire.Token | None = None
        self._beat_at = 0.0
        self._beats: dict[str, float] = {}
        self._beat_number = 0
        self._confirmed_at: float | None = None
        """When we said the last thing that the farm is known to have heard."""

    @property
    def welcomed(self) -> bool:
        """Tell whether the farm has let us in on this link: what we say is heard."""
        return self._epoch_number is not None

    @property
    def reporting(self) -> bool:
        """Tell whether the farm knows the present epoch, so that reports mean something."""
        return self.welcomed and not self._epoch_is_over

    def is_of(self, epoch_number: int) -> bool:
        """Tell whether the farm speaks of the present epoch."""
        return self.reporting and self._epoch_number == epoch_number

    def hello(
        self,
        epoch: str,
        running: tuple[wire.Running, ...],
        now: float,
        user_windows_lost: int = 0,
    ) -> wire.Hello:
        """Return the first message of a link or of an epoch."""
        self.connected = True
        self._epoch_number, self._epoch_is_over = None, False
        self._beats = {"hello": now}
        return self._hello.model_copy(
            update={
                "epoch": epoch,
                "running": running,
                "highest_token": self._highest,
                "browser": self.browser,
                "user_windows_lost": user_windows_lost,
            }
        )

    def welcome(self, welcome: wire.Welcome, now: float) -> None:
        """Take in what the farm has granted."""
        self._epoch_number = welcome.epoch_number
        self._window_s = welcome.window_s
        self._interval_s = welcome.heartbeat_interval_s
        self._report_number = 0
        self._beat_at = now
        self._confirmed_at = self._beats.pop("hello", now)

    def down(self) -> None:
        """The link is gone."""
        self.connected = False
        self._epoch_number = None

    def forget_epoch(self) -> None:
        """The browser is gone; nothing is reported until the next one is welcomed."""
        self._epoch_is_over = True

    def highest(self, token: wire.Token) -> None:
        """Remember the highest token seen."""
        last = self._highest
        if last is None or (token.store_epoch, token.counter) > (last.store_epoch, last.counter):
            self._highest = token

    def report(self, tabs: Tabs, *, draining: bool, because: str = "") -> wire.Report:
        """Return the next report."""
        if self._epoch_number is None:
            raise ValueError("not welcomed yet")
        self._report_number += 1
        windows, contexts = tabs.picture()
        return wire.Report(
            epoch_number=self._epoch_number,
            number=self._report_number,
            draining=draining,
            draining_because=because,
            windows=windows,
            contexts=contexts,
        )

    def heartbeat_due(self, now: float) -> wire.Heartbeat | None:
        """Return a heartbeat if it is time for one."""
        if self._epoch_number is None or now - self._beat_at < self._interval_s:
            return None
        self._beat_at = now
        self._beat_number += 1
        nonce = str(self._beat_number)
        self._beats[nonce] = now
        return wire.Heartbeat(epoch_number=self._epoch_number, nonce=nonce)

    def answered(self, nonce: str) -> None:
        """The farm has heard the heartbeat of this nonce."""
        sent_at = self._beats.pop(nonce, None)
        if sent_at is not None:
            self._confirmed_at = sent_at
            self._beats = {n: at for n, at in self._beats.items() if at >= sent_at}

    def may_act(self, now: float) -> bool:
        """Tell whether the farm can't have taken us for gone yet.

        It does so somewhat more than one window after it last heard us; the moment we said what
        it is known to have heard is at or before that.
        """
        return self._confirmed_at is not None and now - self._confirmed_at <= self._window_s

    def must_give_up(self, now: float) -> bool:
        """Tell, once, that the farm may soon take us for gone."""
        if self._confirmed_at is None or self.may_act(now):
            return False
        self._confirmed_at = None
        return True
