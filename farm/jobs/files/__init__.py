"""Job files: from bytes to a checked `JobSpec`, and from there to the plan of an attempt."""

from farm.jobs.files.parsing import parse
from farm.jobs.files.places import Place, places
from farm.jobs.files.planning import (
    browser_options,
    canonical_hash,
    falls_back_to,
    identity,
    match_key,
    place_of,
    private_hosts,
    requirements,
    to_plan,
)
from farm.jobs.files.problems import MAX_PROBLEMS, ProblemBody
from farm.jobs.files.reading import MAX_BYTES
from farm.jobs.files.spec import JobSpec

__all__ = [
    "MAX_BYTES",
    "MAX_PROBLEMS",
    "JobSpec",
    "Place",
    "ProblemBody",
    "browser_options",
    "canonical_hash",
    "falls_back_to",
    "identity",
    "match_key",
    "parse",
    "place_of",
    "places",
    "private_hosts",
    "requirements",
    "to_plan",
]
