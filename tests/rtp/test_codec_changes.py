"""A peer may send any codec that was agreed on, by the payload types of either end, and change at any packet."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.rtp.test_rtp_session import FRAME_S, Clock, End, speech
from tests.rtp.test_sdp import BROWSER
from tests.rtp.test_sip_sdp import DESK_PHONE, TRUNK
from tests.support.sinks import Blocks
from voicepipe.audio import RATE, dbfs
from voicepipe.ingress.rtp_line import RtpLine
from voicepipe.rtp import sdp, sip_sdp
from voicepipe.rtp.codec import CODECS, G722, OPUS, PCMA, PCMU, Codec, Formats, NonAudio
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.telephone_events import KeyFormat, TelephoneEvent

TYPES = {111: OPUS, 9: G722, 0: PCMU, 8: PCMA}
ALL: Formats = {**TYPES, 101: NonAudio.KEYS, 110: NonAudio.KEYS, 98: NonAudio.NOISE}


class Talker:
    """Sends a tone, each packet in the codec that it is told to, by one stream with the time in its codec's clock."""

    def __init__(self, end: End, clock: Clock, types: Formats = ALL) -> None:
        self.end, self.clock = end, clock
        self.numbers = {form: number for number, form in types.items()}
        self.encoders = {codec: codec.encoder() for codec in CODECS}
        self.seq = 65_500

    def packet(self, codec: Codec) -> RtpPacket:
        elapsed = self.clock.now - 100
        pcm = speech(codec.out_rate, 10)[round(elapsed * codec.out_rate) :][: codec.out_rate // 50]
        self.seq += 1
        stamp = round(elapsed * codec.clock) % 2**32
        return RtpPacket(self.numbers[codec], self.seq % 2**16, stamp, 5, self.encoders[codec](pcm))

    def send(self, packet: RtpPacket) -> None:
        self.end.session.datagram(bytes(packet), self.clock.now)

    def say(self, codec: Codec, packets: int) -> None:
        for _ in range(packets):
            self.send(self.packet(codec))
            self.clock.now += FRAME_S
            self.end.session.tick(self.clock.now)


def listener(codec: Codec = PCMU, formats: Formats = ALL) -> tuple[End, Talker]:
    clock = Clock()
    end = End(codec, clock)
    end.session.may_send(formats)
    return end, Talker(end, clock, formats)


def spoken(end: End, since_s: float, until_s: float) -> float:
    return dbfs(end.sound[round(since_s * RATE) : round(until_s * RATE)])


@pytest.mark.parametrize("turns", [(PCMU, PCMA, PCMU), (PCMA, G722, PCMU), (G722, PCMA, G722), (PCMU, G722, PCMA)])
def test_codecs_of_one_clock_follow_one_another_without_a_gap(turns: Sequence[Codec]) -> None:
    """G.722 counts its 16 kHz by 8000 (RFC 3551, 4.5.2)."""
    end, talker = listener()
    for codec in turns:
        talker.say(codec, 25)
        assert end.session.heard_codec is codec
    assert end.sound.size == 1.5 * RATE and not any(filled for _, _, filled in end.heard)
    for n in range(3):
        assert spoken(end, 0.5 * n + 0.1, 0.5 * n + 0.5) == pytest.approx(dbfs(speech(RATE)), abs=1.5)
    statistics = end.session.statistics()
    assert (statistics.received, statistics.lost, statistics.invalid) == (75, 0, 0)


@pytest.mark.parametrize("turns", [(PCMU, OPUS, PCMU), (OPUS, G722, OPUS), (OPUS, PCMA, PCMU)])
def test_codecs_of_other_clocks_follow_one_another(turns: Sequence[Codec]) -> None:
    end, talker = listener()
    for codec in turns:
        talker.say(codec, 25)
        assert end.session.heard_codec is codec
    assert end.sound.size / RATE == pytest.approx(1.5, abs=0.05)
    for n in range(3):
        assert spoken(end, 0.5 * n + 0.15, 0.5 * n + 0.45) == pytest.approx(dbfs(speech(RATE)), abs=2)
    statistics = end.session.statistics()
    assert (statistics.received, statistics.lost, statistics.invalid) == (75, 0, 0)


def test_a_packet_that_the_next_codec_has_overtaken_is_late() -> None:
    """It would bring the old clock back, and with each such packet a new beginning."""
    end, talker = listener()
    talker.say(PCMU, 20)
    late = talker.packet(PCMU)
    talker.say(OPUS, 5)
    talker.send(late)
    assert end.session.heard_codec is OPUS
    talker.say(OPUS, 20)
    assert end.session.statistics().late == 1
    assert spoken(end, 0.6, 0.8) == pytest.approx(dbfs(speech(RATE)), abs=2)


@pytest.mark.parametrize("lost", [20, 24, 25])
def test_a_loss_beside_a_change_is_concealed(lost: int) -> None:
    end, talker = listener()
    for n in range(50):
        packet = talker.packet(PCMU if n < 25 else PCMA)
        if n != lost:
            talker.send(packet)
        talker.clock.now += FRAME_S
        end.session.tick(talker.clock.now)
    assert end.sound.size == RATE and end.session.statistics().lost == 1
    assert sum(filled for _, _, filled in end.heard) == 1


def test_what_the_old_agreement_named_is_still_heard_after_a_new_one() -> None:
    """Packets are on their way while a re-INVITE is answered; some phones never change."""
    end, talker = listener(PCMU, {0: PCMU})
    talker.numbers[PCMA] = 8
    talker.say(PCMU, 25)
    end.session.change(PCMA, 8, KeyFormat(101, 8000))
    end.session.may_send({8: PCMA})
    assert end.session.codec is PCMA
    talker.say(PCMU, 25)
    talker.say(PCMA, 25)
    assert end.sound.size == 1.5 * RATE and end.session.statistics().invalid == 0


def test_a_payload_type_that_means_something_else_from_now_on() -> None:
    end, talker = listener(PCMU, {96: PCMU})
    talker.say(PCMU, 25)
    end.session.may_send({96: G722})
    talker.numbers[G722] = 96
    talker.say(G722, 25)
    assert spoken(end, 0.6, 1.0) == pytest.approx(dbfs(speech(RATE)), abs=1.5)


@pytest.mark.parametrize("number", [13, 19, 98])
def test_comfort_noise_by_its_old_its_new_and_its_own_number(number: int) -> None:
    end, talker = listener()
    talker.say(PCMU, 25)
    noise = talker.packet(PCMU)._replace(payload_type=number, payload=b"\x40")
    talker.send(noise)
    for _ in range(25):
        talker.clock.now += FRAME_S
        end.session.tick(talker.clock.now)
    talker.say(PCMU, 25)
    statistics = end.session.statistics()
    assert (statistics.invalid, statistics.lost) == (0, 0)
    assert end.sound.size / RATE == pytest.approx(1.5, abs=0.1)
    assert not end.sound[round(0.6 * RATE) : round(0.9 * RATE)].any()


@pytest.mark.parametrize("number", [101, 110])
def test_keys_by_either_clock(number: int) -> None:
    end, talker = listener(OPUS)
    talker.say(OPUS, 5)
    payload = bytes(TelephoneEvent(5, True, 800))
    talker.send(talker.packet(OPUS)._replace(payload_type=number, payload=payload))
    assert end.keys == ["5"] and end.session.statistics().invalid == 0


def test_what_nobody_named_is_not_heard() -> None:
    end, talker = listener(PCMU, {0: PCMU})
    for number in (8, 9, 18, 97, 111):
        talker.send(talker.packet(PCMU)._replace(payload_type=number))
    assert end.session.statistics().invalid == 5 and not end.heard


def test_a_line_is_narrow_while_what_it_hears_is() -> None:
    """G.711 in a call that speaks Opus has a telephone's band, and G.722 in one that speaks G.711 has not."""
    clock = Clock()
    end = End(OPUS, clock)
    line = RtpLine(OPUS, 96, end.wire, clock)
    blocks: list[bool] = []
    line.media.may_send(ALL)
    line._listener, line.media.listened = Blocks(lambda block: blocks.append(block.narrow)), True
    end.session = line.media
    talker = Talker(end, clock)
    for codec in (OPUS, PCMU, G722, PCMA):
        talker.say(codec, 10)
    changes = [blocks[0], *(after for before, after in pairwise(blocks) if before != after)]
    assert changes == [False, True, False, True]


# --- what descriptions name


def test_all_that_an_offer_names_may_be_sent() -> None:
    said = sip_sdp.read(TRUNK, ("pcmu",))
    assert (said.codec, said.payload_type) == (PCMU, 0), "we speak in ours"
    assert said.formats == {8: PCMA, 0: PCMU, 96: NonAudio.KEYS}
    said = sip_sdp.read(DESK_PHONE)
    assert said.formats == {96: OPUS, 9: G722, 0: PCMU, 8: PCMA, 101: NonAudio.KEYS, 102: NonAudio.KEYS}


@pytest.mark.parametrize(
    ("names", "maps", "formats"),
    [
        ("0 13", "", {0: PCMU, 13: None}),
        ("8 13", "a=rtpmap:13 CN/8000\r\n", {8: PCMA, 13: NonAudio.NOISE}),
        ("97 98", "a=rtpmap:97 PCMA/8000/1\r\na=rtpmap:98 cn/16000\r\n", {97: PCMA, 98: NonAudio.NOISE}),
        ("0 97", "a=rtpmap:97 PCMA/8000/2\r\n", {0: PCMU}),
        ("0 8", "a=rtpmap:8 speex/8000\r\n", {0: PCMU}),
        ("0 97", "a=rtpmap:97 PCMU/8000\r\n", {0: PCMU, 97: PCMU}),
        ("0 101 126", "a=rtpmap:101 Telephone-Event/8000\r\na=rtpmap:126 telephone-event/48000\r\n",
         {0: PCMU, 101: NonAudio.KEYS, 126: NonAudio.KEYS}),
    ],
)  # fmt: skip
def test_what_may_be_sent_by_what_numbers(names: str, maps: str, formats: dict[int, Codec | NonAudio | None]) -> None:
    text = (
        "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
        f"m=audio 10000 RTP/AVP {names}\r\n{maps}"
    )
    assert sip_sdp.read(text).formats == {number: form for number, form in formats.items() if form}


def test_a_browsers_offer_too() -> None:
    said = sdp.read(BROWSER)
    assert (said.codec, said.payload_type) == (OPUS, 111)
    assert {G722, PCMU, PCMA} <= set(said.formats.values()) and said.formats[111] is OPUS


def test_our_offer_is_heard_by_our_numbers() -> None:
    assert sip_sdp.offered(CODECS) == {111: OPUS, 9: G722, 0: PCMU, 8: PCMA, 110: NonAudio.KEYS, 101: NonAudio.KEYS}
    lines = sip_sdp.offer(sip_sdp.LocalDescription("203.0.113.5", 20_000), CODECS).split("\r\n")
    (media,) = [line for line in lines if line.startswith("m=")]
    assert set(map(int, media.split()[3:])) == set(sip_sdp.offered(CODECS))
