"""Calls by SIP from a telephone of bare datagrams: begun, ended, and everything twice."""

import asyncio

import numpy as np
import pytest
from websockets.asyncio.client import connect

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import calling, phone, sip
from tests.support.waiting import until
from voicepipe.call_settings import Origin
from voicepipe.ingress import server
from voicepipe.pop import pop_http


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


@pytest.mark.usefixtures("unencoded")
async def test_without_a_program_beside_it_nothing_is_encoded(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(sip())
    pop.packets, pop.pace = 25, 0.02
    async with calling(pop) as ann:
        ann.media_of(await ann.dial())
        await ann.talk(15, 60)
        await until(lambda: ann.loudest() > 3000)
        (call,) = pop.calls
        call.press("5")
        assert (await ann.hang_up()).code == 200
        await settled(pop)
    assert call.history and "failed" not in caplog.text


async def test_the_far_end_is_greeted_at_20_ms_a_packet_from_the_200_on() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        await until(lambda: len(ann.heard()) > 20)
        steps = np.diff([packet.timestamp for packet in ann.heard()]) % 2**32
        assert np.median(steps) == steps.min() == 160, "but for where a slow machine was held up"
        await ann.hang_up()


async def test_a_description_of_more_than_ascii() -> None:
    async with calling(FakePop(sip())) as ann:
        answer = await ann.dial(ann.sdp().replace("s=-", "s=Zoë"), [("X-Name", "Zoë")])
        assert answer.code == 200, "Content-Length counts bytes"
        await ann.hang_up()


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
    task = asyncio.create_task(pop_http.serve(pop, server.bind(pop.config.http)))
    await pop.serving.wait()
    async with phone(pop) as ann:
        assert (await ann.dial()).code == 200
        task.cancel()
        assert (await ann.got("BYE")).start.startswith(f"BYE sip:ann@127.0.0.1:{ann.port}")
        await asyncio.wait({task})


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
