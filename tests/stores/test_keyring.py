"""What is sealed opens with its key, in its place, unchanged, and not otherwise."""

import base64

import pytest

from farm.errors import UnreadableError
from farm.stores.keyring import Keyring, new_key

PLAIN = b"a cookie's value"


def test_what_is_sealed_is_unreadable_and_opens_again() -> None:
    ring = Keyring.of(new_key())
    sealed = ring.seal(PLAIN, bound_to="here")
    assert PLAIN not in sealed
    assert ring.seal(PLAIN, bound_to="here") != sealed
    assert ring.open(sealed, bound_to="here") == PLAIN


def test_a_new_first_key_seals_and_the_old_one_still_opens() -> None:
    old, new = new_key(), new_key()
    sealed = Keyring.of(old).seal(PLAIN, bound_to="here")
    both = Keyring.of(f"{new}\n{old}\n")
    assert both.open(sealed, bound_to="here") == PLAIN
    assert not both.is_current(sealed)
    assert both.is_current(both.seal(PLAIN, bound_to="here"))
    assert Keyring.of(new).open(both.seal(PLAIN, bound_to="here"), bound_to="here") == PLAIN


def test_the_wrong_key_is_named_with_what_would_help() -> None:
    sealed = Keyring.of(new_key()).seal(PLAIN, bound_to="the state of identity default/shopper")
    with pytest.raises(UnreadableError) as caught:
        Keyring.of(new_key()).open(sealed, bound_to="the state of identity default/shopper")
    assert sealed[1:9].hex() in caught.value.detail
    assert "default/shopper" in caught.value.detail
    assert "FARM_IDENTITY_KEY_FILE" in caught.value.detail


@pytest.mark.parametrize("where", [0, 3, 12, 25, -1])
def test_what_was_changed_does_not_open(where: int) -> None:
    ring = Keyring.of(new_key())
    sealed = bytearray(ring.seal(PLAIN, bound_to="here"))
    sealed[where] ^= 1
    with pytest.raises(UnreadableError):
        ring.open(bytes(sealed), bound_to="here")


def test_what_was_moved_to_another_place_does_not_open() -> None:
    ring = Keyring.of(new_key())
    sealed = ring.seal(PLAIN, bound_to="the state of identity a/shopper")
    with pytest.raises(UnreadableError, match="changed"):
        ring.open(sealed, bound_to="the state of identity b/shopper")
    with pytest.raises(UnreadableError, match="not what this farm has sealed"):
        ring.open(b"short", bound_to="here")


TOO_SHORT = base64.urlsafe_b64encode(b"16 bytes of key!").decode()


@pytest.mark.parametrize("text", ["", "  \n", "no key", TOO_SHORT])
def test_what_is_no_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="key") as caught:
        Keyring.of(text)
    assert not text.strip() or text not in str(caught.value)
