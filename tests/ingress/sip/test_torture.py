"""RFC 4475's torture messages at a PoP on which another call goes on: what must be answered is, and nothing is left."""

import asyncio
import logging
import re

import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, opened, phone, sip
from tests.ingress.sip.test_strangers import stack
from tests.ingress.sip.torture import answerable, tortures
from tests.support.waiting import until
from voicepipe.ingress.sip.names import ResolvingSender


class Tormentor:
    """Sends one message after the other, and keeps the answers."""

    async def open(self, phone: Phone) -> None:
        self.server = phone.server
        self.answers: list[bytes] = []
        self.socket, _ = await opened(lambda data, source: self.answers.append(data))

    async def torment(self, message: bytes, seconds: float) -> int | None:
        """The final answer's code, if there is one within this time."""
        self.answers.clear()
        self.socket.sendto(answerable(message), self.server)
        call_id = re.search(rb"(?im)^(?:call-id|i)[ \t]*:[ \t]*([^\r]+)", message)
        if call_id is None:
            return None
        for _ in range(100):
            if final := [data for data in self.answers if data[8:9] > b"1" and call_id[1] in data]:
                return int(final[0][8:11])
            await asyncio.sleep(seconds / 100)
        return None


@pytest.mark.usefixtures("hasty")
async def test_torture(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ResolvingSender, "send", lambda *_: None)  # Nobody is asked where example.com is.
    pop, wrong = FakePop(sip()), []
    async with serving(pop), phone(pop) as ann:
        await ann.dial()
        mallory = Tormentor()
        await mallory.open(ann)
        for torture in tortures():
            code = await mallory.torment(torture.message, 5.0 if torture.status else 0.1)
            if code != torture.status:
                wrong.append(f"{torture.name}: {code}")
        assert not wrong, " ".join(wrong)
        heard = [packet.seq for packet in ann.heard()]
        assert len(heard) > 20 and {(later - one) % 2**16 for one, later in zip(heard, heard[1:], strict=False)} == {1}
        await until(lambda: pop.live == 1)
        await ann.hang_up()
        mallory.socket.close()
        left = stack()._transactions
        await until(lambda: not (left.tserver or left.tclient or left.l1rcache or left.l2rcache))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("hasty")
async def test_a_pop_that_closes_leaves_no_transaction_behind(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(sip(ring_ms=60_000))
    async with serving(pop), phone(pop) as ann:
        ann.invite("v=0\r\nnonsense")
        await ann.final("INVITE")
        ann.to_tag, ann.seq = "", ann.seq + 1
        ann.invite()
        await ann.got("INVITE", 180)
        pop.live = 0
    await asyncio.sleep(0.8)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
