"""Calls by SIP that change on the way: hold, another codec, another address, another network, a refresh."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import calling, opened, phone, sip
from tests.support.waiting import until
from voicepipe.audio import Pcm, g711
from voicepipe.call.playout import NOBODY, Playout
from voicepipe.call.speech import Phrase
from voicepipe.config.phone_config import SipTrunk
from voicepipe.line import Line
from voicepipe.rtp.packet import RtpPacket


@asynccontextmanager
async def speaking(line: Line, pcm: Pcm) -> AsyncIterator[Playout]:
    """A reply of `pcm` on the line, by playout as in real calls."""
    playout = Playout(line, time.monotonic, -15.0)
    task = asyncio.create_task(playout.run())
    playout.begin(NOBODY)
    await playout.put(Phrase("", pcm))
    try:
        yield playout
    finally:
        task.cancel()
        await asyncio.wait({task})


def spoken(packets: list[RtpPacket]) -> bytes:
    """PCMU, without the silence."""
    return b"".join(packet.payload for packet in packets if set(packet.payload) != {0xFF})


async def test_hold_and_resume() -> None:
    pop = FakePop(sip())
    reply = np.random.default_rng(1).integers(500, 8000, 16_000).astype(np.int16)
    async with calling(pop) as ann:
        ann.media_of(await ann.dial())
        await ann.talk(0, 10)
        media = pop.calls[0].line.media  # type: ignore[attr-defined]
        async with speaking(pop.calls[0].line, reply) as playout:
            await until(lambda: len(spoken(ann.heard())) > 800)
            held = await ann.dial(ann.sdp(direction="sendonly"))
            assert held.code == 200 and "a=recvonly" in held.body
            held = await ann.dial(ann.sdp(direction="inactive"))
            assert held.code == 200 and "a=inactive" in held.body
            sent, heard = media.statistics().sent, len(pop.calls[0].blocks)
            await ann.talk(5, 10)
            assert media.statistics().sent == sent, "nothing is sent to who does not listen"
            assert len(pop.calls[0].blocks) == heard, "and music is not heard"
            assert playout.position < reply.size
            resumed = await ann.dial(ann.sdp())
            assert resumed.code == 200 and "a=sendrecv" in resumed.body
            await ann.talk(0, 10)
            await asyncio.wait_for(playout.drained(), 60)
            await until(lambda: len(spoken(ann.heard())) >= reply.size)
        assert spoken(ann.heard()) == g711.encode("pcmu", reply), "all that was being said is heard"
        await until(lambda: len(pop.calls[0].blocks) > heard)
        await ann.hang_up()
        assert len(pop.calls) == 1


async def test_another_address_and_codec_on_the_way() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        await until(lambda: ann.heard())
        elsewhere: list[bytes] = []
        other, port = await opened(lambda data, source: elsewhere.append(data))
        changed = await ann.dial(ann.sdp(formats="8 101", port=port))
        assert "RTP/AVP 8 101" in changed.body
        await until(lambda: any(data[1] & 0x7F == 8 for data in elsewhere))
        await ann.hang_up()
        other.close()


@pytest.mark.parametrize("method", ["INVITE", "INVITE without an offer", "UPDATE"])
async def test_a_telephone_that_changes_networks_behind_a_nat_is_heard_and_hears(method: str) -> None:
    """Its SDP goes on to name an address of its own network, which tells nothing."""
    pop = FakePop(sip(trunks=(SipTrunk(name="all", addresses=("127.0.0.0/8",)),)))
    async with serving(pop), phone(pop) as ann, phone(pop, "127.0.0.2") as moved:
        private = ann.sdp().replace("c=IN IP4 127.0.0.1", "c=IN IP4 10.0.0.5")
        ann.media_of(await ann.dial(private))
        await ann.talk(0, 5)
        await until(lambda: ann.heard())
        moved.call_id, moved.tag, moved.to_tag, moved.seq = ann.call_id, ann.tag, ann.to_tag, ann.seq
        method, _, late = method.partition(" ")
        moved.request(method, body="" if late else private)
        answer = await moved.final(method)
        assert answer.code == 200
        if method == "INVITE":
            moved.ack(private if late else "")
        moved.media_of(answer)
        before = len(pop.calls[0].blocks)
        await moved.talk(0, 20)
        await until(lambda: len(moved.heard()) > 10 and len(pop.calls[0].blocks) >= before + 8)
        await moved.hang_up()


async def test_an_invite_without_an_offer_gets_ours() -> None:
    pop = FakePop(sip())
    pop.packets, pop.pace = 25, 0.02
    async with calling(pop) as ann:
        ann.invite("")
        offer = await ann.final("INVITE")
        assert offer.code == 200 and "a=rtpmap:0 PCMU/8000" in offer.body and "telephone-event" in offer.body
        ann.took(offer)
        ann.media_of(offer)
        ann.ack(ann.sdp(formats="8 101"))
        await until(lambda: any(packet.payload_type == 8 for packet in ann.heard()))
        await ann.hang_up()
        await settled(pop)


async def test_what_is_said_before_our_offer_is_answered_is_heard() -> None:
    pop = FakePop(sip())
    reply = np.random.default_rng(2).integers(500, 8000, 4000).astype(np.int16)
    async with calling(pop) as ann:
        ann.invite("")
        ann.took(await ann.final("INVITE"))
        await until(lambda: pop.calls)
        async with speaking(pop.calls[0].line, reply):
            await asyncio.sleep(0.1)
            ann.ack(ann.sdp())
            await until(lambda: len(spoken(ann.heard())) >= reply.size)
        assert spoken(ann.heard()) == g711.encode("pcmu", reply)
        await ann.hang_up()


async def test_an_update_is_a_refresh_or_an_offer() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        ann.request("UPDATE")
        assert (await ann.final("UPDATE")).code == 200
        before = len(ann.said)
        ann.request("UPDATE", body=ann.sdp(direction="sendonly"))
        assert "a=recvonly" in (await ann.final("UPDATE", before)).body
        await ann.hang_up()


async def test_a_change_that_cannot_be_leaves_the_call_as_it_is() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        refused = await ann.dial(
            ann.sdp(formats="96").replace("a=rtpmap:101", "a=rtpmap:96 speex/8000\r\na=rtpmap:101")
        )
        assert refused.code == 488 and "speex" in refused.header("warning").lower()
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before + 5)
        assert (await ann.hang_up()).code == 200
