"""A WebSocket caller's audio: framing, order, backpressure, and what counts as played."""

import asyncio
import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingress.fake_pop import tone
from tests.support.sinks import Blocks
from voicepipe.audio import BLOCK, Block, g711
from voicepipe.ingress.blocks import QUEUED
from voicepipe.ingress.realtime import client_events as ask
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmaFormat, PcmFormat, PcmuFormat
from voicepipe.ingress.wire_errors import WireError


async def collected(line: WebSocketLine) -> list[Block]:
    blocks: list[Block] = []
    await line.listen(Blocks(blocks.append))
    return blocks


@given(st.lists(st.integers(0, 5000), max_size=20))
def test_appends_of_any_length_become_gapless_blocks(lengths: list[int]) -> None:
    async def run() -> None:
        line = WebSocketLine(PcmFormat(), PcmFormat())
        reader = asyncio.create_task(collected(line))
        data = tone(sum(lengths) // 2 + 1, 24_000).tobytes()
        for n, length in enumerate(lengths):
            await line.append(data[:length], arrived=float(n))
            data = data[length:]
        await line.flush()
        line.end()
        blocks = await reader
        assert [block.pos for block in blocks] == list(range(0, len(blocks) * BLOCK, BLOCK))
        assert [block.arrived for block in blocks] == sorted(block.arrived for block in blocks)
        heard = len(blocks) * BLOCK
        # Before its first sound the resampler holds back up to 50 samples, 34 at 16 kHz; then nothing but a fraction.
        assert 0 <= heard - sum(lengths) // 2 * 2 / 3 + 34 <= BLOCK + 34

    asyncio.run(run())


@pytest.mark.parametrize("format", [PcmFormat(), PcmuFormat()])
async def test_a_packet_is_heard_when_it_comes_and_not_with_the_next(format: PcmFormat | PcmuFormat) -> None:
    line, blocks = WebSocketLine(format, format), list[Block]()
    listening = asyncio.create_task(line.listen(Blocks(blocks.append)))
    for n in range(5):
        await line.append(bytes(960 if isinstance(format, PcmFormat) else 160), arrived=float(n))
        await line.flush()
    listening.cancel()
    assert [(block.pos, block.arrived) for block in blocks] == [(n * BLOCK, float(n)) for n in range(5)]


async def test_a_caller_faster_than_the_call_waits() -> None:
    line = WebSocketLine(PcmuFormat(), PcmuFormat())
    append = asyncio.create_task(line.append(bytes(8000 * 10), 0.0))
    await asyncio.sleep(0.01)
    assert not append.done()
    reader = asyncio.create_task(collected(line))
    await append
    await line.flush()
    line.end()
    assert len(await reader) == 500 > QUEUED


async def test_a_listener_that_leaves_releases_the_caller() -> None:
    line = WebSocketLine(PcmuFormat(), PcmuFormat())
    await line.append(bytes(800), 0.0)

    def fails(block: Block) -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        await line.listen(Blocks(fails))
    await line.append(bytes(80_000), 0.0)
    await line.flush()


async def test_a_change_of_format() -> None:
    line = WebSocketLine(PcmFormat(), PcmFormat())
    reader = asyncio.create_task(collected(line))
    await line.append(tone(24_000, 24_000).tobytes() + b"\1", 0.0)
    line.set_formats(PcmaFormat(), PcmFormat())
    await line.append(g711.encode("pcma", tone(8000, 8000)), 0.0)
    await line.flush()
    line.end()
    blocks = await reader
    assert not blocks[0].narrow and blocks[-2].narrow, "G.711 has a telephone's band"
    heard = np.concatenate([block.pcm for block in blocks])
    assert abs(heard.size - 32_000) <= BLOCK
    assert np.abs(heard[1000:15_000]).max() > 9_000 and np.abs(heard[17_000:31_000]).max() > 9_000


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_played_follows_the_clock_and_never_passes_what_was_sent() -> None:
    clock, out = Clock(), bytearray()
    line = WebSocketLine(PcmFormat(), PcmFormat(), clock)
    line.on_audio = lambda data, ms: out.extend(data)
    assert line.out_rate == 24_000 and line.played() == 0
    for _ in range(10):
        line.send(tone(480, 24_000))
    assert len(out) == 9600 and line.played() == 0
    clock.now += 0.1
    assert line.played() == pytest.approx(2400, abs=1)
    clock.now += 5
    assert line.played() == 4800
    line.send(tone(480, 24_000))  # after a pause the client plays at once
    assert line.played() == 4800
    clock.now += 0.01
    assert line.played() == pytest.approx(5040, abs=1)


def test_what_is_cleared_was_neither_sent_nor_played() -> None:
    clock = Clock()
    line = WebSocketLine(PcmFormat(), PcmFormat(), clock)
    line.send(tone(4800, 24_000))
    clock.now += 0.1
    assert line.clear() == pytest.approx(2400, abs=1)
    played = line.played()
    clock.now += 1
    assert line.played() == played == pytest.approx(2400, abs=1)
    line.send(tone(480, 24_000))
    clock.now += 1
    assert line.played() == played + 480


@pytest.mark.parametrize(("format", "law"), [(PcmuFormat(), "pcmu"), (PcmaFormat(), "pcma")])
def test_g711_out(format: PcmuFormat | PcmaFormat, law: str) -> None:
    out: list[tuple[bytes, float]] = []
    line = WebSocketLine(format, format)
    line.on_audio = lambda data, ms: out.append((data, ms))
    assert line.out_rate == 8000
    line.send(tone(160, 8000))
    assert out == [(g711.encode(law, tone(160, 8000)), 20.0)]
    line.set_formats(PcmFormat(), PcmFormat())  # playout's rate stays, the line converts
    for _ in range(50):
        line.send(tone(160, 8000))
    assert line.out_rate == 8000
    assert abs(sum(len(data) for data, _ in out[1:]) - 48_000) < 300
    assert sum(ms for _, ms in out) == 51 * 20


async def test_hanging_up_lets_the_client_play_what_it_has() -> None:
    line = WebSocketLine(PcmFormat(), PcmFormat())
    line.send(tone(2400, 24_000))
    began = asyncio.get_running_loop().time()
    await line.hang_up()
    assert 0.08 < asyncio.get_running_loop().time() - began < 0.5
    assert await collected(line) == []
    await line.hang_up()


def append_of(audio: object) -> ask.InputAppend:
    event = ask.decode(json.dumps({"type": "input_audio_buffer.append", "audio": audio}), 1000)
    assert isinstance(event, ask.InputAppend)
    return event


def test_a_long_append_is_decoded_a_second_at_a_time() -> None:
    """In one step 15 MB of base64 took 24 ms, in which nobody else was heard."""
    sound = tone(30 * 24_000 + 7, 24_000).tobytes()
    chunks = list(append_of(base64.b64encode(sound).decode()).chunks())
    assert b"".join(chunks) == sound and max(map(len, chunks)) == 48_000
    assert list(append_of("").chunks()) == []


@pytest.mark.parametrize("wrong", ["AAA", "====", "A" * 64_001, "A" * 64_000 + "€€€€", 1, None])
def test_an_append_that_is_no_base64_is_told_so(wrong: object) -> None:
    with pytest.raises(WireError) as error:
        list(append_of(wrong).chunks())
    assert error.value.code == ("invalid_value" if isinstance(wrong, str) else "invalid_type")
    assert error.value.param == "audio"
