"""pops/deploy/kamailio.cfg as it is: a trunk by TLS and SRTP, or one by UDP, in front of PoPs that speak UDP."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest

from tests.ingress.fake_pop import FakePop, serving, settled, tone
from tests.ingress.sip.kamailio import HAS_TLS, PROGRAM, TlsPhone, by_tls, kamailio
from tests.ingress.sip.peer import opened, phone, sip
from tests.ingress.sip.sipp import pytestmark as needs_sipp
from tests.ingress.sip.sipp import sipp
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.audio import g711
from voicepipe.base.errors import Draining, PopFull
from voicepipe.config.phone_config import SipTrunk
from voicepipe.rtp import sdes
from voicepipe.rtp.packet import RtpPacket, is_rtcp

pytestmark = pytest.mark.skipif(
    PROGRAM is None or not HAS_TLS, reason="Kamailio with TLS is not installed: apt install kamailio-tls-modules"
)

TRUNK = SipTrunk(name="sbc", addresses=("127.0.0.1",))


async def dialled_with_keys(ann: TlsPhone) -> sdes.Srtp:
    """Call by SRTP; the keys of both."""
    ours = sdes.Crypto.made(1, "AES_CM_128_HMAC_SHA1_80")
    answer = await ann.dial(ann.sdp(more=f"a=crypto:{ours}\r\n").replace("RTP/AVP", "RTP/SAVP"), [("X-Account", "42")])
    assert answer.code == 200 and "RTP/SAVP" in answer.body
    ann.media_of(answer)
    line = next(line for line in answer.body.splitlines() if line.startswith("a=crypto:"))
    theirs = sdes.read(line.removeprefix("a=crypto:"))
    assert theirs
    return sdes.Srtp(ours, theirs)


async def test_a_call_by_tls_and_srtp_that_the_caller_ends(tmp_path: Path) -> None:
    pop = FakePop(sip(trunks=(TRUNK,), srtp="required"))
    async with serving(pop), kamailio(tmp_path, [pop.config.sip.port]) as sbc, by_tls(sbc, tmp_path) as ann:
        keys = await dialled_with_keys(ann)
        assert len(ann.routes) == 2 and pop.calls[0].settings.origin.headers == {"X-Account": "42"}
        for n in range(30):
            payload = g711.encode("pcmu", tone(160, 8000))
            packet = bytes(RtpPacket(0, n, n * 160, ann.ssrc, payload))
            ann.rtp.sendto(keys.outbound.protect(packet), ann.media)
            await asyncio.sleep(0.01)
        await until(lambda: sum(int(np.abs(block.pcm).max()) > 3000 for block in pop.calls[0].blocks) > 20)
        heard = [keys.inbound.unprotect(data) for data, _ in ann.packets if not is_rtcp(data)]
        assert {RtpPacket.parse(data).payload_type for data in heard} == {0}
        assert (await ann.hang_up()).code == 200
        await settled(pop)


async def test_a_call_by_tls_that_we_end(tmp_path: Path) -> None:
    pop = FakePop(sip(trunks=(TRUNK,)))
    async with serving(pop), kamailio(tmp_path, [pop.config.sip.port]) as sbc, by_tls(sbc, tmp_path) as ann:
        assert (await ann.dial()).code == 200
        await pop.calls[0].line.hang_up()
        goodbye = await ann.got("BYE")
        assert goodbye.start == f"BYE sip:ann@127.0.0.1:{ann.port};transport=tls SIP/2.0"
        await settled(pop)


async def test_a_caller_who_gives_up(tmp_path: Path) -> None:
    pop = FakePop(sip(trunks=(TRUNK,), ring_ms=10_000))
    async with serving(pop), kamailio(tmp_path, [pop.config.sip.port]) as sbc, by_tls(sbc, tmp_path) as ann:
        ann.invite()
        await ann.got("INVITE", 180)
        ann.request("CANCEL", seq=ann.seq, branch=ann.branch)
        assert (await ann.final("INVITE")).code == 487
        await settled(pop)


async def test_the_next_pop_takes_what_the_first_cannot(tmp_path: Path) -> None:
    """One that is full, and one that is not there at all."""
    full, free = FakePop(sip(trunks=(TRUNK,))), FakePop(sip(trunks=(TRUNK,)))
    full.refuse = PopFull("All slots are taken.")
    ports = [full.config.sip.port, free_port(), free.config.sip.port]
    async with serving(full), serving(free), kamailio(tmp_path, ports) as sbc, by_tls(sbc, tmp_path) as ann:
        assert (await ann.dial()).code == 200
        assert len(free.calls) == 1 and not full.calls
        assert (await ann.hang_up()).code == 200


async def test_only_calls_and_only_the_trunks(tmp_path: Path) -> None:
    pop = FakePop(sip(trunks=(TRUNK,)))
    async with serving(pop), kamailio(tmp_path, [pop.config.sip.port]) as sbc:
        async with by_tls(sbc, tmp_path) as ann:
            for method, code in (("OPTIONS", 200), ("REGISTER", 405), ("MESSAGE", 405)):
                ann.request(method)
                assert (await ann.final(method)).code == code
            ann.request("BYE", to_tag="nobody")
            assert (await ann.final("BYE")).code == 481
        async with phone(pop) as eve:
            eve.server = ("127.0.0.1", sbc.udp)
            eve.invite()
            await asyncio.sleep(0.5)
            assert not eve.said, "UDP is for the PoPs"
    async with serving(FakePop()), kamailio(tmp_path, [free_port()], "(src_ip == 203.0.113.1)") as sbc:
        async with by_tls(sbc, tmp_path) as eve:
            eve.invite()
            await asyncio.sleep(0.5)
            assert not eve.said
    assert not pop.calls


@needs_sipp
@pytest.mark.parametrize("refusal", [None, PopFull("All slots are taken."), Draining("It drains.")],
                         ids=["dead", "full", "draining"])  # fmt: skip
async def test_a_trunk_by_udp_whose_first_pop_takes_no_calls(refusal: Exception | None, tmp_path: Path) -> None:
    """The second one has them all: those of a directory would have been named by its 302."""
    first, second = FakePop(sip(trunks=(TRUNK,))), FakePop(sip(trunks=(TRUNK,)))
    first.refuse = refusal
    async with AsyncExitStack() as stack:
        if refusal:
            await stack.enter_async_context(serving(first))
        await stack.enter_async_context(serving(second))
        ports = [first.config.sip.port, second.config.sip.port]
        sbc = await stack.enter_async_context(kamailio(tmp_path, ports, by_udp=True))
        await sipp("call", sbc.udp, tmp_path, calls=5)
        await settled(second)
        assert (len(first.calls), len(second.calls)) == (0, 5)
        second.refuse = PopFull("All slots are taken.")
        await sipp("refused", sbc.udp, tmp_path, calls=3)
    assert len(second.calls) == 5


@needs_sipp
async def test_a_pop_that_says_nothing_is_soon_asked_no_more(tmp_path: Path) -> None:
    """Its host takes what is sent there: at first each call waits for it. Back again, it has them."""
    second, came = FakePop(sip(trunks=(TRUNK,))), list[bytes]()
    first = FakePop(sip(trunks=(TRUNK,)))
    hung, _ = await opened(lambda data, source: came.append(data), port=first.config.sip.port)
    ports = [first.config.sip.port, second.config.sip.port]
    async with serving(second), kamailio(tmp_path, ports, by_udp=True) as sbc:
        asked = 1
        async with asyncio.timeout(60):
            while asked:
                before = len(second.calls)
                came.clear()
                await sipp("call", sbc.udp, tmp_path, "-max_retrans", "20")
                assert len(second.calls) == before + 1
                asked = sum(data.startswith(b"INVITE") for data in came)
        hung.close()
        await settled(second)
        async with serving(first), asyncio.timeout(60):
            while not first.calls:
                await sipp("call", sbc.udp, tmp_path)
            await settled(first)
