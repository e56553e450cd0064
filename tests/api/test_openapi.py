import json
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from farm.api.app import API
from farm.api.openapi import document
from tests.api.stack import Stack


@pytest.fixture
async def served(stack: Stack) -> dict[str, Any]:
    async with stack.http.get(f"{stack.url}/openapi.json", headers=stack.as_admin()) as response:
        assert response.content_type == "application/json"
        found: dict[str, Any] = await response.json()
        return found


async def test_the_description_is_valid_openapi(served: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(served).validate()
    assert served["openapi"].startswith("3.1")


async def test_every_route_is_described_with_how_it_is_guarded(
    stack: Stack, served: dict[str, Any]
) -> None:
    described = {
        (method.upper(), path) for path, item in served["paths"].items() for method in item
    }
    serves = {
        (route.method, route.resource.canonical)
        for route in stack.app.router.routes()
        if route.resource is not None
    }
    assert described == serves
    for route in API:
        operation = served["paths"][route.path][route.method.lower()]
        wanted: list[Any] = [] if route.access == "open" else [{route.access: []}]
        assert operation["security"] == wanted


async def test_operations_have_names_of_their_own(served: dict[str, Any]) -> None:
    names = [one["operationId"] for item in served["paths"].values() for one in item.values()]
    assert len(names) == len(set(names))


def test_every_reference_leads_somewhere() -> None:
    whole = document(API)
    text = json.dumps(whole)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in whole["components"]["schemas"]


async def test_what_is_answered_is_what_is_described(stack: Stack, served: dict[str, Any]) -> None:
    job_id = await stack.submit()
    async with stack.http.get(
        f"{stack.url}/v1/jobs/{job_id}", headers=stack.as_admin()
    ) as response:
        body = await response.json()
    schema = {"$ref": "#/components/schemas/JobDetail", "components": served["components"]}
    OAS31Validator(schema).validate(body)
