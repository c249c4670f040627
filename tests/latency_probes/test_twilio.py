"""The caller who comes by Twilio, against a server whose calls are scripted."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import uvloop

from latency_probes.twilio import TOKEN_ENV, TwilioCaller, door
from tests.ingress.fake_pop import ANSWER, FakePop, serving, tone
from tests.support.waiting import until
from voicepipe.audio import dbfs
from voicepipe.base.errors import PopFull, ProbeError
from voicepipe.config import Config, load
from voicepipe.config.phone_config import TwilioConfig

TOKEN = "0123"


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_ENV, TOKEN)


def opened() -> FakePop:
    pop = FakePop(Config(twilio=TwilioConfig(auth_token_env=TOKEN_ENV)))
    pop.packets, pop.pace = 25, 0.02
    return pop


async def test_a_question_is_heard_and_its_answer_has_its_item_and_its_time() -> None:
    pop = opened()
    async with serving(pop) as address:
        caller = TwilioCaller(f"ws://{address}/v1/realtime", "quiet", seed=1, key=TOKEN, agent="clinic")
        await caller.dial()
        line = caller.timeline
        try:
            start = caller.say(tone(24_000, 24_000))
            await until(lambda: bool(line.of_type("output_audio_buffer.stopped")))
            assert not caller.hung_up()
            await until(lambda: pop.calls[0].line.played() == 50 * 160)
        finally:
            await caller.hang_up()
        reply = line.answer(after=line.sent_at(start))
        assert reply is not None and reply.text == "".join(ANSWER)
        assert reply.first_audible and reply.first_audible.arrived > line.sent_at(start)
        assert reply.pcm.size == pytest.approx(24_000, abs=480) and np.abs(reply.pcm.astype(int)).max() > 5000
        assert pop.calls[0].settings.agent.name == "clinic"
        loud = [block for block in pop.calls[0].blocks if dbfs(block.pcm) > -30]
        assert len(loud) == pytest.approx(50, abs=3)


async def test_what_is_interrupted_is_not_played() -> None:
    pop = opened()
    pop.packets, pop.pace = 2000, 0.001
    async with serving(pop) as address:
        caller = TwilioCaller(f"http://{address}", "quiet", seed=1, key=TOKEN)
        await caller.dial()
        line = caller.timeline
        try:
            caller.say(tone(12_000, 24_000))
            await until(lambda: line.play_end > time.monotonic() + 20)
            far = line.play_end
            caller.say(tone(12_000, 24_000))
            await until(lambda: bool(line.of_type("output_audio_buffer.cleared")))
            await until(lambda: line.play_end < far)
        finally:
            await caller.hang_up()


async def test_a_call_that_is_ended_or_refused() -> None:
    pop = opened()
    async with serving(pop) as address:
        caller = TwilioCaller(f"http://{address}", "quiet", seed=1, key=TOKEN)
        await caller.dial()
        await pop.calls[0].line.hang_up()
        await until(caller.hung_up)
        await caller.hang_up()
        with pytest.raises(ProbeError, match="telephony.public_url"):
            await TwilioCaller(f"http://{address}", "quiet", seed=1, key="wrong").dial()
        pop.refuse = PopFull("full")
        with pytest.raises(ProbeError, match="does not take the call"):
            await TwilioCaller(f"http://{address}", "quiet", seed=1, key=TOKEN).dial()
    with pytest.raises(ProbeError, match="start one"):
        await TwilioCaller("http://127.0.0.1:9", "quiet", seed=1).dial()


def test_the_door_of_a_server_of_our_own() -> None:
    with door() as ((option, manifest), token):
        assert option == "--pop" and load(None, Path(manifest)).twilio.auth_token_env == TOKEN_ENV and token == TOKEN
