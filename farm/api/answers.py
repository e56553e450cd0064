"""Answers, and what can be read off a request."""

from http import HTTPStatus
from typing import TypeVar

from aiohttp import ClientPayloadError, web
from pydantic import BaseModel, ValidationError

from farm.api.bodies import invalid
from farm.errors import InvalidInputError, TooLargeError

Body = TypeVar("Body", bound=BaseModel)
BROKEN = (ClientPayloadError, web.RequestPayloadError)
"""What aiohttp raises for a body that breaks off, or is not encoded as it says."""


def answer(
    body: BaseModel, *, status: HTTPStatus = HTTPStatus.OK, location: str | None = None
) -> web.Response:
    """Answer with a model as JSON."""
    return web.Response(
        text=body.model_dump_json(by_alias=True),
        status=status,
        content_type="application/json",
        headers={} if location is None else {"Location": location},
    )


async def body_of(request: web.Request, model: type[Body]) -> Body:
    """Return the JSON body as a model. Raises InvalidInputError, pointing at what is wrong."""
    try:
        return model.model_validate_json(await raw_body(request))
    except ValidationError as error:
        raise invalid(error, model) from None


async def large_body_of(request: web.Request, model: type[Body], *, max_bytes: int) -> Body:
    """Return a JSON body that may be larger than other bodies, as a model.

    Raises:
        InvalidInputError: Pointing at what is wrong.
        TooLargeError: If it is larger than that.
    """
    refused = TooLargeError(f"the body has at most {max_bytes} bytes", max_bytes=max_bytes)
    if (request.content_length or 0) > max_bytes:
        raise refused
    read = bytearray()
    try:
        async for chunk in request.content.iter_any():
            read += chunk
            if len(read) > max_bytes:
                raise refused
    except BROKEN as error:
        raise InvalidInputError(f"the body is broken: {error}") from None
    try:
        return model.model_validate_json(bytes(read))
    except ValidationError as error:
        raise invalid(error, model) from None


async def raw_body(request: web.Request) -> bytes:
    """Return the body's bytes; over the limit it is refused with 413."""
    try:
        return await request.read()
    except BROKEN as error:
        raise InvalidInputError(f"the body is broken: {error}") from None


def number_in_query(
    request: web.Request, name: str, *, default: float, least: float, most: float
) -> float:
    """Return a number of the query within its bounds. Raises InvalidInputError."""
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InvalidInputError(
            f"{name} is a number from {least:g} to {most:g}, not {text!r}", parameter=name
        )
    return value


def whole_in_query(request: web.Request, name: str, *, default: int, least: int, most: int) -> int:
    """Return a whole number of the query within its bounds. Raises InvalidInputError."""
    value = number_in_query(request, name, default=default, least=least, most=most)
    if value != int(value):
        raise InvalidInputError(f"{name} is a whole number", parameter=name)
    return int(value)
