"""Every setting of the agent; read once, by the command line, and passed on in pieces."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field, HttpUrl, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from farm.protocol.plan import BrowserOptions
from farm.protocol.variables import refuse_unknown, variable_names


class Settings(BaseSettings):
    """Set from the environment: FARM_URL, AGENT_SLOTS and so on."""

    model_config = SettingsConfigDict(env_prefix="AGENT_", frozen=True, extra="ignore")

    farm_urls: Annotated[
        tuple[HttpUrl, ...], NoDecode, Field(validation_alias="FARM_URL", min_length=1)
    ]
    """Where the farm is, such as http://127.0.0.1:8700; or where each of its coordinators is, of
    which one is dialled when another is lost: comma separated."""

    token: SecretStr | None = None
    """The agent's token; a file or descriptor is safer, as an environment can be read in /proc."""

    token_file: Path | None = None
    """A file that holds the token."""

    token_fd: Annotated[int | None, Field(ge=3)] = None
    """An inherited file descriptor to read the token from, once."""

    transport: Literal["auto", "websocket", "longpoll"] = "auto"
    """How the farm is dialled: by a WebSocket, by requests alone (`longpoll`) where the network
    breaks those, or by requests only where a WebSocket fails (`auto`). Watching tabs needs
    WebSockets."""

    client_id: str = Field(default_factory=socket.gethostname, min_length=1, max_length=128)
    """The agent's name; one process at a time may have it. By default the host's name."""

    namespaces: Annotated[tuple[str, ...], NoDecode, Field(min_length=1)] = ("default",)
    """Whose work it takes: namespaces that its token is for, with commas."""

    task_queue: str = "default"
    """The one task queue whose work it takes, in each of its namespaces; empty is `default`."""

    activity_types: Annotated[tuple[str, ...], NoDecode, Field(min_length=1)] = ("job",)
    """What kinds of work it does: names with commas. Jobs are of the kind `job`."""

    deployment: str | None = None
    """What this agent is rolled out as, such as `shop-v7`; `farm drain --deployment` names it."""

    node: str | None = None
    """Where it is, such as its host or the address its traffic comes from; jobs may ask for it."""

    metadata: Annotated[dict[str, Any], NoDecode] = {}
    """What jobs may require: a JSON object, or `key=value` pairs with commas (values are texts)."""

    type: Literal["browser", "console"] = "browser"
    """What it works with: a browser, or flows, which are without one."""

    slots: Annotated[int, Field(ge=1, le=256)] = 2 * (os.cpu_count() or 1)
    """How many jobs at once; by default two a core."""

    max_flows: Annotated[int | None, Field(ge=1, le=1024)] = None
    """How many flows at once, where it has flows; by default as many as jobs."""

    max_page_bytes: Annotated[int, Field(ge=1024, le=1_000_000_000)] = 10_000_000
    """How long a page that a flow reads may be, as it is sent and as it is decoded."""

    activities: Annotated[tuple[str, ...], NoDecode] = ()
    """Which installed activities (entry points of `tabfarm.activities`) flows may run: names with
    commas. They run inside the agent, with all it may do."""

    max_windows: Annotated[int | None, Field(ge=1, le=1024)] = None
    """How many windows at once; by default twice the slots."""

    max_tabs_per_window: Annotated[int, Field(ge=1, le=256)] = 16
    """How many tabs the window of a named identity may have."""

    prepared_windows: Annotated[int, Field(ge=0, le=64)] = 1
    """How many clean windows are kept open ahead of each kind: as jobs ask for by default, as
    `prepared_options` says, and as was asked for last. There are only as many as leave room in
    `max_windows` for a window of any other kind for each free slot."""

    prepared_options: Annotated[tuple[BrowserOptions, ...], NoDecode, Field(max_length=16)] = ()
    """What other kinds of windows to prepare: a JSON array of objects with the keys that `browser`
    of a job file has, such as `[{"locale": "de-DE"}]`."""

    recycle_window_uses: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    """A window that is cleaned in place (`browser.context: reset`) is closed after so many jobs."""

    recycle_window_age_s: Annotated[float, Field(ge=1, le=31_536_000)] = 3600.0
    """A window that is cleaned in place, or was prepared, is closed at this age when it is free."""

    recycle_browser_uses: Annotated[int, Field(ge=1, le=100_000_000)] = 10_000
    """The browser is replaced after so many jobs, when it is free."""

    recycle_browser_age_s: Annotated[float, Field(ge=1, le=31_536_000)] = 86_400.0
    """The browser is replaced at this age, when it is free."""

    recycle_browser_mb: Annotated[float | None, Field(ge=1, le=1_048_576)] = None
    """The browser is replaced, when it is free, once its processes have this much memory together
    (PSS, MB of 1024 x 1024 bytes); by default it is not looked at."""

    recycle_renderer_mb: Annotated[float | None, Field(ge=1, le=1_048_576)] = None
    """The same once one of its renderers has this much."""

    recycle_patience_s: Annotated[float, Field(ge=0, le=86_400)] = 600.0
    """A browser that is due waits so long at most for windows of named identities and of people,
    and then as long again for tabs that are still lent."""

    identity_idle_s: Annotated[float, Field(gt=0)] = 300.0
    """The window of a named identity is closed after so long without use."""

    headed: bool = False
    """Show windows."""

    overlay: bool = True
    """Show in each worker tab of a headed browser what it does. Pages can see that it is there."""

    input_guard: bool | None = None
    """Keep people's mouse and keys away from worker tabs while automation has control (1), or not
    (0); by default where there are windows."""

    takeover_key: Annotated[str, Field(max_length=64)] = "Control+Alt+Home"
    """With the guard: the key, taken from the whole X display, that takes over the worker tab in
    the window that has the focus, or else the pointer, and hands it back. Empty takes none."""

    longest_pause_s: Annotated[float, Field(gt=0, le=604_800)] = 3_600.0
    """So long a job may be paused, or in a person's hands, at a time; then it fails."""

    slow_mo_ms: Annotated[int, Field(ge=0, le=60_000)] = 0
    """Wait so long after each action, for people who watch."""

    keep_open: bool = False
    """Leave the windows of finished jobs open until the agent ends."""

    browser: str | None = None
    """The browser to use, a path or a name on PATH; by default one is found."""

    ffmpeg: str | None = None
    """The ffmpeg that makes videos, a path or a name on PATH; by default the one on PATH, else
    Playwright's. Without one the agent takes no job that records video."""

    min_free_bytes: Annotated[int, Field(ge=0)] = 256 * 1024 * 1024
    """With less room where temporary files go the agent takes nothing new, until there is again a
    quarter more than that."""

    min_free_inodes: Annotated[int, Field(ge=0)] = 2_000
    """The same for inodes: one for each file."""

    sandbox: bool | None = None
    """Demand (1) or refuse (0) Chromium's sandbox; by default it is used where it works."""

    drain_s: Annotated[float, Field(ge=0, le=86_400)] = 8.0
    """How long a stopping agent lets its jobs go on."""

    exit_with_parent: bool = False
    """End when the process that started the agent ends."""

    log_json: bool | None = None
    """Log JSON lines; by default unless a terminal is looking."""

    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """The least severe event that is logged."""

    @field_validator("namespaces", "farm_urls", "activities", "activity_types", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("prepared_options", mode="before")
    @classmethod
    def _array(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            found = json.loads(value, parse_constant=_refuse_constant) if value.strip() else []
        except ValueError as error:
            raise ValueError(f"it is no JSON: {error}") from None
        if not isinstance(found, list):
            raise ValueError("it is a JSON array of objects")  # noqa: TRY004 - pydantic wants it
        return tuple(found)

    @field_validator("metadata", mode="before")
    @classmethod
    def _object(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("{"):
            try:
                return json.loads(value, parse_constant=_refuse_constant)
            except ValueError as error:
                raise ValueError(f"it begins like JSON, but is none: {error}") from None
        pairs = (pair.partition("=") for pair in value.split(",") if pair.strip())
        metadata = {key.strip(): (mark, text.strip()) for key, mark, text in pairs}
        for key, (mark, _) in metadata.items():
            if not mark or not key:
                raise ValueError(f"{key!r} is not key=value")
        return {key: text for key, (_, text) in metadata.items()}

    def secret(self) -> str:
        """Return the token.

        Raises:
            ValueError: If there is none, more than one way to it, or it is empty or unreadable.
        """
        secret = self._read_secret().strip()
        if not secret:
            raise ValueError("the agent's token is empty")
        return secret

    def _read_secret(self) -> str:
        given = [
            name for name in ("token", "token_file", "token_fd") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError(
                "say exactly one of AGENT_TOKEN_FILE, AGENT_TOKEN_FD and AGENT_TOKEN"
                + (f", not {len(given)}" if given else "")
            )
        if self.token is not None:
            return self.token.get_secret_value()
        source = f"AGENT_TOKEN_{'FD' if self.token_file is None else 'FILE'}"
        given_as: Path | int = self.token_file or int(self.token_fd or 0)
        try:
            with open(given_as) as file:
                return file.read()
        except UnicodeDecodeError:
            raise ValueError(f"{source}={given_as} is not a text") from None
        except OSError as error:
            raise ValueError(f"{source}={given_as} can't be read: {error.strerror}") from None


def load(kind: Literal["browser", "console"] | None = None) -> Settings:
    """Read the settings from the environment; `kind`, where it is said, counts for AGENT_TYPE.

    Raises:
        UnknownVariableError: If an AGENT_ variable is unknown.
        pydantic.ValidationError: If a value is missing or out of bounds.
    """
    refuse_unknown(os.environ, variable_names(Settings, "AGENT_"), "AGENT_")
    return Settings() if kind is None else Settings(type=kind)


def environment() -> Mapping[str, str]:
    """Return the environment without our secrets, and take them out of it.

    What is started from here on does not inherit them.
    """
    os.environ.pop("AGENT_TOKEN", None)
    return dict(os.environ)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
