"""A machine, what it has been told and what it has said; checks that its reports are consistent."""

from contextlib import AbstractAsyncContextManager

from agent.machine import Event, Instruction, Limits, Machine, Profile
from agent.machine import events as ev
from agent.ports import Channel, ChannelClosed
from farm.protocol import messages as wire
from farm.protocol.plan import Plan

FOR_EVER = Limits()
HELLO = wire.Hello(
    client_id="a",
    instance="i",
    epoch="",
    capacity=wire.Capacity(max_concurrency=2),
    capabilities=("pause", "resume", "takeover", "hand_back"),
)
CAPACITY = wire.Capacity(max_concurrency=2)
WINDOW_S = 10.0


def token(counter: int, store_epoch: int = 1) -> wire.Token:
    return wire.Token(store_epoch=store_epoch, counter=counter)


def plan(attempt_id: str = "att-1") -> Plan:
    return Plan(job_id="j", attempt_id=attempt_id, name="a job", steps=())


def begun(effect_id: str = "e") -> wire.EffectBegun:
    return wire.EffectBegun(effect_id=effect_id, index=0, effect="once")


def note(text: str = "n") -> wire.Notice:
    return wire.Notice(code="c", detail=text)


class NoChannels:
    """Dials nothing."""

    def dial(self, channel_id: str) -> AbstractAsyncContextManager[Channel]:
        raise ChannelClosed("no channels here")


class Scene:
    """Drives a machine; `said` is what it sent since it was last asked."""

    def __init__(
        self,
        *,
        identity_idle_s: float = 300.0,
        look_s: float | None = None,
        prepared: int = 0,
        limits: Limits = FOR_EVER,
        capacity: wire.Capacity = CAPACITY,
        hello: wire.Hello = HELLO,
    ) -> None:
        self._epochs = 0
        self._capacity = capacity
        self.machine = Machine(
            Profile(
                hello=hello,
                identity_idle_s=identity_idle_s,
                look_s=look_s,
                prepared_windows=prepared,
                limits=limits,
            ),
            new_epoch=self._epoch,
        )
        self.now = 100.0
        self.sent: list[wire.FromAgent] = []
        self.done: list[Instruction] = list(self.machine.begin())

    def _epoch(self) -> str:
        self._epochs += 1
        return f"epoch-{self._epochs}"

    def on(self, event: Event) -> list[Instruction]:
        instructions = self.machine.handle(event, self.now)
        for instruction in instructions:
            if isinstance(instruction, ev.Send):
                self.sent.append(instruction.message)
        self.done += instructions
        return [i for i in instructions if not isinstance(i, ev.Send)]

    def hear(self, message: wire.ToAgent) -> list[Instruction]:
        return self.on(ev.Heard(message))

    def said(self) -> list[wire.FromAgent]:
        sent, self.sent = self.sent, []
        return sent

    def reports(self) -> list[wire.Report]:
        return [m for m in self.said() if isinstance(m, wire.Report)]

    def passes(self, seconds: float) -> list[Instruction]:
        self.now += seconds
        return self.on(ev.Tick())

    # Steps of a story

    def welcomed(self, number: int = 1, epoch: str = "epoch-1") -> None:
        self.on(ev.BrowserStarted(epoch, "Chrome/1"))
        self.on(ev.LinkUp())
        self.welcome(number)

    def welcome(self, number: int = 1) -> None:
        self.hear(
            wire.Welcome(
                epoch_number=number,
                capacity=self._capacity,
                heartbeat_interval_s=2.5,
                window_s=WINDOW_S,
            )
        )

    def opens(self, identity: str | None = None, command_id: str = "open") -> str:
        body = wire.OpenWindow(identity=identity)
        (order,) = self.hear(wire.Command(command_id=command_id, body=body))
        assert isinstance(order, ev.OpenWindow)
        self.on(ev.Opened(command_id))
        return order.context_id

    def runs(
        self, tab: str, counter: int = 1, run: str = "run", *, last: bool = False
    ) -> list[Instruction]:
        return self.hear(
            wire.Command(
                command_id=run,
                context_id=tab,
                token=token(counter),
                body=wire.RunPlan(plan=plan(f"att-{run}"), last=last),
            )
        )

    def releases(self, tab: str, counter: int = 1) -> list[Instruction]:
        return self.hear(
            wire.Command(
                command_id=f"release-{counter}",
                context_id=tab,
                token=token(counter),
                body=wire.Release(),
            )
        )

    def ends(
        self, outcome: str = "succeeded", *, run: str = "run", page_gone: bool = False
    ) -> list[Instruction]:
        return self.on(ev.RunEnded(run, ev.Outcome(outcome=outcome, page_gone=page_gone)))

    def notes(
        self, event: wire.AttemptEvent | None = None, *, urgent: bool = False, run: str = "run"
    ) -> list[Instruction]:
        return self.on(ev.Noted(run, event or note(), 5.0, urgent))

    def running(self, identity: str | None = None, *, last: bool = False) -> str:
        """A welcomed agent with one run on one tab; nothing of it is left to be read."""
        self.welcomed()
        tab = self.opens(identity)
        assert [type(i) for i in self.runs(tab, last=last)] == [ev.StartRun]
        self.said()
        return tab


def of(kind: type, messages: list[wire.FromAgent]) -> list[wire.FromAgent]:
    return [m for m in messages if isinstance(m, kind)]


def result_of(messages: list[wire.FromAgent]) -> wire.Result:
    (found,) = of(wire.Result, messages)
    assert isinstance(found, wire.Result)
    return found


def contexts(report: wire.FromAgent) -> list[tuple[str, str, bool]]:
    assert isinstance(report, wire.Report)
    return [(c.context_id, c.state, c.clean) for c in report.contexts]
