import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.jobs.naming import DEFAULT_MEDIA_TYPE, MAX_BYTES, MAX_CHARACTERS, media_type, safe_name


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("Übersicht 2.csv", "Übersicht 2.csv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\system.ini", "system.ini"),
        ("..", "artifact"),
        ("/", "artifact"),
        ("", "artifact"),
        (".bashrc", "bashrc"),
        ("a\x00b\x1b[31m.png", "ab[31m.png"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ('a<b>:"c"|?*.txt', "a_b___c____.txt"),
        ("x" * 300 + ".png", "x" * 116 + ".png"),
        ("trailing. . ", "trailing"),
    ],
)
def test_a_name_becomes_one_plain_segment(asked: str, kept: str) -> None:
    assert safe_name(asked) == kept


@given(st.text())
def test_whatever_the_name_the_segment_is_safe(asked: str) -> None:
    name = safe_name(asked)
    assert name not in ("", ".", "..")
    assert not name.startswith(".")
    assert not set(name) & set('/\\<>:"|?*')
    assert len(name) <= MAX_CHARACTERS
    assert len(name.encode()) <= MAX_BYTES
    assert not [c for c in name if unicodedata.category(c).startswith("C")]
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("image/png", "image/png"),
        ("Text/HTML; charset=utf-8", "text/html"),
        ("image/svg+xml", DEFAULT_MEDIA_TYPE),
        ("application/javascript", DEFAULT_MEDIA_TYPE),
        ("", DEFAULT_MEDIA_TYPE),
        (None, DEFAULT_MEDIA_TYPE),
        ("text/html\r\nX: y", DEFAULT_MEDIA_TYPE),
    ],
)
def test_a_media_type_is_one_of_ours(sent: str | None, kept: str) -> None:
    assert media_type(sent) == kept
