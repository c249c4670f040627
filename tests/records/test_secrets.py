"""Two hundred calls in which card numbers are told and keys are pressed: nothing of them is in the records' file, in
lines, in what receivers are sent, in the dashboard's memory, in traces or in the log."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.observe.test_calls import LINE
from tests.observe.test_otel import Traced, traced
from tests.redaction.transcripts import SHOWN, Transcript, leaks, with_secrets, without_secrets
from voicepipe.agent import Hooks
from voicepipe.config import Config
from voicepipe.conversation.events import CallEnded, CallEvent, Item, ItemAdded, ReplyDone, ReplyStarted, ToolUse
from voicepipe.observe.calls import LiveCall
from voicepipe.observe.last_turns import LastTurns
from voicepipe.records.records import Records, kept

__all__ = ["traced"]


def events(transcript: Transcript) -> list[CallEvent]:
    """As a call would have told them: tools run for the reply that follows."""
    made: list[CallEvent] = []
    tools: list[ToolUse] = []
    number = 0
    for line in transcript.lines:
        if line.who == "heard":
            made.append(ItemAdded(Item(f"item_{len(made)}", text=line.text), None, spoken=True))
            continue
        if line.who == "tool":
            tools.append(ToolUse("pay", took=1.0, arguments=line.text, result=line.text))
            continue
        number += 1
        said = (Item(f"item_{len(made)}", role="assistant", text=line.text),)
        made.append(ReplyStarted(f"resp_{number}", f"turn_{number}"))
        made.append(ReplyDone(f"resp_{number}", "completed", items=said, tools=tuple(tools)))
        tools = []
    return [*made, CallEnded("caller")]


def held(transcript: Transcript, number: int, turns: LastTurns, *followers: Any) -> None:
    """One call in which all of it is said."""
    call = LiveCall(turns, 300, "acme", "front-desk", followers)
    call.answered(f"rtc_fra1.{number:012x}", LINE, 1000.0 + number)
    for event in events(transcript):
        if isinstance(event, ReplyStarted):
            event = ReplyStarted(event.response_id, f"{event.turn_id}_{number}")
        call.note(event, 1000.0 + number)
    call.ended("caller", 2000.0)
    call.left()


def is_long(fragment: str) -> bool:
    """Shorter ones may stand in a time or an id by chance; `leaks` looks for them in the call's own words."""
    return len(fragment) >= SHOWN


def words(said: dict[str, Any]) -> list[str]:
    """Of an exchange that is kept, in the order in which they were said."""
    tools = [text for use in said["tools"] for text in (use.get("arguments", ""), use.get("result", ""))]
    return [said["heard"], *tools, said["answered"]]


async def test_nothing_of_them_is_kept_anywhere(
    tmp_path: Path, traced: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hooks = Hooks(after_call="http://127.0.0.1:1/", secret_env="HOOK")
    config = msgspec.convert(
        {"pop": {"id": "fra1"}, "records": {"folder": str(tmp_path), "lines": str(tmp_path / "lines")}}, Config
    )
    turns, secrets = LastTurns(), with_secrets()
    async with kept(config, lambda agent, tenant: hooks) as records:
        assert records
        for number, transcript in enumerate(secrets):
            held(transcript, number, turns, records, traced.traces)
        await records.writer.carried_out(lambda its: None)
        for number, transcript in enumerate(secrets):
            texts = await in_record(records, number)
            assert len(texts) >= 3 and not leaks(transcript, texts), transcript
        files = await asyncio.to_thread(lambda: [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()])
        assert len(files) >= 4, "the database, its write-ahead log, lines"
    memory = b"".join(turns._packed.values())
    spans = repr([(span.name, dict(span.attributes or {})) for span in traced.spans()]).encode()
    for transcript in secrets:
        for fragment in filter(is_long, (*transcript.fragments, *transcript.secrets)):
            for place in (*files, memory, spans, caplog.text.encode()):
                assert fragment.encode() not in place, fragment


async def in_record(records: Records, number: int) -> list[str]:
    """All texts of a call, as `/v1/records/{id}` and receivers get them."""
    record = await records.found(f"rtc_fra1.{number:012x}", None)
    assert record
    return [text for raw in record.said for text in words(msgspec.json.decode(raw))]


async def test_calls_without_secrets_are_kept_word_for_word(tmp_path: Path) -> None:
    config = msgspec.convert({"pop": {"id": "fra1"}, "records": {"folder": str(tmp_path)}}, Config)
    innocent = without_secrets()
    async with kept(config, lambda agent, tenant: Hooks()) as records:
        assert records
        for number, transcript in enumerate(innocent):
            held(transcript, number, LastTurns(), records)
        await records.writer.carried_out(lambda its: None)
        for number, transcript in enumerate(innocent):
            told = " ".join([line.text for line in transcript.lines if line.who == "heard"])
            texts = await in_record(records, number)
            assert all(part in " ".join(texts) for part in told.split()), told
