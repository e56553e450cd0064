import csv
import io
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.jobs import export
from farm.stores.records import Item


async def stream(*records: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
    for record in records:
        yield record


async def as_csv(*records: Mapping[str, Any]) -> list[list[str]]:
    text = b"".join([chunk async for chunk in export.csv_lines(stream(*records))]).decode()
    return list(csv.reader(io.StringIO(text, newline="")))


async def test_columns_are_the_union_in_the_order_first_seen() -> None:
    assert await as_csv({"b": 1, "a": 2}, {"c": 3, "a": 4}) == [
        ["b", "a", "c"],
        ["1", "2", ""],
        ["", "4", "3"],
    ]


async def test_nested_records_have_dotted_columns_and_lists_are_json() -> None:
    record = {"seller": {"name": "x", "at": {"city": "y"}}, "tags": ["a", {"b": None}], "e": {}}
    assert await as_csv(record) == [
        ["seller.name", "seller.at.city", "tags", "e"],
        ["x", "y", '["a", {"b": null}]', "{}"],
    ]


async def test_values_are_written_as_json_has_them_and_null_is_empty() -> None:
    record = {"t": True, "n": None, "i": -5, "f": 1.5, "s": "", "u": 'ü,\n"q"'}
    assert (await as_csv(record))[1] == ["true", "", "-5", "1.5", "", 'ü,\n"q"']


@pytest.mark.parametrize("start", list("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))
async def test_a_text_that_a_spreadsheet_would_run_is_quoted(start: str) -> None:
    assert (await as_csv({"a": f"{start}1+1"}))[1] == [f"'{start}1+1"]


@pytest.mark.parametrize("number", ["-5", "-12.50"])
async def test_a_text_that_is_a_negative_number_stays_one(number: str) -> None:
    assert (await as_csv({"a": number}))[1] == [number]


async def test_a_large_result_goes_through_a_file_and_comes_out_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "_SPOOL_BYTES", 1000)
    monkeypatch.setattr(export, "_BATCH_BYTES", 300)
    rows = await as_csv(*({"n": n, f"only{n % 3}": "x" * 50} for n in range(500)))
    assert [row[0] for row in rows[1:]] == [str(n) for n in range(500)]
    assert rows[0] == ["n", "only0", "only1", "only2"]


async def test_nothing_is_written_where_there_are_no_records() -> None:
    assert await as_csv() == []


async def test_a_record_says_where_it_is_from_and_its_own_field_wins() -> None:
    async def items() -> AsyncIterator[Item]:
        yield Item(attempt_id="x", attempt_number=2, dataset="more", index=0, data={"a": 1})
        yield Item(attempt_id="x", attempt_number=2, dataset="items", index=0, data={"_attempt": 9})

    found = [
        dict(one) async for one in export.records(items(), with_attempt=True, with_dataset=True)
    ]
    assert found == [{"_attempt": 2, "_dataset": "more", "a": 1}, {"_attempt": 9}]


async def test_a_reader_that_stops_closes_what_it_read_from() -> None:
    closed = []

    async def source() -> AsyncIterator[Mapping[str, Any]]:
        try:
            while True:
                yield {"a": "x" * 100_000}
        finally:
            closed.append(True)

    reading = export.json_lines(source())
    await anext(reading)
    await reading.aclose()
    assert closed


@given(
    st.lists(
        st.dictionaries(
            st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text(), max_size=4
        ),
        max_size=5,
    )
)
async def test_json_lines_give_back_what_went_in(records: list[dict[str, Any]]) -> None:
    text = b"".join([chunk async for chunk in export.json_lines(stream(*records))]).decode()
    assert [json.loads(line) for line in text.split("\n")[:-1]] == records
