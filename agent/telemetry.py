"""Logging of the agent, set up once by `main`."""

import logging
import sys

import structlog


def configure_logging(*, json: bool | None = None, level: str = "info") -> None:
    """Write one line an event to stderr: JSON unless a person is looking (or as told)."""
    as_json = not sys.stderr.isatty() if json is None else json
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        # Quoted, since a text may be a page's, and a terminal obeys control characters.
        else structlog.dev.ConsoleRenderer(repr_native_str=True)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        # sys.stderr is looked up anew each time: it may be exchanged, and closed.
        cache_logger_on_first_use=False,
    )
