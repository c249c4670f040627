"""The lines for log shippers, and how those of deleted calls are erased."""

import json
from pathlib import Path

from msgspec.structs import asdict

from tests.records.kept_calls import HOST, call
from voicepipe.observe.call_followers import CallEnd
from voicepipe.records.json_lines import erase_lines, write_line
from voicepipe.records.record import CallRecord, summary


def record(number: int) -> CallRecord:
    its = call(number)
    ended = summary(its, HOST, end=CallEnd(reason="caller", at=its.since + number))
    return CallRecord(**asdict(ended), said=())


def test_only_the_lines_of_deleted_calls_are_erased_and_none_moves(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    for number in range(4):
        write_line(record(number), str(file))
    before = file.read_bytes()
    end = erase_lines({call(1).id, call(3).id, "rtc_fra1.none"}, str(file))
    assert end == len(before) == len(file.read_bytes())
    lines = file.read_bytes().splitlines(keepends=True)
    assert [len(line) for line in lines] == [len(line) for line in before.splitlines(keepends=True)]
    assert [json.loads(line) for line in lines[1::2]] == [{"id": call(n).id, "deleted": True} for n in (1, 3)]
    assert lines[::2] == before.splitlines(keepends=True)[::2]
    assert erase_lines({call(1).id}, str(file)) == end and file.read_bytes() == b"".join(lines)


def test_what_was_written_since_is_read_and_a_rotated_file_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    write_line(record(1), str(file))
    end = erase_lines({call(2).id}, str(file))
    write_line(record(2), str(file))
    erase_lines({call(1).id, call(2).id}, str(file), end)
    assert [len(json.loads(line)) > 2 for line in file.read_text().splitlines()] == [True, False]
    file.unlink()
    write_line(record(2), str(file))
    erase_lines({call(2).id}, str(file), 10 * end)
    assert json.loads(file.read_text()) == {"id": call(2).id, "deleted": True}


def test_where_there_is_no_file_nothing_is_erased(tmp_path: Path) -> None:
    for destination in ("", "-", str(tmp_path / "none")):
        assert erase_lines({call(1).id}, destination) == 0


def test_what_is_no_record_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_bytes(b'# a note\n\n{"other": 1}\n{"id":"rtc_')
    before = file.read_bytes()
    assert erase_lines({"rtc_"}, str(file)) == before.rindex(b"\n") + 1
    assert file.read_bytes() == before
