"""Calls by SIP from a telephone of bare datagrams: begun, held, changed, ended, and everything twice."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from websockets.asyncio.client import connect

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import Phone, calling, opened, phone, sip, until
from voicepipe.agent import Origin
from voicepipe.audio import Pcm, g711
from voicepipe.errors import TransferFailed
from voicepipe.ingress import http, server
from voicepipe.line import Line
from voicepipe.phone_config import SipTrunk
from voicepipe.playout import Playout
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.session import RtpSession
from voicepipe.speech import Phrase


async def test_a_spoken_turn_both_ways_and_a_program_beside_it() -> None:
    pop = FakePop(sip())
    pop.packets, pop.pace = 25, 0.02
    async with serving(pop) as address, phone(pop) as ann:
        answer = await ann.dial()
        assert answer.code == 200 and answer.header("contact").startswith("<sip:voicepipe@127.0.0.1:")
        assert "m=audio" in answer.body and "RTP/AVP 0 101" in answer.body
        ann.media_of(answer)
        call_id = answer.header("x-voicepipe-call-id")
        async with connect(f"ws://{address}/v1/realtime?call_id={call_id}", max_queue=None) as socket:
            assert '"session.created"' in str(await socket.recv())
            talking = asyncio.create_task(ann.talk(15, 60))
            await until(lambda: ann.loudest() > 3000)
            said = [str(await socket.recv()) for _ in range(4)]
            assert '"input_audio_buffer.speech_started"' in said[0]
            await talking
        assert (await ann.hang_up()).code == 200
        await settled(pop)
    blocks = pop.calls[0].blocks
    assert [block.pos for block in blocks] == [n * 320 for n in range(len(blocks))]


async def test_the_far_end_is_greeted_at_20_ms_a_packet_from_the_200_on() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        await until(lambda: len(ann.heard()) > 20)
        stamps = [packet.timestamp for packet in ann.heard()]
        assert set(np.diff(stamps) % 2**32) == {160}
        await ann.hang_up()


@pytest.mark.parametrize("acknowledged", [False, True])
async def test_an_invite_that_comes_again_is_the_same_call(acknowledged: bool) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        sent = ann.invite()
        ann.sip.sendto(sent, ann.server)
        answer = await ann.final("INVITE")
        ann.took(answer)
        if acknowledged:
            ann.ack()
            await asyncio.sleep(0.05)
        before = len(ann.said)
        ann.sip.sendto(sent, ann.server)
        again = await ann.final("INVITE", before)
        assert (again.code, again.header("to")) == (200, answer.header("to"))
        ann.ack()
        await ann.hang_up()
        assert len(pop.calls) == 1


async def test_a_description_of_more_than_ascii() -> None:
    async with calling(FakePop(sip())) as ann:
        answer = await ann.dial(ann.sdp().replace("s=-", "s=Zoë"), [("X-Name", "Zoë")])
        assert answer.code == 200, "Content-Length counts bytes"
        await ann.hang_up()


async def test_an_invite_that_came_by_another_way_as_well_is_one_call() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        await ann.dial()
        ann.to_tag, tag = "", ann.to_tag
        before = len(ann.said)
        ann.invite(seq=ann.seq)
        assert (await ann.final("INVITE", before)).code == 482
        ann.to_tag = tag
        await ann.hang_up()
        assert len(pop.calls) == 1


@pytest.mark.usefixtures("hasty")
async def test_an_answer_is_repeated_until_its_ack_and_a_lost_ack_ends_the_call() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.invite()
        ann.took(await ann.final("INVITE"))
        await ann.got("BYE")
        answers = [said for said in ann.said if said.method == "INVITE" and said.code == 200]
        assert len(answers) > 3
        await settled(pop)


@pytest.mark.usefixtures("hasty")
async def test_a_refusal_is_repeated_until_its_ack() -> None:
    async with calling(FakePop(sip())) as ann:
        ann.invite("v=0\r\nnonsense")
        await ann.final("INVITE")
        await asyncio.sleep(0.1)
        assert len([said for said in ann.said if said.code == 488]) > 1
        ann.took(ann.said[-1])
        ann.request("ACK", seq=ann.seq, branch=ann.branch)
        await asyncio.sleep(0.05)
        before = len(ann.said)
        await asyncio.sleep(0.3)
        assert len(ann.said) == before


async def test_a_caller_who_gives_up_before_it_rings_leaves_nothing() -> None:
    pop = FakePop(sip(ring_ms=300))
    async with calling(pop) as ann:
        ann.invite()
        ann.request("CANCEL", seq=ann.seq, branch=ann.branch)
        assert (await ann.final("INVITE")).code == 487
        await settled(pop)


async def test_a_caller_who_gives_up_while_it_rings_is_told_so_and_leaves_nothing() -> None:
    pop = FakePop(sip(ring_ms=300))
    async with calling(pop) as ann:
        ann.invite()
        ringing = await ann.got("INVITE", 180)
        ann.request("CANCEL", seq=ann.seq, branch=ann.branch)
        assert (await ann.final("CANCEL")).code == 200
        refused = await ann.final("INVITE")
        assert refused.code == 487
        ann.took(refused)
        ann.request("ACK", seq=ann.seq, branch=ann.branch)
        await settled(pop)
        ann.to_tag = ""
        answer = await ann.dial()
        assert answer.code == 200, "the next call is a call again"
        assert ann.to_tag and ringing.header("to") != answer.header("to")
        await ann.hang_up()


async def test_a_goodbye_that_comes_again_is_answered_again() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        ann.seq += 1
        sent = ann.request("BYE", seq=ann.seq)
        await ann.final("BYE")
        before = len(ann.said)
        ann.sip.sendto(sent, ann.server)
        assert (await ann.final("BYE", before)).code == 200


async def test_we_hang_up_when_the_agent_does() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        await ann.dial()
        await until(lambda: pop.calls)
        await pop.calls[0].line.hang_up()
        goodbye = await ann.got("BYE")
        assert goodbye.header("to").endswith(f"tag={ann.tag}") and goodbye.header("from").endswith(ann.to_tag)
        await settled(pop)


async def test_calls_are_ended_when_the_server_goes_down() -> None:
    pop = FakePop(sip())
    task = asyncio.create_task(http.serve(pop, server.bind(pop.config.http)))
    await pop.serving.wait()
    async with phone(pop) as ann:
        assert (await ann.dial()).code == 200
        task.cancel()
        assert (await ann.got("BYE")).start.startswith(f"BYE sip:ann@127.0.0.1:{ann.port}")
        await asyncio.wait({task})


# --- changes on the way


@asynccontextmanager
async def speaking(line: Line, pcm: Pcm) -> AsyncIterator[Playout]:
    """A reply of `pcm` on the line, by playout as in real calls."""
    playout = Playout(line, time.monotonic, -15.0)
    task = asyncio.create_task(playout.run())
    playout.begin(lambda phrase, start: None, lambda: None)
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
            await asyncio.wait_for(playout.drained(), 10)
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


@pytest.mark.parametrize("method", ["INVITE", "UPDATE"])
async def test_a_telephone_that_changes_networks_behind_a_nat_is_heard_and_hears(method: str) -> None:
    """Its SDP goes on to name an address of its own network, which tells nothing."""
    pop = FakePop(sip(trunks=(SipTrunk(name="all", addresses=("127.0.0.0/8",)),)))
    async with serving(pop), phone(pop) as ann, phone(pop, "127.0.0.2") as moved:
        private = ann.sdp().replace("c=IN IP4 127.0.0.1", "c=IN IP4 10.0.0.5")
        ann.media_of(await ann.dial(private))
        await ann.talk(0, 5)
        await until(lambda: ann.heard())
        moved.call_id, moved.tag, moved.to_tag, moved.seq = ann.call_id, ann.tag, ann.to_tag, ann.seq
        moved.request(method, body=private)
        answer = await moved.final(method)
        assert answer.code == 200
        if method == "INVITE":
            moved.ack()
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


async def test_requests_out_of_order_are_refused() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        ann.seq += 5
        await ann.dial(ann.sdp())
        ann.request("INFO", seq=1)
        assert (await ann.final("INFO")).code == 500
        await ann.hang_up()


# --- what a telephone has beside sound


@pytest.mark.parametrize(
    ("kind", "body"), [("application/dtmf-relay", "Signal=5\r\nDuration=160"), ("application/dtmf", "5")]
)
async def test_keys_by_info(kind: str, body: str) -> None:
    pop = FakePop(sip())
    async with serving(pop) as address, phone(pop) as ann:
        answer = await ann.dial()
        async with connect(f"ws://{address}/v1/realtime?call_id={answer.header('x-voicepipe-call-id')}") as socket:
            await socket.recv()
            ann.request("INFO", body=body, kind=kind)
            assert (await ann.final("INFO")).code == 200
            said = str(await socket.recv())
            assert '"input_audio_buffer.dtmf_event_received"' in said and '"event":"5"' in said
        await ann.hang_up()


async def test_keys_by_telephone_events_reach_the_program_beside_the_call() -> None:
    pop = FakePop(sip())
    async with serving(pop) as address, phone(pop) as ann:
        answer = await ann.dial()
        ann.media_of(answer)
        async with connect(f"ws://{address}/v1/realtime?call_id={answer.header('x-voicepipe-call-id')}") as socket:
            await socket.recv()
            await ann.talk(0, 5)
            for n in range(6):
                end = 0x80 if n > 2 else 0
                ann.say(payload_type=101, payload=bytes((11, end | 10, 0, 160 * min(n, 3) & 0xFF)), same=n > 0)
                await asyncio.sleep(0.02)
            assert '"event":"#"' in str(await socket.recv())
        await ann.hang_up()
    filled = [block for block in pop.calls[0].blocks if block.filled]
    assert filled, "a key takes the place of sound"


async def test_where_a_call_comes_from_reaches_the_agent() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        await ann.dial(headers=[("X-Account", "42"), ("x-Lower-case", "yes")], uri="sip:+49301234@127.0.0.1")
        origin = pop.calls[0].settings.origin
        assert origin == Origin("ann", "+49301234", {"X-Account": "42", "X-Lower-Case": "yes"})
        await ann.hang_up()


# --- transfers


async def transferring(pop: FakePop, ann: Phone) -> "asyncio.Task[None]":
    await ann.dial(headers=[("Allow", "INVITE, ACK, BYE, REFER, NOTIFY")])
    ann.answers = False
    task = asyncio.create_task(pop.calls[0].line.transfer("sip:desk@127.0.0.1"))
    refer = await ann.got("REFER")
    assert refer.header("refer-to") == "<sip:desk@127.0.0.1>"
    ann.answer(refer, "202 Accepted")
    return task


async def notify(ann: Phone, status: str, after: int) -> None:
    headers = [("Event", "refer"), ("Subscription-State", "active")]
    ann.request("NOTIFY", headers, f"SIP/2.0 {status}\r\n", kind="message/sipfrag;version=2.0")
    assert (await ann.final("NOTIFY", after)).code == 200


async def test_a_transfer_is_told_when_somebody_took_the_call() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        task = await transferring(pop, ann)
        await notify(ann, "100 Trying", len(ann.said))
        assert not task.done()
        await notify(ann, "200 OK", len(ann.said))
        await asyncio.wait_for(task, 10)
        ann.answers = True
        await ann.hang_up()


@pytest.mark.parametrize("way", ["notify", "refused", "not allowed"])
async def test_a_transfer_that_fails_says_why_and_the_call_goes_on(way: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        if way == "not allowed":
            await ann.dial(headers=[("Allow", "INVITE, ACK, BYE")])
            with pytest.raises(TransferFailed, match="does not take transfers"):
                await pop.calls[0].line.transfer("desk")
        elif way == "notify":
            task = await transferring(pop, ann)
            await notify(ann, "486 Busy Here", len(ann.said))
            with pytest.raises(TransferFailed, match="486 Busy Here"):
                await task
        else:
            await ann.dial()
            ann.answers = False
            task = asyncio.create_task(pop.calls[0].line.transfer("desk"))
            refer = await ann.got("REFER")
            assert refer.header("refer-to").startswith("<sip:desk@127.0.0.1")
            ann.answer(refer, "603 Decline")
            with pytest.raises(TransferFailed, match="603 Decline"):
                await task
        ann.answers = True
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before)
        assert (await ann.hang_up()).code == 200


async def test_a_far_end_that_hangs_up_over_a_transfer_has_taken_it() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        task = await transferring(pop, ann)
        await ann.hang_up()
        await asyncio.wait_for(task, 10)
        await pop.calls[0].line.hang_up()
        await settled(pop)
        assert not [said for said in ann.said if said.start.startswith("BYE")]


# --- proxies, timers, silence


async def test_our_requests_go_the_way_that_the_invite_came() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as proxy:
        route = f"<sip:127.0.0.1:{proxy.port};lr>"
        answer = await ann.dial(headers=[("Record-Route", route)])
        assert answer.header("record-route") == route
        await pop.calls[0].line.hang_up()
        goodbye = await proxy.got("BYE")
        assert goodbye.start == f"BYE sip:ann@127.0.0.1:{ann.port} SIP/2.0"
        assert goodbye.header("route") == route


async def test_a_session_that_is_not_refreshed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = FakePop(sip())
    timer = [("Supported", "timer"), ("Session-Expires", "90")]
    async with calling(pop) as ann:
        short = await ann.dial(headers=[("Supported", "timer"), ("Session-Expires", "60")])
        assert (short.code, short.header("min-se")) == (422, "90")
        ann.to_tag = ""
        answer = await ann.dial(headers=timer)
        assert answer.header("session-expires") == "90;refresher=uac" and "timer" in answer.header("require")
        ann.request("UPDATE", timer)
        assert (await ann.final("UPDATE")).header("session-expires") == "90;refresher=uac"
        monkeypatch.setattr("voicepipe.ingress.sip.timers.SessionTimer.over_s", 0.0)
        await ann.got("BYE")
        await settled(pop)


async def test_the_log_says_whose_sound_was_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    pop = FakePop(sip(silent_ms=500))
    async with calling(pop) as ann:
        ann.media_of(await ann.dial())
        elsewhere, port = await opened(lambda data, source: None, "127.0.0.2")
        for n in range(3):
            elsewhere.sendto(bytes(RtpPacket(0, n, n * 160, 7, bytes(160))), ann.media)
        await ann.got("BYE")
        elsewhere.close()
        await settled(pop)
    refused = f"3 datagrams refused, the last from 127.0.0.2:{port}"
    assert f"no sound for 0.5 s ({refused}): hanging up" in caplog.text
    assert [record for record in caplog.records if record.levelname == "INFO" and refused in record.getMessage()]


async def test_nobody_is_silent_while_it_rings() -> None:
    pop = FakePop(sip(ring_ms=500))
    async with calling(pop) as ann:
        invited = time.monotonic()
        await ann.dial()
        media: RtpSession = pop.calls[0].line.media  # type: ignore[attr-defined]
        now = time.monotonic()
        assert now - media.silent_s(now) > invited + 0.4
        await ann.hang_up()


async def test_a_caller_without_a_sound_is_gone_unless_on_hold() -> None:
    pop = FakePop(sip(silent_ms=500))
    async with calling(pop) as ann, phone(pop) as holds:
        await holds.dial(holds.sdp(direction="inactive"))
        ann.media_of(await ann.dial())
        await ann.talk(0, 20)
        await ann.got("BYE")
        await until(lambda: pop.live == 1)
        assert (await holds.hang_up()).code == 200
