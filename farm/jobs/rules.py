"""What attempts are held to."""

from dataclasses import dataclass

from farm.protocol.plan import Egress


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRules:
    """What attempts are held to."""

    egress: Egress
    renew_interval_s: float
    retry_initial_s: float
    retry_max_s: float
    max_free_losses: int
    recording_max_bytes: int = 128 * 1024 * 1024
