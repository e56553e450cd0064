"""Between the wire and the core: one converter a message (the classes stay different)."""

from farm.core import model as core
from farm.core.admission import Claim
from farm.protocol import messages as wire


def token(value: wire.Token | None) -> core.Token | None:
    """Turn a token of the wire into the core's."""
    if value is None:
        return None
    return core.Token(store_epoch=value.store_epoch, counter=value.counter)


def _namespaces(hello: wire.Hello) -> tuple[core.Namespace, ...]:
    return tuple(core.Namespace(name) for name in dict.fromkeys(hello.namespaces))


def claim(hello: wire.Hello) -> Claim:
    """Turn a `hello` into what an agent says of itself, to be judged."""
    return Claim(
        client_id=core.ClientId(hello.client_id),
        protocol=hello.protocol,
        namespaces=_namespaces(hello),
        task_queue=hello.task_queue,
        node=hello.node,
        metadata=hello.metadata,
        max_concurrency=hello.capacity.max_concurrency,
    )


def client(hello: wire.Hello, link: core.LinkId, now: core.Instant) -> core.Client:
    """Turn a `hello` into a client that has reported nothing yet; the registry gives its epoch."""
    return core.Client(
        client_id=core.ClientId(hello.client_id),
        client_type=core.ClientType(hello.client_type),
        link=link,
        epoch=0,
        instance=hello.instance,
        namespaces=_namespaces(hello),
        metadata=hello.metadata,
        capacity=core.Capacity(
            max_concurrency=hello.capacity.max_concurrency,
            max_windows=hello.capacity.max_windows,
            max_tabs_per_window=hello.capacity.max_tabs_per_window,
            max_flows=hello.capacity.max_flows,
        ),
        seen_at=now,
        task_queue=hello.task_queue,
        activity_types=frozenset(hello.activity_types),
        node=hello.node,
        deployment=hello.deployment,
        browser=hello.browser,
    )


def capacity(value: core.Capacity) -> wire.Capacity:
    """Turn a negotiated capacity into its form on the wire."""
    return wire.Capacity(
        max_concurrency=value.max_concurrency,
        max_windows=value.max_windows,
        max_tabs_per_window=value.max_tabs_per_window,
        max_flows=value.max_flows,
    )


def windows(report: wire.Report) -> list[core.Window]:
    """Turn the windows of a report into the core's."""
    return [
        core.Window(
            window_id=core.WindowId(window.window_id),
            identity=window.identity,
            profile=window.profile,
            owner=core.Owner(window.owner),
            bounds=None if window.bounds is None else core.Bounds(**dict(window.bounds)),
            prepared=window.prepared,
        )
        for window in report.windows
    ]


def contexts(report: wire.Report) -> list[core.Context]:
    """Turn the contexts of a report into the core's."""
    return [
        core.Context(
            context_id=core.ContextId(context.context_id),
            window_id=None if context.window_id is None else core.WindowId(context.window_id),
            owner=core.Owner(context.owner),
            state=core.ContextState(context.state),
            clean=context.clean and context.opener is None,
            opener=None if context.opener is None else core.ContextId(context.opener),
        )
        for context in report.contexts
    ]
