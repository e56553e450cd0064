"""Every setting of the coordinator; read once, by the command line, and passed on in pieces."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from farm.protocol.variables import refuse_unknown, variable_names

CLIENT_VARIABLES = frozenset({"FARM_URL", "FARM_TOKEN", "FARM_TOKEN_FILE"})
"""What the command line reads to find a farm; not settings of the coordinator."""

Seconds = Annotated[float, Field(gt=0, le=86_400)]


class LinkSettings(BaseModel):
    """How long silence of an agent means what."""

    model_config = ConfigDict(frozen=True)

    heartbeat_interval_s: Seconds = 2.5
    """How often agents and farm say that they are alive."""

    window_s: Seconds = 10.0
    """An agent not heard of for this long is not selectable; one that has not heard the farm for
    this long gives up what it runs."""

    gone_after_windows: Annotated[float, Field(ge=1, le=10)] = 1.2
    """After this many windows of silence what an agent ran is known to be over, and it is given up;
    where its link is still open, one window later."""

    drain_s: Annotated[float, Field(ge=0, le=604_800)] = 3_600.0
    """How long an agent that is told to leave may go on with what it runs."""

    grace_s: Annotated[float | None, Field(ge=0, le=86_400)] = None
    """What an agent holds is released so long after its link has closed, unless it has come back; 0
    is at once. By default, and at the latest, when it is known to be gone."""

    max_frame_bytes: Annotated[int, Field(ge=65_536, le=268_435_456)] = 32 * 1024 * 1024
    """The largest message taken from an agent."""

    @property
    def gone_after_s(self) -> float:
        """After so long a silence nothing of an agent runs any more."""
        return self.window_s * self.gone_after_windows


class ArtifactSettings(BaseModel):
    """Files that jobs produce."""

    model_config = ConfigDict(frozen=True)

    dir: Path | None = None
    """Where they are; by default `artifacts` in the data directory. Coordinators that share their
    ledger share this directory, or a bucket."""

    url: Annotated[
        str | None,
        Field(pattern="^s3://[A-Za-z0-9._-]{3,63}(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$"),
    ] = None
    """A bucket instead, of an S3-compatible store (`s3://bucket/prefix`). Its endpoint, region and
    credentials are those of the environment: `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`,
    `AWS_SECRET_ACCESS_KEY` and so on."""

    allow_http: bool = False
    """Whether the bucket may be spoken to without TLS, where its endpoint says `http://`."""

    answer_s: Seconds = 30.0
    """A bucket that has not answered for so long is not available; a part of 5 MiB takes less."""

    max_bytes: Annotated[int, Field(ge=1)] = 512 * 1024 * 1024
    """The largest single artifact."""

    min_free_bytes: Annotated[int, Field(ge=0)] = 256 * 1024 * 1024
    """Below this much free space no artifact is begun; a bucket has no such mark."""

    min_free_inodes: Annotated[int, Field(ge=0)] = 1_000
    """With fewer free inodes no artifact is begun; each takes one."""

    recording_max_bytes: Annotated[int, Field(ge=4096)] = 128 * 1024 * 1024
    """A recording that is seen to have grown to this size stops there."""

    recordings_max_bytes: Annotated[int, Field(ge=0)] = 16 * 1024 * 1024 * 1024
    """The recordings of one namespace together; what would be more is not kept."""

    recordings_keep_s: Annotated[float | None, Field(gt=0, le=3_153_600_000)] = None
    """The recordings of a job that has ended are deleted so long after they were made; by default
    with the job."""

    files_max_bytes: Annotated[int, Field(ge=0)] = 16 * 1024 * 1024 * 1024
    """The files that were handed in for jobs of one namespace together; more are refused."""

    files_keep_s: Annotated[float | None, Field(gt=0, le=3_153_600_000)] = None
    """A file that was handed in is deleted after this long; by default never."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.dir is not None and self.url is not None:
            raise ValueError("`dir` or `url`, not both")
        return self


