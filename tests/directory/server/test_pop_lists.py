"""Lists of PoPs become one."""

from typing import Any

import msgspec
import pytest
from starlette.responses import JSONResponse, Response

from voicepipe.directory.server.pop_lists import PopRecords, merged, read


def listed(*began: float, pop: str = "fra", following: str | None = None) -> PopRecords:
    """What a PoP answers of calls that began then."""
    rows = [{"id": f"rtc_{pop}.{at:g}", "began": at, "caller": "+4930123456"} for at in began]
    answer = read(JSONResponse({"object": "list", "data": rows, "next": following}), PopRecords)
    assert answer
    return answer


def one(lists: dict[str, PopRecords | None], limit: int = 10, missing: tuple[str, ...] = ()) -> Any:
    return msgspec.json.decode(merged(lists, limit, missing))


def test_the_newest_of_all_come_first_and_as_they_were() -> None:
    said = one({"fra": listed(5, 3, 1), "lhr": listed(4, 2, pop="lhr"), "ber": listed(pop="ber")})
    assert [row["began"] for row in said["data"]] == [5, 4, 3, 2, 1]
    assert said["data"][1] == {"id": "rtc_lhr.4", "began": 4, "caller": "+4930123456"}
    assert (said["object"], said["next"], said["missing"]) == ("list", None, [])


@pytest.mark.parametrize("lists", [{"fra": listed(5, 3), "lhr": listed(4, 2)}, {"fra": listed(5, 4, following="x")}])
def test_it_goes_on_where_it_ended(lists: dict[str, PopRecords | None]) -> None:
    said = one(lists, limit=2)
    assert [row["began"] for row in said["data"]] == [5, 4]
    assert said["next"] == f"4.0_{said['data'][1]['id']}"


def test_who_did_not_answer_is_named() -> None:
    assert one({"fra": None, "lhr": listed(1)}, missing=("fra",)) == {
        "object": "list", "data": [{"id": "rtc_fra.1", "began": 1, "caller": "+4930123456"}], "next": None,
        "missing": ["fra"],
    }  # fmt: skip


def test_what_is_no_answer() -> None:
    none = PopRecords()
    assert read(None, PopRecords, none) is None
    unknown = Response('{"error": {"code": "record_not_found", "message": "..."}}', 404)
    assert read(unknown, PopRecords, none) is none
    assert read(unknown, PopRecords) is None
    for by_a_proxy in ("", "<html>", "{}", '{"error": "gone"}', '{"error": {"code": "not_found"}}', "[" * 5000):
        assert read(Response(by_a_proxy, 404), PopRecords, none) is None
    assert read(Response("{}", 405), PopRecords, none) is None
    assert read(Response('{"data": [', 200), PopRecords) is None
