"""The WebRTC caller against a server whose calls are scripted: what it says arrives, what it hears has its place."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
import uvloop

from latency_probes.webrtc import WebRtcCaller, local_address
from tests.ingress.fake_pop import ANSWER, FakePop, serving, tone
from tests.support.waiting import until
from voicepipe.audio import opus
from voicepipe.base.errors import PopFull, ProbeError

opus.load()


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


async def test_a_question_is_heard_and_its_answer_has_its_item_and_its_time() -> None:
    pop = FakePop()
    pop.packets, pop.pace = 25, 0.02
    async with serving(pop) as address:
        caller = WebRtcCaller(f"http://{address}", "quiet", seed=1)
        await caller.dial()
        line = caller.timeline
        try:
            start = caller.say(tone(24_000, 24_000))
            await until(lambda: bool(line.of_type("output_audio_buffer.stopped")))
        finally:
            await caller.hang_up()
        reply = line.answer(after=line.sent_at(start))
        assert reply is not None and reply.text == "".join(ANSWER)
        assert reply.first_audible and reply.first_audible.arrived > line.sent_at(start)
        assert np.abs(reply.pcm.astype(int)).max() > 5000
        assert set(line.setup) - {"session.created"} == {"answer", "first packet in", "first packet out"}
        assert 0 < line.setup["answer"] < line.setup["first packet in"]
        loud = [block for block in pop.calls[0].blocks if np.abs(block.pcm.astype(int)).max() > 5000]
        assert len(loud) == pytest.approx(50, abs=3)


async def test_a_server_that_is_full_or_not_there() -> None:
    pop = FakePop()
    pop.refuse = PopFull("full")
    async with serving(pop) as address:
        with pytest.raises(ProbeError, match="HTTP 503"):
            await WebRtcCaller(f"http://{address}", "quiet", seed=1).dial()
    with pytest.raises(ProbeError, match="start one"):
        await WebRtcCaller("http://127.0.0.1:9", "quiet", seed=1).dial()
    with pytest.raises(ProbeError, match="correct the address"):
        await asyncio.to_thread(local_address, "http://no.such.host.invalid")
