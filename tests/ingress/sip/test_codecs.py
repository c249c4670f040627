"""Which codecs a phone call is spoken and heard in, by whoever offered and whatever the answer names."""

import asyncio

import numpy as np
import pytest

from tests.ingress.fake_pop import FakePop, tone
from tests.ingress.sip.peer import Phone, calling, sip
from tests.support.waiting import until
from voicepipe.audio import dbfs
from voicepipe.rtp.codec import G722, OPUS, PCMA, PCMU, Codec
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.telephone_events import TelephoneEvent

OPUS_96 = "a=rtpmap:96 opus/48000/2\r\n"
KEYS_48 = "a=rtpmap:97 telephone-event/48000\r\n"


async def say(ann: Phone, codec: Codec, payload_type: int, packets: int = 25) -> None:
    """A tone in this codec, and a little silence."""
    encode = codec.encoder()
    whole = tone(codec.out_rate // 50 * packets, codec.out_rate).reshape(packets, -1)
    for pcm in [*whole, *np.zeros((5, codec.out_rate // 50), np.int16)]:
        stamp = ann.sent * codec.clock // 50
        packet = RtpPacket(payload_type, ann.sent & 0xFFFF, stamp, ann.ssrc, encode(pcm.astype(np.int16)))
        ann.sent += 1
        ann.rtp.sendto(bytes(packet), ann.media)
        await asyncio.sleep(0.02)


def loud(pop: FakePop) -> int:
    """Blocks of sound that the call has heard."""
    return sum(dbfs(block.pcm) > -30 for block in pop.calls[0].blocks)


async def is_heard(pop: FakePop, ann: Phone, codec: Codec, payload_type: int) -> None:
    before = loud(pop)
    await say(ann, codec, payload_type)
    await until(lambda: loud(pop) >= before + 15)


@pytest.mark.parametrize("prefers", [(), ("pcmu", "pcma"), ("opus",)])
@pytest.mark.parametrize(
    ("formats", "more", "ours", "sends"),
    [
        ("8 0 101", "", 8, [(PCMA, 8), (PCMU, 0)]),
        ("18 8 0 101", "a=rtpmap:18 G729/8000\r\n", 8, [(PCMU, 0), (PCMA, 8)]),
        ("9 0 101", "", 9, [(G722, 9), (PCMU, 0)]),
        ("0 9 8 101", "", 0, [(G722, 9), (PCMA, 8), (PCMU, 0)]),
        ("96 0 101 97", OPUS_96 + KEYS_48, 96, [(OPUS, 96), (OPUS, 111), (PCMU, 0)]),
        ("8 101", "", 8, [(PCMA, 8)]),
    ],
)
async def test_an_answer_with_several_codecs(
    prefers: tuple[str, ...], formats: str, more: str, ours: int, sends: list[tuple[Codec, int]]
) -> None:
    """We speak in the first of theirs that we have (RFC 3264, 6.1), whatever `sip.codecs` says, and hear each (7)."""
    pop = FakePop(sip(codecs=prefers))
    async with calling(pop) as ann:
        ann.invite("")
        offer = await ann.final("INVITE")
        ann.took(offer)
        ann.media_of(offer)
        ann.ack(ann.sdp(formats=formats, more=more))
        for codec, payload_type in sends:
            await is_heard(pop, ann, codec, payload_type)
        await until(lambda: len(ann.heard()) > 5)
        assert {packet.payload_type for packet in ann.heard()} == {ours}
        assert (await ann.hang_up()).code == 200


async def test_an_answer_to_an_offer_on_the_way() -> None:
    """Their re-INVITE asks us to offer."""
    pop = FakePop(sip(codecs=("pcmu",)))
    async with calling(pop) as ann:
        ann.media_of(await ann.dial())
        await is_heard(pop, ann, PCMU, 0)
        after = len(ann.said)
        ann.invite("")
        await ann.final("INVITE", after)
        ann.ack(ann.sdp(formats="8 9 101"))
        before = len(ann.heard())
        await is_heard(pop, ann, G722, 9)
        await is_heard(pop, ann, PCMA, 8)
        await until(lambda: len(ann.heard()) > before + 10)
        assert ann.heard()[-1].payload_type == 8
        await ann.hang_up()


@pytest.mark.parametrize(("prefers", "ours"), [((), 8), (("pcmu",), 0)])
async def test_an_offer_with_several_codecs_is_answered_with_one_and_each_is_heard(
    prefers: tuple[str, ...], ours: int
) -> None:
    """Phones that send another codec of their offer than the one of our answer would be heard by nobody."""
    pop = FakePop(sip(codecs=prefers))
    async with calling(pop) as ann:
        answer = await ann.dial(ann.sdp(formats="8 0 9 101"))
        assert f"RTP/AVP {ours} 101\r\n" in answer.body
        ann.media_of(answer)
        for codec, payload_type in ((PCMU, 0), (PCMA, 8), (G722, 9)):
            await is_heard(pop, ann, codec, payload_type)
        await until(lambda: ann.heard())
        assert {packet.payload_type for packet in ann.heard()} == {ours}
        await ann.hang_up()


async def test_a_codec_that_changes_by_a_re_invite_is_heard_before_and_after_it() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.media_of(await ann.dial())
        await is_heard(pop, ann, PCMU, 0)
        changed = await ann.dial(ann.sdp(formats="96 101", more=OPUS_96))
        assert "RTP/AVP 96 101\r\n" in changed.body
        await is_heard(pop, ann, PCMU, 0)
        await is_heard(pop, ann, OPUS, 96)
        assert (await ann.hang_up()).code == 200


@pytest.mark.parametrize("payload_type", [97, 101, 110])
async def test_keys_of_either_clock_are_told(monkeypatch: pytest.MonkeyPatch, payload_type: int) -> None:
    """Two of our offer, two of their answer, under other numbers."""
    pressed: list[str] = []
    monkeypatch.setattr("tests.ingress.fake_pop.FakeCall.press", lambda call, key: pressed.append(key))
    async with calling(FakePop(sip())) as ann:
        ann.invite("")
        offer = await ann.final("INVITE")
        ann.took(offer)
        ann.media_of(offer)
        ann.ack(ann.sdp(formats="96 0 97 101", more=OPUS_96 + KEYS_48))
        await until(lambda: ann.heard())
        ann.say(payload_type=payload_type, payload=bytes(TelephoneEvent(9, True, 800)))
        await until(lambda: pressed)
        assert pressed == ["9"]
        await ann.hang_up()


@pytest.mark.parametrize("formats", ["18 101", "101", "13 101"])
async def test_an_answer_without_a_codec_that_we_have_ends_the_call(formats: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.invite("")
        ann.took(await ann.final("INVITE"))
        ann.ack(ann.sdp(formats=formats))
        assert (await ann.got("BYE")).method == "BYE"
