"""Whatever comes, in whatever order, sense or nonsense, the machine keeps its promises."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.machine import events as ev
from farm.protocol import messages as wire
from tests.agent.scene import Scene, begun, note, plan, token

tabs = st.sampled_from(["T1", "T2", "T3", "T4", "T9"])
windows = st.sampled_from(["W1", "W2", "W3", "W9"])
runs = st.sampled_from(["run-1", "run-2", "run-3", "run-4"])
opens = st.sampled_from(["open-1", "open-2", "open-3"])
tokens = st.builds(token, st.integers(1, 6), st.integers(1, 2))


class AnAgent(RuleBasedStateMachine):
    @initialize(welcomed=st.booleans())
    def begin(self, welcomed: bool) -> None:
        capacity = wire.Capacity(max_concurrency=2, max_windows=4)
        self.scene = Scene(prepared=1, capacity=capacity)
        self.running: dict[str, str] = {}
        """Runs started and not ended, with their tabs."""
        self.unstored: set[str] = set()
        self.stored: dict[str, int] = {}
        self.last_seq: dict[str, int] = {}
        self.epochs = 0
        self.picture: object = None
        """What the farm was last told on this link in this epoch."""
        self.number = 0
        self.over = False
        if welcomed:
            self.take(ev.BrowserStarted("first", "c"))
            self.take(ev.LinkUp())
            self.hears_a_welcome()

    def take(self, event: ev.Event) -> None:
        if self.over:
            return
        scene = self.scene
        scene.sent.clear()
        instructions = scene.on(event)
        for instruction in instructions:
            match instruction:
                case ev.StartRun(command_id, context_id):
                    assert command_id not in self.running
                    assert context_id not in self.running.values()
                    self.running[command_id] = context_id
                    self.unstored.add(command_id)
                    self.stored[command_id] = self.last_seq[command_id] = 0
                case ev.CancelRun(command_id):
                    assert command_id in self.running
                case ev.Exit():
                    self.over = True
                case _:
                    pass
        self._hear_out(scene.said())

    def _hear_out(self, messages: list[wire.FromAgent]) -> None:
        for message in messages:
            match message:
                case wire.Hello():
                    self.picture, self.number = None, 0
                    listed = {run.command_id for run in message.running}
                    assert self.unstored <= listed
                case wire.Report():
                    assert message.number == self.number + 1
                    self.number = message.number
                    self.picture = (message.windows, message.contexts)
                    known = {window.window_id for window in message.windows}
                    assert {c.window_id for c in message.contexts} == known
                    for context in message.contexts:
                        assert not (context.clean and context.token is not None)
                        assert not (context.clean and context.state not in ("active", "idle"))
                case wire.Events(command_id=command_id):
                    numbers = [entry.seq for entry in message.entries]
                    assert numbers == list(range(numbers[0], numbers[-1] + 1))
                    assert numbers[0] <= self.last_seq[command_id] + 1
                    self.last_seq[command_id] = max(self.last_seq[command_id], numbers[-1])
                case wire.Result(attempt_id=str(), command_id=command_id):
                    assert command_id in self.unstored
                    assert message.seq == self.last_seq[command_id]
                case _:
                    pass

    # The browser

    @rule()
    def a_browser_starts(self) -> None:
        self.epochs += 1
        self.take(ev.BrowserStarted(f"b{self.epochs}", "c"))

    @rule()
    def the_browser_is_lost(self) -> None:
        self.take(ev.BrowserLost("x"))

    @rule()
    def no_browser_starts(self) -> None:
        self.take(ev.BrowserFailed("x"))

    @rule(tab=tabs, crash=st.booleans())
    def a_tab_goes(self, tab: str, crash: bool) -> None:
        self.take(ev.TabCrashed(tab) if crash else ev.TabGone(tab))

    @rule(window=windows)
    def a_window_goes(self, window: str) -> None:
        self.take(ev.WindowGone(window))

    @rule(command_id=opens, well=st.booleans())
    def something_was_opened(self, command_id: str, well: bool) -> None:
        self.take(ev.Opened(command_id) if well else ev.OpenFailed(command_id, "no"))

    @rule(tab=tabs, well=st.booleans())
    def something_was_prepared(self, tab: str, well: bool) -> None:
        self.take(ev.Prepared(tab) if well else ev.PrepareFailed(tab, "no"))

    @rule(tab=tabs, clean=st.booleans())
    def a_tab_was_made_clean(self, tab: str, clean: bool) -> None:
        self.take(ev.Reset(tab, clean))

    # Runs

    @rule(run=runs, urgent=st.booleans())
    def a_run_tells(self, run: str, urgent: bool) -> None:
        self.take(ev.Noted(run, begun() if urgent else note(), 1.0, urgent))

    @rule(
        run=runs, outcome=st.sampled_from(["succeeded", "failed", "cancelled"]), gone=st.booleans()
    )
    def a_run_ends(self, run: str, outcome: str, gone: bool) -> None:
        self.running.pop(run, None)
        self.take(ev.RunEnded(run, ev.Outcome(outcome=outcome, page_gone=gone)))

    # The farm

    @rule()
    def the_link_is_there(self) -> None:
        self.take(ev.LinkDown())
        self.take(ev.LinkUp())

    @rule()
    def the_link_is_gone(self) -> None:
        self.take(ev.LinkDown())

    @rule()
    def hears_a_welcome(self) -> None:
        if not self.scene.machine._link.connected or self.scene.machine._known.epoch is None:
            return
        self.number = 0
        self.take(
            ev.Heard(
                wire.Welcome(
                    epoch_number=1,
                    capacity=wire.Capacity(max_concurrency=2, max_windows=4),
                    heartbeat_interval_s=2.5,
                    window_s=10,
                )
            )
        )

    @rule(command_id=opens, identity=st.sampled_from([None, "shop"]), resets=st.booleans())
    def is_told_to_open_a_window(self, command_id: str, identity: str | None, resets: bool) -> None:
        body = wire.OpenWindow(identity=identity, resets=resets)
        self.take(ev.Heard(wire.Command(command_id=command_id, body=body)))

    @rule(command_id=opens, window=windows)
    def is_told_to_open_a_tab(self, command_id: str, window: str) -> None:
        body = wire.OpenTab(window_id=window)
        self.take(ev.Heard(wire.Command(command_id=command_id, body=body)))

    @rule(run=runs, tab=tabs, token=tokens, last=st.booleans())
    def is_told_to_run(self, run: str, tab: str, token: wire.Token, last: bool) -> None:
        body = wire.RunPlan(plan=plan(run), last=last)
        self.take(ev.Heard(wire.Command(command_id=run, context_id=tab, token=token, body=body)))

    @rule(tab=tabs, token=st.none() | tokens)
    def is_told_to_release(self, tab: str, token: wire.Token | None) -> None:
        self.take(
            ev.Heard(wire.Command(command_id="r", context_id=tab, token=token, body=wire.Release()))
        )

    @rule(run=runs, seq=st.integers(0, 5), done=st.booleans(), refused=st.booleans())
    def is_told_what_is_stored(self, run: str, seq: int, done: bool, refused: bool) -> None:
        known = self.last_seq.get(run, 0)
        if done or refused:
            if run not in self.running or (done and refused):
                self.unstored.discard(run)
            if done and not refused and run in self.running:
                return  # a farm stores no end that was not said
        self.take(
            ev.Heard(wire.Stored(command_id=run, seq=min(seq, known), done=done, refused=refused))
        )

    @rule(run=runs)
    def is_told_to_cancel(self, run: str) -> None:
        self.take(ev.Heard(wire.Cancel(command_id=run)))

    @rule(run=runs, token=tokens, kind=st.sampled_from(["pause", "takeover", "message"]))
    def is_told_to_intervene(self, run: str, token: wire.Token, kind: str) -> None:
        wanted = {"intervention_id": "i", "command_id": run, "token": token, "kind": kind}
        self.take(ev.Heard(wire.Intervene.model_validate({**wanted, "by": "a"})))

    @rule(nonce=st.integers(0, 9))
    def hears_a_ping(self, nonce: int) -> None:
        self.take(ev.Heard(wire.Ping(nonce=str(nonce))))

    # Time

    @rule(seconds=st.sampled_from([0.1, 3.0, 11.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.scene.now += seconds
        self.take(ev.Tick())

    @rule()
    def is_told_to_drain(self) -> None:
        if self.epochs % 3 == 2:
            self.take(ev.Heard(wire.Drain(deadline_s=20)))

    @invariant()
    def nothing_unstored_is_forgotten_and_the_farm_knows_the_picture(self) -> None:
        if not hasattr(self, "scene") or self.over:
            return
        machine = self.scene.machine
        kept = {run.command_id for run in machine.runs.all()}
        assert self.unstored <= kept
        assert {r.command_id for r in machine.runs.all() if r.running} == set(self.running)
        for run in machine.runs.all():
            numbers = [entry.seq for entry in run.unstored]
            if numbers:
                assert numbers == list(range(numbers[0], run.last_seq + 1))
        if machine._link.reporting:
            changed = machine.tabs.changed
            assert machine.tabs.picture() == self.picture
            machine.tabs.changed = changed


AnAgent.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestAnAgent = AnAgent.TestCase
