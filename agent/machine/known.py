"""What an agent knows, for those that decide by it."""

from dataclasses import dataclass

from agent.machine import events as ev
from agent.machine.answers import done, failed
from agent.machine.events import Instruction
from agent.machine.link import LinkState
from agent.machine.recycling import Recycling
from agent.machine.runs import Runs
from agent.machine.stock import Stock
from agent.machine.surroundings import Looks
from agent.machine.tabs import Tabs


@dataclass(slots=True, kw_only=True, eq=False)
class Known:
    """One picture, that all parts of the machine change."""

    link: LinkState
    tabs: Tabs
    runs: Runs
    stock: Stock
    recycling: Recycling
    looks: Looks
    epoch: str | None = None
    """The life of the browser; None between two."""
    short: str | None = None
    """What there is too little of on the disk."""
    deadline: float | None = None
    """When a stopping agent stops waiting."""

    @property
    def draining(self) -> bool:
        """Tell whether the agent is to leave, and takes nothing new."""
        return self.deadline is not None

    @property
    def takes_nothing(self) -> bool:
        """Tell whether nothing new is begun: it drains, as its browser may, or the disk is full."""
        return self.draining or self.short is not None or self.recycling.draining

    def why_nothing(self) -> str:
        """Say why, where it is not that the agent leaves."""
        if not self.draining and self.short is not None:
            return f"low_disk: {self.short}"
        if not self.draining and self.recycling.draining:
            return f"recycling: {self.recycling.reason}"
        return ""

    def report(self) -> ev.Send:
        """Tell the farm the present picture."""
        because = "low_disk" if self.short is not None else ""
        if not because and self.recycling.draining:
            because = f"recycling: {self.recycling.reason}"
        report = self.link.report(self.tabs, draining=self.takes_nothing, because=because)
        return ev.Send(report)

    def opened(self, command_id: str, now: float) -> list[Instruction]:
        """Tell the farm that what it has asked for is there, or is gone again."""
        tab = self.tabs.opened(command_id, now)
        if tab is None:
            return [failed(command_id, "it closed while it was being opened")]
        # The report goes first, so that the farm finds the context when it reads the result.
        report: list[Instruction] = []
        if self.link.reporting:
            report.append(self.report())
        value = {"context_id": tab.context_id}
        if (window_id := self.tabs.window_of(tab.context_id)) is not None:
            value["window_id"] = window_id
        return [*report, done(command_id, value)]
