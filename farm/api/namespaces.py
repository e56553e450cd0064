"""`/v1/namespaces`: which there are, and where their work is done."""

from http import HTTPStatus

from aiohttp import web

from farm.api.answers import answer, body_of
from farm.api.deps import deps_of, namespace_of, operator_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import moment
from farm.core.model import Namespace
from farm.core.namespaces import NamespaceRecord
from farm.core.tiers import NodePlacement, Pinned, Prefer, Unplaced
from farm.manager.namespaces import in_words
from farm.protocol.resources import NamespaceCreate, NamespaceList, NamespaceView, PlacementBody


async def list_namespaces(request: web.Request) -> web.Response:
    """List all to the operator, and to others their own."""
    found = await deps_of(request).namespaces.all()
    own = None if operator_of(request) else namespace_of(request)
    return answer(NamespaceList(items=tuple(_view(r) for r in found if own in (None, r.name))))


async def create_namespace(request: web.Request) -> web.Response:
    """Make one, whatever the policy says of agents; one that is there is 200."""
    operator_of(request, required=True)
    wanted = await body_of(request, NamespaceCreate)
    record, new = await deps_of(request).namespaces.create(Namespace(wanted.name))
    return answer(_view(record), status=HTTPStatus.CREATED if new else HTTPStatus.OK)


async def place_namespace(request: web.Request) -> web.Response:
    """Say where the work of one may be done, from now on."""
    operator_of(request, required=True)
    wanted = await body_of(request, PlacementBody)
    name = Namespace(request.match_info["name"])
    return answer(_view(await deps_of(request).namespaces.place(name, _placement(wanted))))


def _placement(wanted: PlacementBody) -> NodePlacement:
    labels = frozenset(wanted.labels)
    match wanted.placement:
        case "unplaced":
            return Unplaced()
        case "prefer":
            return Prefer(labels=labels)
        case "pinned":
            return Pinned(labels=labels)


def _view(record: NamespaceRecord) -> NamespaceView:
    kind, labels = in_words(record.placement)
    return NamespaceView(
        name=record.name,
        origin=record.origin.value,
        created_at=moment(record.created_at),
        placement=kind,
        labels=tuple(labels),
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/namespaces",
        handler=list_namespaces,
        summary="List the namespaces",
        access=Access.ADMIN,
        answers=(Answer(model=NamespaceList),),
    ),
    Route(
        method="POST",
        path="/v1/namespaces",
        handler=create_namespace,
        summary="Make a namespace",
        access=Access.ADMIN,
        takes_body=True,
        body=NamespaceCreate,
        answers=(
            Answer(status=HTTPStatus.CREATED, model=NamespaceView),
            Answer(description="It was there.", model=NamespaceView),
        ),
    ),
    Route(
        method="PUT",
        path="/v1/namespaces/{name}/placement",
        handler=place_namespace,
        summary="Say where the work of a namespace is done",
        access=Access.ADMIN,
        takes_body=True,
        body=PlacementBody,
        answers=(Answer(model=NamespaceView),),
    ),
)
