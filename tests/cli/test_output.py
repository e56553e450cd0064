import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from farm.cli import output


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x9b31mred", "31mred"),
        ("a\nb\tc\r\n", "a b c  "),
        ("\u202eevil\u2066", "evil"),
        ("\x1b]0;title\x07", "]0;title"),
        ("Zoë 日本 👍", "Zoë 日本 👍"),
    ],
)
def test_what_a_terminal_might_obey_is_left_out(said: str, shown: str) -> None:
    assert output.plain(said) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    assert output.plain("abcdef", limit=4) == "abc…"


@given(st.text())
def test_plain_text_is_one_line_without_control_characters(text: str) -> None:
    assert not any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in output.plain(text))


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
def test_json_for_a_terminal_means_the_same_and_has_no_control_characters(value: object) -> None:
    text = output.to_json(value)
    assert json.loads(text) == value
    assert not any(0x7F <= ord(c) <= 0x9F or ord(c) < 0x20 for c in text)


def test_markup_in_a_cell_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_table(["[bold]a"], [["[red]x[/red]"], ["\x1b[31my"]])
    written = capsys.readouterr().out
    assert "[red]x[/red]" in written
    assert "[bold]a" in written
    assert "\x1b[31m" not in written


def test_talk_goes_to_stderr_and_data_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a word")
    output.write("data")
    captured = capsys.readouterr()
    assert captured.out == "data\n"
    assert captured.err == "a word\n"


def test_what_is_to_be_copied_is_not_broken_on_a_narrow_terminal() -> None:
    console = Console(width=60)
    table = output.build_table(("ID", "NAME"), [("j" * 30, "n" * 90)], whole={"ID"})
    with console.capture() as shown:
        console.print(table)
    assert "j" * 30 in shown.get()
    assert shown.get().count("n") == 90
