"""`/openapi.json`: OpenAPI 3.1, made from the route table and the handlers' own models."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from farm.api.routes import ROUTES as ROUTE_TABLE
from farm.api.routes import Access, Answer, Parameter, Route
from farm.protocol.problems import MEDIA_TYPE, Problem

_REF = "#/components/schemas/{model}"
_PLACEHOLDER = re.compile(r"{(\w+)}")


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Describe the routes; every operation may also answer with a problem."""
    table = tuple(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tabfarm",
            "version": "1",
            "description": "A self-hosted farm of browser workers.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(table),
            "securitySchemes": {
                access.value: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"A token of scope {access.value}.",
                }
                for access in (Access.ADMIN, Access.AGENT)
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PLACEHOLDER.findall(route.path)
    ]
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "parameters": path + [_parameter(parameter) for parameter in route.parameters],
        "responses": {str(int(answer.status)): _response(answer) for answer in route.answers}
        | {
            "default": {
                "description": "A problem.",
                "content": {MEDIA_TYPE: {"schema": _ref(Problem)}},
            }
        },
        "security": [] if route.access is Access.OPEN else [{route.access.value: []}],
    }
    if route.takes_body:
        schema: dict[str, Any] = {} if route.body is None else dict(_ref(route.body))
        if route.body_may_be_shorter:
            schema = {"anyOf": [schema, {"type": "object"}]}
        operation["requestBody"] = {
            "required": not route.body_may_be_left_out,
            "content": {media: {"schema": schema} for media in route.body_media_types}
            | {media: {"schema": _ref(model)} for media, model in route.other_bodies.items()},
        }
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required,
        "description": parameter.description,
        "schema": {"type": parameter.type},
    }


def _response(answer: Answer) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.description}
    if not answer.empty:
        schema = {} if answer.model is None else _ref(answer.model)
        response["content"] = {media: {"schema": schema} for media in answer.media_types}
    return response


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def _schemas(routes: Iterable[Route]) -> Mapping[str, Any]:
    given = {answer.model for route in routes for answer in route.answers if answer.model}
    taken = {route.body for route in routes if route.body}
    taken |= {model for route in routes for model in route.other_bodies.values()}
    _, top = models_json_schema(
        [(model, "serialization") for model in sorted(given | {Problem}, key=_name)]
        + [(model, "validation") for model in sorted(taken, key=_name)],
        ref_template=_REF,
    )
    schemas: Mapping[str, Any] = top["$defs"]
    return schemas


def _name(model: type[BaseModel]) -> str:
    return model.__name__


async def openapi(request: web.Request) -> web.Response:
    """Return the description of this API."""
    return web.json_response(document(request.app[ROUTE_TABLE].values()))


ROUTES = (
    Route(
        method="GET",
        path="/openapi.json",
        handler=openapi,
        summary="This description",
        access=Access.ADMIN,
        answers=(Answer(description="OpenAPI 3.1."),),
    ),
)