class JobSettings(BaseModel):
    """How jobs are run."""

    model_config = ConfigDict(frozen=True)

    assignment_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """An assignment that nobody renews is released after this long."""

    provision_timeout_s: Seconds = 30.0
    """How long a window or tab may take to appear before its reservation is given back."""

    retry_initial_s: Annotated[float, Field(ge=0, le=3_600)] = 1.0
    """The wait before the second attempt; doubled for each further one."""

    retry_max_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """The longest wait before another attempt."""

    keep_s: Annotated[float | None, Field(gt=0, le=3_153_600_000)] = None
    """A job is deleted, with its records and files, so long after it has ended; by default never.
    One that is uncertain has not ended."""

    max_free_losses: Annotated[int, Field(ge=0, le=100)] = 5
    """So many attempts may be lost before they began without counting."""


class IdentitySettings(BaseModel):
    """Identities that are saved in the farm."""

    model_config = ConfigDict(frozen=True)

    max_bytes: Annotated[int, Field(ge=1_024, le=268_435_456)] = 16 * 1024 * 1024
    """The largest state: cookies, local storage and databases together."""


class NamespaceSettings(BaseModel):
    """Namespaces, which keep those who share the farm apart."""

    model_config = ConfigDict(frozen=True)

    minting: Literal["open", "closed"] | None = None
    """Whether an agent or a token of a namespace that is not there makes it (`open`), or is
    refused. By default closed for `farm serve`, and open for `farm up` and `farm run`."""


class CommandSettings(BaseModel):
    """The evidence of commands that is retained, of each namespace."""

    model_config = ConfigDict(frozen=True)

    keep: Annotated[int, Field(ge=1, le=1_000_000)] = 5_000
    """So many commands, the latest."""

    keep_s: Annotated[float, Field(gt=0, le=31_536_000)] = 86_400.0
    """For so long."""

    payload_bytes: Annotated[int, Field(ge=0, le=16_777_216)] = 16_384
    """What an agent gives back is retained up to this size."""


class LiveSettings(BaseModel):
    """Tabs that people watch."""

    model_config = ConfigDict(frozen=True)

    link_s: Annotated[float, Field(ge=1, le=604_800)] = 900.0
    """How long a link to watch a tab opens it, unless it is made for another time."""

    longest_link_s: Annotated[float, Field(ge=1, le=604_800)] = 86_400.0
    """The longest time a link can be made for."""

    grace_s: Annotated[float, Field(ge=0, le=3_600)] = 15.0
    """A viewer in control who has gone may come back within this; then the job is paused."""

    max_viewers_per_tab: Annotated[int, Field(ge=1, le=1_000)] = 20
    """So many may watch one tab."""

    max_viewers: Annotated[int, Field(ge=1, le=10_000)] = 200
    """So many may watch, of all tabs of agents that are linked to one coordinator."""


class RedisSettings(BaseModel):
    """The Redis by which several coordinators share their agents."""

    model_config = ConfigDict(frozen=True)

    url: SecretStr | None = None
    """Where it is (`redis://`, `rediss://`, `unix://`); without one a coordinator has its agents to
    itself."""

    shard: Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,64}$")] = "0"
    """Coordinators share with those of the same shard."""

    require_noeviction: bool = True
    """Refuse a Redis whose `maxmemory-policy` is not known to be `noeviction`; else only warn."""

    @field_validator("url")
    @classmethod
    def _check_scheme(cls, url: SecretStr | None) -> SecretStr | None:
        schemes = ("redis://", "rediss://", "unix://")
        if url is not None and not url.get_secret_value().startswith(schemes):
            raise ValueError(f"begins with one of {', '.join(schemes)}")
        return url


