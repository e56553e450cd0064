"""Saved identities: what people write of them, what the farm shows, what an attempt is lent."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic.functional_validators import AfterValidator

from farm.protocol.extraction import Strict
from farm.protocol.plan import BrowserOptions

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Mode = Literal["exclusive", "clone", "read_only"]
Save = Literal["on_success", "always", "never"]

_BYPASS = re.compile(r"(\*\.)?[^\s/@?#*]+(/\d{1,3})?")
_ASCII = re.compile(r"[\x20-\x7e]{1,255}")


def _proxy_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        whole = bool(parts.hostname) and parts.port is not None
    except ValueError:
        raise ValueError("should be a URL such as http://proxy.example:3128") from None
    if parts.scheme not in ("http", "https", "socks5"):
        raise ValueError("should begin with http://, https:// or socks5://")
    if "@" in parts.netloc:
        raise ValueError("should be without a user: username and password are keys of their own")
    if not whole or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("should be a scheme, a host and a port: http://proxy.example:3128")
    return text.rstrip("/")


def _credential(secret: SecretStr) -> SecretStr:
    if _ASCII.fullmatch(secret.get_secret_value()) is None:
        raise ValueError("should be 1 to 255 printable characters of ASCII")
    return secret


def _bypass(entry: str) -> str:
    if _BYPASS.fullmatch(entry) is None:
        raise ValueError("should be a host, host:port, *.domain or network/prefix")
    return entry


ServerUrl = Annotated[str, AfterValidator(_proxy_url)]
Credential = Annotated[SecretStr, AfterValidator(_credential)]
Bypass = Annotated[str, AfterValidator(_bypass)]


class Proxy(Strict):
    """The proxy that a window's pages go through. What it is told of itself is never shown."""

    server: ServerUrl
    """`http://`, `https://` or `socks5://`, with a port."""
    username: Credential | None = None
    password: Credential | None = None
    bypass: tuple[Bypass, ...] = ()
    """Where pages go without it: `host`, `host:port`, `*.domain` or `network/prefix`."""

    @model_validator(mode="after")
    def _both(self) -> Proxy:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together")
        return self

    @property
    def bare(self) -> Proxy:
        """The same without its credentials."""
        return Proxy(server=self.server, bypass=self.bypass)

    @property
    def credentials(self) -> Credentials | None:
        """What it is told, in the clear."""
        if self.username is None or self.password is None:
            return None
        return Credentials(
            username=self.username.get_secret_value(), password=self.password.get_secret_value()
        )


class Credentials(BaseModel):
    """What a proxy is told, in the clear: for its sealing, and for the agent that uses it."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    username: str = Field(repr=False)
    password: str = Field(repr=False)


class IdentityUse(Strict):
    """How a job uses a saved identity."""

    name: Name
    mode: Mode = "exclusive"
    """`exclusive`: no other job has it meanwhile. `read_only`: shared by any number of such jobs,
    and by no exclusive one. `clone`: a copy, whoever has it."""
    save: Save | None = None
    """When what the job leaves is saved. Only an exclusive use saves: on success, unless said."""

    @model_validator(mode="after")
    def _only_exclusive_saves(self) -> IdentityUse:
        if self.mode != "exclusive" and self.save not in (None, "never"):
            raise ValueError(f"only an exclusive use is saved, not {self.mode}")
        return self

    @property
    def saves(self) -> Save:
        """When what the job leaves is saved, with the default filled in."""
        return self.save or ("on_success" if self.mode == "exclusive" else "never")


class Cookie(BaseModel):
    """One cookie, as Playwright writes it."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    name: str
    value: str = Field(repr=False)
    domain: str
    path: str


class Entry(BaseModel):
    """One entry of a local storage."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    name: str
    value: str = Field(repr=False)


class Origin(BaseModel):
    """What one origin has stored, as Playwright writes it."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    origin: str = Field(pattern=r"^https?://[^/\s]+$")
    localStorage: tuple[Entry, ...] = ()  # noqa: N815 - Playwright's word
    indexedDB: tuple[dict[str, Any], ...] = Field(default=(), repr=False)  # noqa: N815


class StorageState(BaseModel):
    """Cookies, local storage and databases, in the form of Playwright's `storage_state`."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    cookies: tuple[Cookie, ...] = ()
    origins: tuple[Origin, ...] = ()


class IdentityPut(Strict):
    """What an identity is to be. A key that is left out stays as it is; null takes it away."""

    options: BrowserOptions | None = None
    proxy: Proxy | None = None
    state: StorageState | None = None

    @field_validator("state")
    @classmethod
    def _says_something(cls, state: StorageState | None) -> StorageState | None:
        if state is not None and not state.model_fields_set & {"cookies", "origins"}:
            raise ValueError(
                "should have cookies or origins, as Playwright's storage_state() gives them"
            )
        return state


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class ProxyView(_Told):
    """A proxy, without what it is told."""

    server: str
    bypass: tuple[str, ...] = ()
    credentials: bool
    """It has some."""


class StateView(_Told):
    """How much an identity remembers, not what."""

    cookies: int
    origins: int
    bytes: int
    saved_at: AwareDatetime
    saved_by: str | None = None
    """The attempt; None where a person put it there."""


class UseView(_Told):
    """A job that has the identity now."""

    job_id: str
    attempt_id: str
    mode: Mode


class IdentityView(_Told):
    """One saved identity. What is secret of it is never shown."""

    name: str
    version: int
    """Raised by every change, those of its state included."""
    options: BrowserOptions
    proxy: ProxyView | None = None
    state: StateView | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    in_use: tuple[UseView, ...] = ()


class IdentityList(_Told):
    """Every saved identity of a namespace, by name."""

    items: tuple[IdentityView, ...]


class ProxyRoute(_Told):
    """A proxy with what it is told, for the agent alone."""

    server: str
    credentials: Credentials | None = None
    bypass: tuple[str, ...] = ()


class Lent(_Told):
    """What an agent is lent for one attempt, and for no longer."""

    state: StorageState | None = None
    proxy: ProxyRoute | None = None


class StateSaved(_Told):
    """The state is kept."""

    version: int
