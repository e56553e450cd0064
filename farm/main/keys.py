"""The secrets of a farm: those it is given, and those it makes at its first start."""

import hashlib
import os
import secrets
from pathlib import Path

from farm.api.auth import TokenBook
from farm.config import Settings
from farm.core.model import DEFAULT_NAMESPACE
from farm.errors import InvalidInputError
from farm.stores.keyring import Keyring, new_key


async def admin_token_of(data_dir: Path, tokens: TokenBook) -> tuple[str, bool]:
    """Return the admin token, and whether it was made just now."""
    path = data_dir / "admin.token"
    if path.exists():
        secret = path.read_text().strip()
        if await tokens.principal(secret) is not None:
            return secret, False
    _, secret = await tokens.add(scope="admin", namespace=DEFAULT_NAMESPACE, name="admin")
    write_private(path, secret + "\n")
    return secret, True


def live_key(settings: Settings) -> bytes:
    """Return what links to watch tabs are signed with.

    It is made at the first start; where the ledger is shared it is the same for all.
    """
    if settings.shares_ledger:
        return hashlib.sha256(b"live links\n" + _identity_keys(settings)[1].encode()).digest()
    path = settings.data_dir / "live.key"
    if not path.exists():
        write_private(path, secrets.token_hex(32))
    return path.read_text().strip().encode()


def keyring_of(settings: Settings) -> Keyring:
    """Read the keys of saved identities, or make the first one.

    Raises:
        InvalidInputError: If what is set is no key, or nothing is and all need the same.
    """
    where, text = _identity_keys(settings)
    try:
        return Keyring.of(text)
    except ValueError as error:
        raise InvalidInputError(f"{where}: {error}") from None


def _identity_keys(settings: Settings) -> tuple[str, str]:
    """Return (where they are, what is there)."""
    path = settings.identity_key_file
    if path is None and settings.identity_key is not None:
        return "FARM_IDENTITY_KEY", settings.identity_key.get_secret_value()
    if path is None and settings.shares_ledger:
        raise InvalidInputError(
            "coordinators that share a ledger open what the others have sealed: set the same"
            " FARM_IDENTITY_KEY_FILE or FARM_IDENTITY_KEY for each (farm identities --help)"
        )
    if path is None:
        path = settings.data_dir / "identity.key"
        if not path.exists():
            write_private(path, new_key() + "\n")
    return str(path), _said_in(path, "FARM_IDENTITY_KEY_FILE")


async def preset_agent_token(settings: Settings, tokens: TokenBook) -> None:
    """Let in who has the agent token that the settings name.

    Raises:
        InvalidInputError: If its file can't be read, or has none.
    """
    secret = settings.agent_token.get_secret_value().strip() if settings.agent_token else ""
    if (path := settings.agent_token_file) is not None:
        secret = _said_in(path, "FARM_AGENT_TOKEN_FILE").strip()
        if not secret:
            raise InvalidInputError(f"FARM_AGENT_TOKEN_FILE={path} is empty")
    if secret:
        await tokens.add_known(secret, scope="agent", namespace=DEFAULT_NAMESPACE)


def _said_in(path: Path, setting: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidInputError(f"{setting}={path} can't be read: {reason}") from None


def write_private(path: Path, text: str) -> None:
    """Write a file that nobody else can read, not even for a moment."""
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    partial.rename(path)
