"""`Sealer` by AES-256-GCM. Each sealed text says which key it takes."""

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from farm.errors import UnreadableError

_FORMAT = b"\x01"
_ID_BYTES = 8
_NONCE_BYTES = 12
_KEY_BYTES = 32
_HEAD_BYTES = len(_FORMAT) + _ID_BYTES + _NONCE_BYTES


def new_key() -> str:
    """Make a key, as it is written: 32 bytes in the base64 of URLs."""
    return base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


class Keyring:
    """Seals under its first key, opens by whichever fits."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("a keyring has at least one key")
        self._keys = {_id_of(key): AESGCM(key) for key in keys}
        self._first = _id_of(keys[0])

    @classmethod
    def of(cls, text: str) -> Self:
        """Read keys, separated by white space or commas; the first one seals.

        Raises:
            ValueError: If there is none, or one is no key. It is not quoted.
        """
        written = text.replace(",", " ").split()
        return cls([_key(number, one) for number, one in enumerate(written, start=1)])

    def seal(self, plain: bytes, *, bound_to: str) -> bytes:
        """See `Sealer.seal`."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._keys[self._first].encrypt(nonce, plain, bound_to.encode())
        return _FORMAT + self._first + nonce + sealed

    def open(self, sealed: bytes, *, bound_to: str) -> bytes:
        """See `Sealer.open`."""
        key_id = sealed[len(_FORMAT) : len(_FORMAT) + _ID_BYTES]
        nonce = sealed[len(_FORMAT) + _ID_BYTES : _HEAD_BYTES]
        if len(sealed) <= _HEAD_BYTES or not sealed.startswith(_FORMAT):
            raise UnreadableError(f"{bound_to} is not what this farm has sealed")
        if (key := self._keys.get(key_id)) is None:
            raise UnreadableError(
                f"{bound_to} is sealed with the key {key_id.hex()}, which this farm does not have"
                f" (it has {', '.join(known.hex() for known in self._keys)}): add that key as a"
                " further line of FARM_IDENTITY_KEY_FILE; nothing is lost until then",
                key=key_id.hex(),
            )
        try:
            return key.decrypt(nonce, sealed[_HEAD_BYTES:], bound_to.encode())
        except InvalidTag:
            raise UnreadableError(f"{bound_to} has been changed since it was sealed") from None

    def is_current(self, sealed: bytes) -> bool:
        """See `Sealer.is_current`."""
        return sealed.startswith(_FORMAT + self._first)


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(b"tabfarm key id" + key).digest()[:_ID_BYTES]


def _key(number: int, text: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(text)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"key {number} is not 32 bytes in the base64 of URLs")
    return key
