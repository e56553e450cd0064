"""`/v1/identities`: what windows are to be, and to remember, from one job to the next."""

from http import HTTPStatus

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from farm.api.answers import answer, large_body_of
from farm.api.deps import deps_of, namespace_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import moment
from farm.core.model import Namespace
from farm.errors import InvalidInputError
from farm.jobs.identities import IdentityBook
from farm.protocol.identities import (
    IdentityList,
    IdentityPut,
    IdentityView,
    Name,
    ProxyView,
    StateView,
    UseView,
)
from farm.protocol.plan import BrowserOptions
from farm.stores.identity_records import SavedIdentity

_BESIDE_THE_STATE = 64 * 1024
_NAME: TypeAdapter[str] = TypeAdapter(Name)


async def list_identities(request: web.Request) -> web.Response:
    """List the identities of the namespace, by name."""
    book, namespace = deps_of(request).identities, namespace_of(request)
    found = await book.store.identities(namespace)
    return answer(IdentityList(items=tuple([await _view(book, one) for one in found])))


async def show_identity(request: web.Request) -> web.Response:
    """Show one, without what is secret of it."""
    book = deps_of(request).identities
    found = await book.store.identity(namespace_of(request), request.match_info["name"])
    return answer(await _view(book, found))


async def put_identity(request: web.Request) -> web.Response:
    """Make one, or change what the body says of it."""
    book, name = deps_of(request).identities, _name_in(request)
    limit = book.max_bytes + _BESIDE_THE_STATE
    wanted = await large_body_of(request, IdentityPut, max_bytes=limit)
    identity, new = await book.put(namespace_of(request), name, wanted)
    deps_of(request).jobs.look_again()  # jobs may wait for just that
    status = HTTPStatus.CREATED if new else HTTPStatus.OK
    return answer(await _view(book, identity), status=status)


async def delete_identity(request: web.Request) -> web.Response:
    """Forget one with all it remembers."""
    namespace: Namespace = namespace_of(request)
    await deps_of(request).identities.delete(namespace, request.match_info["name"])
    return web.Response(status=HTTPStatus.NO_CONTENT)


def _name_in(request: web.Request) -> str:
    name = request.match_info["name"]
    try:
        return _NAME.validate_python(name)
    except ValidationError:
        raise InvalidInputError(
            "an identity's name has 1 to 64 of: letters, digits, _ . -", identity=name[:64]
        ) from None


async def _view(book: IdentityBook, identity: SavedIdentity) -> IdentityView:
    uses = await book.store.users(identity.namespace, identity.name)
    return IdentityView(
        name=identity.name,
        version=identity.version,
        options=BrowserOptions.model_validate(identity.options),
        proxy=_proxy(identity),
        state=_state(identity),
        created_at=moment(identity.created_at),
        updated_at=moment(identity.updated_at),
        in_use=tuple(
            UseView(job_id=use.job_id, attempt_id=use.attempt_id, mode=use.mode.value)
            for use in uses
        ),
    )


def _proxy(identity: SavedIdentity) -> ProxyView | None:
    if identity.proxy is None:
        return None
    return ProxyView(**identity.proxy, credentials=identity.secret is not None)


def _state(identity: SavedIdentity) -> StateView | None:
    state = identity.state
    if state is None:
        return None
    return StateView(
        cookies=state.cookies,
        origins=state.origins,
        bytes=state.size,
        saved_at=moment(state.saved_at),
        saved_by=state.attempt_id,
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/identities",
        handler=list_identities,
        summary="List the saved identities",
        access=Access.ADMIN,
        answers=(Answer(model=IdentityList),),
    ),
    Route(
        method="GET",
        path="/v1/identities/{name}",
        handler=show_identity,
        summary="Show a saved identity",
        access=Access.ADMIN,
        answers=(Answer(model=IdentityView),),
    ),
    Route(
        method="PUT",
        path="/v1/identities/{name}",
        handler=put_identity,
        summary="Save an identity, or change it",
        access=Access.ADMIN,
        takes_body=True,
        body=IdentityPut,
        answers=(
            Answer(model=IdentityView, description="It was there, and is changed."),
            Answer(status=HTTPStatus.CREATED, model=IdentityView, description="It is new."),
        ),
    ),
    Route(
        method="DELETE",
        path="/v1/identities/{name}",
        handler=delete_identity,
        summary="Forget a saved identity",
        access=Access.ADMIN,
        answers=(Answer(status=HTTPStatus.NO_CONTENT, description="It is forgotten.", empty=True),),
    ),
)
