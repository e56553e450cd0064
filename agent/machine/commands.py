"""What becomes of what the farm orders."""

from agent.machine import events as ev
from agent.machine.answers import intervened, no_channel, refusal
from agent.machine.events import Instruction
from agent.machine.known import Known
from agent.machine.state import Run
from agent.machine.tabs import kind_of
from farm.protocol import messages as wire

CHANNELS = frozenset({"live"})
"""The kinds of data channel there are."""


class Commands:
    """Decides about orders, by what is known and by what the agent can do."""

    def __init__(self, known: Known, hello: wire.Hello) -> None:
        self._known = known
        self._link, self._tabs, self._runs = known.link, known.tabs, known.runs
        self._flows_only = hello.client_type == "console"
        self._most_flows = hello.capacity.max_flows
        self._can = frozenset(hello.capabilities)

    def command(self, command: wire.Command, now: float) -> list[Instruction]:
        """Do what is ordered, or say why not."""
        match command.body:
            case wire.Release():
                return self._release(command, now)
            case wire.Probe():
                return self._probe(command)
            case _ if self._known.takes_nothing:
                return [refusal(command, "draining", self._known.why_nothing())]
            case _ if not self._link.reporting:
                return [refusal(command, "busy", "the browser is starting")]
            case wire.OpenWindow() | wire.OpenTab() | wire.CreateFlow():
                return self._open(command, command.body, now)
            case wire.RunPlan():
                return self._run(command, command.body, now)

    def _open(
        self,
        command: wire.Command,
        body: wire.OpenWindow | wire.OpenTab | wire.CreateFlow,
        now: float,
    ) -> list[Instruction]:
        if self._flows_only is not isinstance(body, wire.CreateFlow):
            has, lacks = ("flows", "windows") if self._flows_only else ("windows", "flows")
            return [refusal(command, "not_understood", f"this agent has {has}, not {lacks}")]
        match body:
            case wire.OpenWindow():
                return self._open_window(command.command_id, body, now)
            case wire.OpenTab(window_id=window_id):
                return self._open_tab(command, window_id)
            case wire.CreateFlow():
                return self._open_flow(command, now)

    def _open_flow(self, command: wire.Command, now: float) -> list[Instruction]:
        if self._tabs.flows >= self._most_flows:
            return [refusal(command, "busy", f"{self._most_flows} flows are there already")]
        self._tabs.open_flow(command.command_id, now)
        return self._known.opened(command.command_id, now)

    def _open_window(self, command_id: str, body: wire.OpenWindow, now: float) -> list[Instruction]:
        if body.identity is None:
            self._known.stock.asked(kind_of(body))
        if self._tabs.claim(command_id, body) is not None:
            return []  # what was to be prepared is what is asked for
        tab = self._tabs.open_window(command_id, body, now)
        resets = body.resets and body.identity is None
        return [ev.OpenWindow(command_id, tab.window_id, tab.context_id, body.options, resets)]

    def _open_tab(self, command: wire.Command, window_id: str) -> list[Instruction]:
        tab = self._tabs.open_tab(command.command_id, window_id)
        if tab is None:
            return [refusal(command, "unknown_context", f"no window {window_id}")]
        return [ev.OpenTab(command.command_id, window_id, tab.context_id)]

    def _run(self, command: wire.Command, body: wire.RunPlan, now: float) -> list[Instruction]:
        context_id, token = command.context_id, command.token
        if context_id is None or token is None or self._known.epoch is None:
            return [refusal(command, "not_understood", "a run needs a context and a token")]
        if self._runs.get(command.command_id) is not None:
            return [ev.Send(wire.Ack(command_id=command.command_id))]  # said twice
        refused = self._tabs.hold(context_id, token, command.command_id, now)
        if refused is not None:
            return [refusal(command, refused)]
        self._link.highest(token)
        run = Run(
            command_id=command.command_id,
            attempt_id=body.plan.attempt_id,
            context_id=context_id,
            token=token,
            epoch=self._known.epoch,
            last=body.last,
        )
        self._runs.start(run)
        self._known.recycling.used()
        window_id = self._tabs.window_of(context_id)
        start = ev.StartRun(run.command_id, context_id, window_id, token, body.plan)
        return [ev.Send(wire.Ack(command_id=command.command_id)), start]

    def _probe(self, command: wire.Command) -> list[Instruction]:
        if command.context_id is not None and command.token is not None:
            refused = self._tabs.deny(command.context_id, command.token)
            if refused is not None:
                return [refusal(command, refused)]
        return [ev.RunProbe(command.command_id)]

    def open_channel(self, asked: wire.OpenChannel) -> Instruction:
        """Dial a data channel, or say why not."""
        if asked.kind not in CHANNELS or self._flows_only:  # a flow shows nothing
            return no_channel(asked, "not_understood", f"no channels of kind {asked.kind!r}")
        if not self._link.reporting:
            return no_channel(asked, "unavailable", "the browser is starting")
        if not self._link.is_of(asked.epoch_number):
            return no_channel(asked, "stale_epoch", "that life of the browser is over")
        if not self._tabs.there(asked.context_id):
            return no_channel(asked, "unknown_context", f"there is no tab {asked.context_id}")
        return ev.OpenChannel(asked)

    def cancel(self, command_id: str, reason: str) -> list[Instruction]:
        """Stop a run."""
        if self._runs.get(command_id) is None:
            # It never came here, or is long over; whoever still waits for it must not for ever.
            refusal = wire.Ack(
                command_id=command_id, refused="unknown_context", detail="no such run"
            )
            return [ev.Send(refusal)]
        return self._runs.cancel(command_id, reason)

    def intervene(self, wanted: wire.Intervene) -> list[Instruction]:
        """Let a person act on a run, or say why not."""
        run = self._runs.get(wanted.command_id)
        if wanted.kind not in self._can:
            return [intervened(wanted.intervention_id, "capability_not_supported")]
        if run is None or not run.running or run.token != wanted.token:
            return [intervened(wanted.intervention_id, "stale_target", "no such run any more")]
        return [ev.Intervene(run.context_id, wanted)]

    def _release(self, command: wire.Command, now: float) -> list[Instruction]:
        if command.context_id is None:
            return []
        run = self._runs.on(command.context_id)
        if run is not None and run.running:
            if command.token == run.token:
                return self._runs.cancel(run.command_id, "superseded")
            return []
        return self._tabs.release(command.context_id, command.token, now)
