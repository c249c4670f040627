"""A whole PoP whose agent finds its way through a spoken menu, which Whisper hears; the keys that come to telephones:
one of bare datagrams, and baresip."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from latency_probes.own_server import started
from tests.engines.openai_server import Event, Json, Server, called, said, serving
from tests.ingress.sip.baresip import Baresip, baresip
from tests.ingress.sip.peer import Phone
from tests.support.ports import free_port
from tests.support.waiting import PATIENT_POP, until
from voicepipe.audio import Pcm, g711
from voicepipe.audio.resample import Resampler
from voicepipe.engines.tts.hibari import HibariModel
from voicepipe.rtp.telephone_events import KEYS, TelephoneEvent

pytestmark = pytest.mark.e2e

VOICE = cache(HibariModel)

RATE, FRAME, EVENTS = 8000, 160, 101
MAIN = "Please press one for our sales team or two for customer service."
NUMBER = "Please enter your account number."
THANKS = "Thank you. Goodbye."
AGENT = 'name = "caller"\ninstructions = "You call a shop."\nsend_keys = true\nno_input_ms = 60000\n'


class Press(NamedTuple):
    """A key as it came: when it was down, in milliseconds of the stream."""

    key: str
    down: int
    up: int


class Menu(Phone):
    """The other side's telephone system: speaks in real time, and reads the keys that come."""

    def begin(self) -> None:
        self._mouth = np.zeros(0, np.int16)
        self._talking = asyncio.create_task(self._talk())

    def close(self) -> None:
        self._talking.cancel()
        super().close()

    async def _talk(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += 0.02
            await asyncio.sleep(due - loop.time())
            said, self._mouth = self._mouth[:FRAME], self._mouth[FRAME:]
            self.say(np.pad(said, (0, FRAME - said.size)))

    def speak(self, pcm: Pcm) -> None:
        self._mouth = pcm

    def presses(self) -> list[Press]:
        """The keys that came, each of which was let go of."""
        events = [packet for packet in self.heard() if packet.payload_type == EVENTS]
        if not events:
            return []
        found, first = [], events[0].timestamp
        for stamp, packets in groupby(events, key=lambda packet: packet.timestamp):
            *_, last = map(TelephoneEvent.parse, (packet.payload for packet in packets))
            down = (stamp - first) % 2**32
            found += [Press(KEYS[last.number], down // 8, (down + last.duration) // 8)] if last.ended else []
        return found

    def spoken(self) -> int:
        """The loudest sample that came."""
        sounds = [g711.decode("pcmu", packet.payload) for packet in self.heard() if packet.payload_type == 0]
        return max(int(np.abs(sound).max(initial=0)) for sound in sounds)

    async def pressed(self, keys: str) -> list[Press]:
        """The keys, all of which have come. Raises TimeoutError."""
        try:
            await until(lambda: len(self.presses()) >= len(keys))
        finally:
            assert "".join(press.key for press in self.presses()) == keys
        return self.presses()


def model(replies: dict[str, list[Event]], asked: list[str]) -> Server:
    """A model that goes by a word in what it reads last."""

    def answer(body: Json) -> list[Event]:
        last = body["messages"][-1]
        asked.append(f"{last['role']}: {last['content']}")
        text = last["content"].lower()
        return next((reply for word, reply in replies.items() if word in text), said(""))

    return Server(answer)


def press(keys: str) -> list[Event]:
    return called("c1", "send_keys", f'{{"keys": "{keys}"}}')


def spoken(text: str, rate: int = RATE) -> Pcm:
    narrow = Resampler(24_000, rate)
    return np.concatenate([narrow(VOICE().speak(text, 1.0).pcm), narrow.flush()])


@asynccontextmanager
async def answering(server: Server, folder: Path) -> AsyncIterator[tuple[int, Path]]:
    """A PoP whose agent answers by this model: its port for SIP, and its log."""
    (folder / "agents").mkdir()
    (folder / "agents" / "caller.toml").write_text(AGENT)
    port = free_port()
    async with serving(server) as url:
        (folder / "pop.toml").write_text(
            f'[pop]\nagents = "agents"\ndefault_agent = "caller"\n[engines]\nllm = "openai"\n'
            f'[openai]\nbase_url = "{url}"\nmodel = "nano"\n'
        )
        command = (*PATIENT_POP, "--sip-port", str(port), "--config", str(folder / "pop.toml"))
        pop = started(command)
        log = (await asyncio.to_thread(pop.__enter__)).log  # Not on this loop: the PoP asks the model as it starts.
        try:
            yield port, log
        finally:
            await asyncio.to_thread(pop.__exit__, None, None, None)


@asynccontextmanager
async def calling(port: int) -> AsyncIterator[Menu]:
    menu = Menu(("127.0.0.1", port))
    await menu.open()
    menu.media_of(await menu.dial())
    menu.begin()
    try:
        yield menu
        assert (await menu.hang_up()).code == 200
    finally:
        menu.close()


async def test_an_agent_finds_its_way_through_a_menu(tmp_path: Path) -> None:
    asked: list[str] = []
    replies = {"customer": press("2"), "account": press("1w2W3#"), "thank": said("")}
    async with answering(model(replies, asked), tmp_path) as (port, _), calling(port) as menu:
        menu.speak(spoken(MAIN))
        await menu.pressed("2")
        menu.speak(spoken(NUMBER))
        keys = await menu.pressed("2123#")
        menu.speak(spoken(THANKS))
        await until(lambda: any("thank" in text.lower() for text in asked))
        await asyncio.sleep(1)
        loudest = menu.spoken()
    assert {press.up - press.down for press in keys} == {160}
    pauses = [after.down - before.up for before, after in zip(keys[1:], keys[2:], strict=False)]
    assert all(pause >= least for least, pause in zip((500, 1000, 60), pauses, strict=True)), pauses
    assert asked.count("tool: sent") == 2 and loudest < 200, "nothing was said"


async def test_a_menu_that_repeats_itself_is_left(tmp_path: Path) -> None:
    asked: list[str] = []
    replies = {"customer": press("9"), "same 3 times": said("I cannot go on.")}
    async with answering(model(replies, asked), tmp_path) as (port, log), calling(port) as menu:
        for times in (1, 2):
            menu.speak(spoken(MAIN))
            await menu.pressed("9" * times)
            await until(lambda: asked.count("tool: sent") == times)  # noqa: B023
        menu.speak(spoken(MAIN))
        await until(lambda: any("same 3 times" in text for text in asked))
        await until(lambda: menu.spoken() > 1000)
        await menu.pressed("99")
        assert "the menu has said the same 3 times" in log.read_text()


@pytest.mark.skipif(shutil.which("baresip") is None, reason="baresip is not installed: apt install baresip-core")
async def test_baresip_reads_the_keys(tmp_path: Path) -> None:
    async with answering(model({"customer": press("7w#")}, []), tmp_path) as (port, _):
        async with baresip(tmp_path / "ann", "<sip:ann@127.0.0.1>;regint=0;audio_codecs=PCMA/8000/1") as ann:
            await ann.dial(port)
            await ann.say(spoken(MAIN, 16_000))
            await until(lambda: _keys_read(ann) == ["7", "#"])
            await ann.hang_up()


def _keys_read(phone: Baresip) -> list[str]:
    return [event["param"] for event in phone.told if event.get("type") == "CALL_DTMF_START"]
