"""What comes to the doors for telephones: SIP, SDP in SIP, media streams and webhooks of Twilio and Telnyx."""

import asyncio
from contextlib import suppress
from random import Random

import msgspec

from tests.attacks.sip_junk import kinds
from tests.attacks.sip_messages import invite, message
from tests.fuzz.target import Target
from tests.ingress.fake_pop import FakePop
from tests.ingress.sip.grammar import Grammar
from tests.ingress.sip.peer import sip
from tests.ingress.sip.torture import answerable, tortures
from tests.support.virtual_time import run as in_virtual_time
from voicepipe.base.errors import PopFull
from voicepipe.config import Config
from voicepipe.config.phone_config import SipTrunk
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.sip.bodies import UnsupportedBody, session_description
from voicepipe.ingress.sip.header_text import SipError, header
from voicepipe.ingress.sip.sip_server import SipServer
from voicepipe.ingress.sip.transactions import Transactions, prepare
from voicepipe.ingress.telephony import twilio_webhook
from voicepipe.ingress.telephony.dialects import TELNYX, TWILIO, BadMessage, StreamMedia
from voicepipe.ingress.telephony.stream import EARLY, ReorderBuffer
from voicepipe.ingress.telephony.telnyx_api import TelnyxPayload
from voicepipe.ingress.telephony.telnyx_hangups import PopRun
from voicepipe.rtp import sip_sdp
from voicepipe.rtp.sdp_text import SdpError

ELSEWHERE = SipTrunk(name="carrier", addresses=("127.0.0.9",))
CONFIGS = sip(port=5060), sip(port=5060, trunks=(ELSEWHERE,))
"""The source of all datagrams is trusted by the first and a stranger to the second."""
SOURCE = "127.0.0.1", 5070
SIP_WORDS = (
    b"\r\n", b"\r\n ", b";tag=", b";rport", b";branch=z9hG4bK", b"SIP/2.0", b"CSeq: ", b"Via: SIP/2.0/UDP a", b",",
    b";", b"<sip:", b">",
    b'"', b"%41", b"Record-Route: ", b"Contact: ", b"ACK", b"INVITE", b"CANCEL", b"Session-Expires: 90",
    b"Authorization: Digest ", b"<tel:+1", b";phone-context=", b"<urn:a:b>", b"\r\n\r\n--b",
    b"Content-Type: multipart/mixed;boundary=b",
    b'nonce="', b"Content-Length: 99", b"\x0b", b"\xff",
)  # fmt: skip


def datagram(data: bytes) -> None:
    """At the SIP port of a PoP that has no place for a call; twice, as datagrams come."""
    in_virtual_time(_datagram(data))


async def _datagram(data: bytes) -> None:
    prepare()
    for config in CONFIGS:
        pop = FakePop(config)
        pop.refuse = PopFull("All slots are taken.")
        server = SipServer(pop, Calls())
        stack = server._stack
        stack._socket.address = "127.0.0.1", 5060
        stack._socket._send_to_name = lambda *_: None
        stack._transactions = Transactions(stack._socket, stack._requested)
        try:
            for _ in range(2):
                stack._received(data, SOURCE)
            await asyncio.sleep(70)
            left = stack._transactions
            assert not (left.tserver or left.tclient or left.l1rcache), "a transaction is left"
        finally:
            stack.close()


def body(data: bytes) -> None:
    """Of a SIP message: its headers, an empty line, and the body."""
    head, _, content = data.partition(b"\r\n\r\n")
    headers = {}
    for line in head.decode("latin-1").splitlines():
        with suppress(SipError):
            name, value = header(line)
            headers[name] = value
    with suppress(SipError, UnsupportedBody):
        session_description(headers, content)


def description(data: bytes) -> None:
    """An offer of a telephone's."""
    try:
        sip_sdp.read(data.decode("ascii", "replace"), ())
    except SdpError:
        return


def frames(data: bytes) -> None:
    """Messages of a media stream, a line each."""
    for dialect in (TWILIO, TELNYX):
        order = ReorderBuffer[bytes](lambda: 0.0)
        for line in data.split(b"\n"):
            try:
                said = dialect.read(line)
            except BadMessage:
                continue
            if said and isinstance(said[1], StreamMedia):
                order(said[1].chunk, said[1].payload)
        assert len(order._early) <= EARLY


def webhook(data: bytes) -> None:
    """What a provider has signed: Telnyx's JSON, and texts that go into TwiML."""
    text = data.decode(errors="replace")
    twilio_webhook.stream(text, {text: text, "from": text}, text)
    boot = PopRun(Config(), "now")
    boot.is_dead(text)
    try:
        said = msgspec.json.decode(data, type=TelnyxPayload)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return
    boot.is_dead(said.client_state)


def _messages() -> list[bytes]:
    return [
        *(answerable(torture.message) for torture in tortures()),
        *kinds(),
        invite("127.0.0.1"),
        message("OPTIONS", "127.0.0.1", ["Supported: timer"]),
    ]


def _valid_request(random: Random) -> bytes:
    return Grammar(random).request().data


def _valid_body(random: Random) -> bytes:
    kind, content, _ = Grammar(random).body()
    return f"Content-Type: {kind}\r\n\r\n".encode() + content


def _frames() -> list[bytes]:
    media = b'{"event":"media","stream_id":"S","media":{"track":"inbound","chunk":"%d","payload":"f39/fw=="}}'
    start = (
        b'{"event":"start","streamSid":"S","stream_id":"S","start":{"callSid":"CA","call_control_id":"c","mediaFormat":'
        b'{"encoding":"audio/x-mulaw","sampleRate":8000},"media_format":{"encoding":"PCMU","sample_rate":8000}}}'
    )
    others = (
        b'{"event":"dtmf","dtmf":{"digit":"5"}}', b'{"event":"mark","mark":{"name":"1"}}', b'{"event":"stop"}',
        b'{"event":"error","payload":{"code":1}}',
    )  # fmt: skip
    return [b"\n".join([start, *(media % n for n in (1, 3, 2, 9))]), *others]


BODY_WORDS = (
    b"--", b"boundary=", b"multipart/alternative", b"Content-Disposition: session;handling=required", b";", b'"',
    b"Content-Encoding: gzip", b"Content-Transfer-Encoding: base64", b"\r\n\r\n", b"application/sdp",
)  # fmt: skip
OFFER = (
    b"v=0\r\no=ann 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
    b"m=audio 40000 RTP/SAVP 0 8 9 96 101\r\n"
    b"a=rtpmap:96 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\na=sendrecv\r\na=rtcp-mux\r\n"
    b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\r\n"
)
TARGETS = (
    Target("sip", "the SIP port, of who is trusted and of strangers", datagram, _messages, _valid_request,
           SIP_WORDS, share=0.2),
    Target("sip_body", "a body of a SIP message, of several parts or of one", body, generate=_valid_body,
           words=BODY_WORDS, largest=8192),
    Target("sip_sdp", "a telephone's SDP", description, lambda: [OFFER], words=OFFER.split(), largest=8192),
    Target("phone_frames", "media streams of Twilio and Telnyx", frames, _frames, words=(b'"chunk":"', b'"start"')),
    Target("phone_webhooks", "webhooks of Twilio and Telnyx", webhook,
           lambda: [b'{"call_control_id":"c","connection_id":"1","client_state":"dm9pY2VwaXBlIGEgYg==","from":"+1"}']),
)  # fmt: skip
