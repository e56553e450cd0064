"""The body of every error response: RFC 9457 problem details."""

from pydantic import BaseModel, ConfigDict, Field

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "/problems/"


class Place(BaseModel):
    """One thing that is wrong with what was sent, and where."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pointer: str
    """RFC 6901 JSON pointer into the body; empty for the body as a whole."""
    detail: str
    suggestion: str | None = None
    """The nearest word that would have done, such as a known key."""
    line: int | None = None
    """Counted from 1, where the body was text with lines."""


class Problem(BaseModel):
    """One problem; extension members sit beside the standard ones."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    """`/problems/` and the slug of the error, such as `/problems/not-found`."""
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str | None = None
    """The path of the request."""
    request_id: str | None = None
    """What the farm's log has the request under."""
    errors: tuple[Place, ...] | None = None
    """With `/problems/invalid-input`: every place that is wrong."""

    @property
    def slug(self) -> str:
        """The last part of `type`, by which programs tell problems apart."""
        return self.type.rsplit("/", 1)[-1]
