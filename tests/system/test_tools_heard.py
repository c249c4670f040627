"""A whole PoP, by WebSocket and by telephone: the front desk's tool takes 2 s, then the caller says goodbye.

What callers say is scripted, so that a busy machine hears it, too; the answers, the voice and the lines are real. The
clip that is played is long enough for all words: one comes every 250 ms.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from latency_probes import clips
from latency_probes.caller import Caller
from latency_probes.conversation import greeting_over
from latency_probes.own_server import Started, started
from latency_probes.realtime import RealtimeCaller
from latency_probes.sip import SipCaller
from latency_probes.timeline import Reply, voiced_span
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
CONFIG = """
[pop]
budget_ms = 600000
agents = "agents"
[engines]
asr = "scripted"
[scripted]
hears = ["a table for two at seven on friday", "that is all thanks"]
"""


@contextmanager
def slow_pop(folder: Path) -> Iterator[tuple[Started, str]]:
    """And its telephone's address. What was booked stands in the file `booked`."""
    (folder / "agents").mkdir()
    (folder / "slow.toml").write_text(CONFIG)
    desk = (ROOT / "tests" / "models" / "desk" / "front-desk.toml").read_text()
    slow = desk.replace("voicepipe.tools_demo:book_table", "tests.support.slow_tools:book_table")
    assert slow != desk
    (folder / "agents" / "desk.toml").write_text(slow)
    port = free_port()
    command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--sip-port", str(port))
    variables = {"PYTHONPATH": str(ROOT), "BOOKINGS": str(folder / "booked")}
    with started((*command, "--config", str(folder / "slow.toml")), {**os.environ, **variables}) as child:
        yield child, f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def pop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, and its telephone's."""
    with slow_pop(tmp_path_factory.mktemp("pop")) as (child, phone):
        yield child.url, phone


async def ask(caller: Caller, said: str) -> Reply:
    """Say something; the reply to it, once it is over."""
    speech = await asyncio.to_thread(clips.speech, spoken("booking")[0], 1)
    before = len(caller.timeline.of_type("response.done"))
    last = caller.say(speech.pcm) + speech.voiced[1] - 1
    await until(lambda: len(caller.timeline.of_type("response.done")) > before or caller.hung_up())
    replies = [reply for reply in caller.timeline.replies.values() if reply.first_audible]
    assert replies[-1].first_audible and replies[-1].first_audible.arrived > caller.timeline.sent_at(last), said
    return replies[-1]


@pytest.mark.parametrize("way", ["websocket", "sip"])
async def test_a_slow_tool_is_bridged_and_a_goodbye_heard_before_the_call_ends(pop: tuple[str, str], way: str) -> None:
    url, phone = pop
    caller = SipCaller(url, "quiet", 1, phone=phone) if way == "sip" else RealtimeCaller(url, "quiet", 1)
    await caller.dial()
    try:
        await greeting_over(caller)
        booking = await ask(caller, "a booking")
        assert "I am looking into the book." in booking.text, booking.text
        assert "It is booked for 2." in booking.text, booking.text
        await until(lambda: time.monotonic() > caller.timeline.play_end)
        goodbye = await ask(caller, "a goodbye")
        assert goodbye.text.strip() == "All right. Thank you for calling, and goodbye."
        await until(caller.hung_up)
        begins, ends = voiced_span(goodbye.pcm)
        # Twelve syllables, after which the voice's own silence has come as well: nothing was cut off.
        assert ends - begins > 24_000 * 1.5 and goodbye.pcm.size > ends
    finally:
        await caller.hang_up()


async def test_a_caller_who_hangs_up_and_a_server_that_ends_have_it_done_all_the_same(tmp_path: Path) -> None:
    with slow_pop(tmp_path) as (child, _):
        caller = RealtimeCaller(child.url, "quiet", 1)
        await caller.dial()
        await greeting_over(caller)
        speech = await asyncio.to_thread(clips.speech, spoken("booking")[0], 1)
        before = len(caller.timeline.of_type("response.created"))
        caller.say(speech.pcm)
        await until(lambda: len(caller.timeline.of_type("response.created")) > before)
        await caller.hang_up()
        os.kill(child.pid, signal.SIGTERM)
        await until((tmp_path / "booked").exists)