class LedgerSettings(BaseModel):
    """Where jobs and what has been done for them are written down."""

    model_config = ConfigDict(frozen=True)

    url: SecretStr | None = None
    """A database of a PostgreSQL server (`postgresql://user:password@host/name`), which one farm
    uses at a time, or all coordinators with the same `FARM_REDIS__URL`; without one a SQLite file
    in the data directory."""

    lease_s: Annotated[float, Field(ge=1, le=3_600)] = 15.0
    """A coordinator that shares the database and has not renewed its lease for so long writes
    nothing more, and what it runs is anybody's."""

    @field_validator("url")
    @classmethod
    def _check_scheme(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith("postgresql://"):
            raise ValueError("begins with postgresql://")
        return url


class Settings(BaseSettings):
    """Set from the environment: FARM_HOST, FARM_LINK__WINDOW_S and so on."""

    model_config = SettingsConfigDict(
        env_prefix="FARM_", env_nested_delimiter="__", frozen=True, extra="ignore"
    )

    host: str = "127.0.0.1"
    """Address to listen on."""

    port: Annotated[int, Field(ge=0, le=65_535)] = 8700
    """Port to listen on; 0 takes a free one."""

    data_dir: Path = Path(".farm")
    """Where the ledger, the artifacts and the admin token are kept."""

    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Host names, beside loopback and `host`, under which requests may come; comma separated."""

    egress_allow: Annotated[tuple[str, ...], NoDecode] = ()
    """Private and loopback destinations pages may reach (`host`, `host:port`, `network/prefix`);
    comma separated."""

    task_queues: Annotated[tuple[str, ...], NoDecode] = ()
    """The task queues there are, beside those that deployments serve: jobs that name another are
    refused; comma separated. Where nothing is declared any name will do."""

    agent_token_file: Path | None = None
    """A file with a token that agents present, made by whoever deploys both; else tokens are
    minted by `farm token create`."""

    agent_token: SecretStr | None = None
    """The same as a value; a file is safer."""

    identity_key_file: Path | None = None
    """A file with the keys that saved identities and proxies' credentials are sealed with, one a
    line: 32 bytes in the base64 of URLs. The first one seals, each opens. By default
    `identity.key` in the data directory, made at the first start."""

    identity_key: SecretStr | None = None
    """The same as a value, separated by commas; a file is safer."""

    log_json: bool | None = None
    """Log JSON lines; by default unless a terminal is looking."""

    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """The least severe event that is logged."""

    link: LinkSettings = LinkSettings()
    """The connection to agents."""

    ledger: LedgerSettings = LedgerSettings()
    """Where jobs are written down."""

    redis: RedisSettings = RedisSettings()
    """The Redis that coordinators share."""

    live: LiveSettings = LiveSettings()
    """Tabs that people watch."""

    artifacts: ArtifactSettings = ArtifactSettings()
    """Files that jobs produce."""

    jobs: JobSettings = JobSettings()
    """How jobs are run."""

    identities: IdentitySettings = IdentitySettings()
    """Identities that are saved in the farm."""

    commands: CommandSettings = CommandSettings()
    """The evidence of commands."""

    namespaces: NamespaceSettings = NamespaceSettings()
    """Namespaces."""

    @property
    def shares_ledger(self) -> bool:
        """Whether other coordinators work with the same ledger."""
        return self.redis.url is not None and self.ledger.url is not None

    @property
    def artifacts_dir(self) -> Path:
        """Where files are kept."""
        return self.artifacts.dir or self.data_dir / "artifacts"

    @field_validator("allowed_hosts", "egress_allow", "task_queues", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value


def open_by_default(settings: Settings) -> Settings:
    """Let agents and tokens make namespaces, unless the settings say something of it."""
    if settings.namespaces.minting is not None:
        return settings
    return settings.model_copy(update={"namespaces": NamespaceSettings(minting="open")})


def load(**overrides: object) -> Settings:
    """Read the settings from the environment; `overrides` win where they are not None.

    Raises:
        UnknownVariableError: If a FARM_ variable is unknown.
        pydantic.ValidationError: If a value is out of bounds.
    """
    refuse_unknown(os.environ, variable_names(Settings, "FARM_") | CLIENT_VARIABLES, "FARM_")
    given = {name: value for name, value in overrides.items() if value is not None}
    return Settings(**given)  # type: ignore[arg-type]  # pydantic checks the values
