"""Calls from Twilio against a scripted PoP: webhook, stream, keys, hang-up both ways, transfer, and who is refused."""

import asyncio
import json
import logging
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving, tone
from tests.ingress.telephony.test_dialects import messages
from tests.ingress.telephony.twilio_provider import ENV, TOKEN, post, signed, streaming, verbs
from tests.support.waiting import until
from voicepipe.base.errors import Draining, PopFull, TransferFailed
from voicepipe.call_settings import Origin
from voicepipe.config import Config, HttpConfig
from voicepipe.config.phone_config import RouteConfig, TelephonyConfig, TwilioConfig

LOUD = tone(8000, 8000)
QUIET = np.zeros(8000, np.int16)
CALL = {"CallSid": "CA1", "AccountSid": "AC1", "From": "+1555", "To": "+4930123", "CallStatus": "ringing"}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, TOKEN)


def opened(*routes: RouteConfig, public_url: str = "", own_twiml: bool = False) -> FakePop:
    twilio = TwilioConfig(auth_token_env=ENV, own_twiml=own_twiml)
    return FakePop(Config(twilio=twilio, telephony=TelephonyConfig(public_url=public_url), routes=routes))


async def rung(address: str, call_sid: str = "CA1") -> dict[str, str]:
    """Somebody calls: the parameters of the stream that is asked for."""
    [connected] = verbs(await post(f"http://{address}/twilio/voice", CALL | {"CallSid": call_sid}))
    return {one.get("name", ""): one.get("value", "") for one in connected[0]}


# --- the webhook ------------------------------------------------------------------------------------------------


async def test_a_number_that_is_called_is_streamed_to_us() -> None:
    async with serving(opened()) as address:
        [connected] = verbs(await post(f"http://{address}/twilio/voice?agent=clinic", CALL))
        assert (connected.tag, connected.get("action")) == ("Connect", f"http://{address}/twilio/after?agent=clinic")
        [stream] = connected
        assert stream.get("url") == f"ws://{address}/twilio/stream"
        parameters = {one.get("name"): one.get("value") or "" for one in stream}
        assert len(parameters.pop("voicepipe")) >= 32
        assert parameters == {"from": "+1555", "to": "+4930123", "agent": "clinic"}


async def test_behind_a_proxy_the_public_address_counts() -> None:
    public = "https://voice.example.com/calls"
    async with serving(opened(public_url=public)) as address:
        headers = signed(f"{public}/twilio/voice", CALL, "HMAC_SHA256")
        [connected] = verbs(await post(f"http://{address}/twilio/voice", CALL, headers))
        assert connected.get("action") == f"{public}/twilio/after"
        assert connected[0].get("url") == "wss://voice.example.com/calls/twilio/stream"
        forged = signed(f"http://{address}/twilio/voice", CALL)
        assert (await post(f"http://{address}/twilio/voice", CALL, forged)).status_code == 403
        async with streaming(f"ws://{address}/twilio/stream", signed("wss://voice.example.com/calls/twilio/stream")):
            pass


async def test_without_one_the_host_header_says_it_as_a_tls_proxy_passes_it_on() -> None:
    async with serving(opened()) as address:
        headers = signed("https://voice.example.com/twilio/voice", CALL) | {"Host": "voice.example.com"}
        [connected] = verbs(await post(f"http://{address}/twilio/voice", CALL, headers))
        assert connected[0].get("url") == "wss://voice.example.com/twilio/stream"


@pytest.mark.parametrize("full", [PopFull("full"), Draining("going down")])
async def test_a_pop_that_is_full_is_busy(full: Exception) -> None:
    pop = opened()
    pop.refuse = full
    async with serving(pop) as address:
        [reject] = verbs(await post(f"http://{address}/twilio/voice", CALL))
        assert (reject.tag, reject.get("reason")) == ("Reject", "busy")


async def test_a_number_that_no_route_is_meant_for_is_rejected(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(opened(RouteConfig(called="+33*"))) as address:
        [reject] = verbs(await post(f"http://{address}/twilio/voice", CALL))
        assert (reject.tag, reject.get("reason")) == ("Reject", "rejected")
    assert "No route is meant for '+4930123' by twilio" in caplog.text


# --- who is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [{}, {"X-Twilio-Signature": "bm9wZQ=="}])
async def test_what_twilio_has_not_signed(headers: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    pop = opened()
    async with serving(pop) as address:
        for path in ("voice", "after"):
            assert (await post(f"http://{address}/twilio/{path}", CALL, headers)).status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{address}/twilio/stream", additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == 403 and not pop.calls
    said = caplog.text
    assert said.count("is refused") == 3 and TOKEN not in said
    assert ("has no x-twilio-signature" in said) == (not headers)


@pytest.mark.parametrize("host", [b"[", b"\xe9[", b"a/b?c", b""])
async def test_a_host_that_is_none(host: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(opened()) as address:
        name, _, port = address.partition(":")
        for method, path, more in (("POST", "voice", ""), ("GET", "stream", UPGRADE)):
            reader, writer = await asyncio.open_connection(name, int(port))
            head = f"{method} /twilio/{path}?agent=%ff HTTP/1.1\r\nX-Twilio-Signature: bm9wZQ==\r\n{more}"
            writer.write(head.encode() + b"Content-Length: 0\r\nHost: " + host + b"\r\n\r\n")
            status = await reader.readline()
            writer.close()
            assert status.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403")), status
    assert "Traceback" not in caplog.text


UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def test_those_who_go_on_asking_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(opened()) as address, httpx.AsyncClient(trust_env=False) as client:
        for _ in range(200):
            assert (await client.post(f"http://{address}/twilio/voice")).status_code == 403
    told = [record for record in caplog.records if "twilio" in record.getMessage()]
    assert 1 < len(told) < 150 and any("are refused in masses" in record.getMessage() for record in told)


async def test_a_signature_alone_opens_no_call(caplog: pytest.LogCaptureFixture) -> None:
    pop = opened()
    async with serving(pop) as address:
        url = f"ws://{address}/twilio/stream"
        used = await rung(address)
        async with streaming(url) as stream:
            await stream.start(used)
            await until(lambda: pop.live)
        for parameters, call_sid, why in (
            ({"from": "+1555"}, "CA1", "twilio.own_twiml"),
            (used, "CA1", "was used before"),
            ({"voicepipe": "guess"}, "CA1", "is unknown"),
            (await rung(address, "CA3"), "CA2", "of another call than its token"),
        ):
            async with streaming(url, call_sid=call_sid) as stream:
                await stream.start(parameters)
                await until(stream.closed.is_set)
                assert stream.socket.close_code == 1008 and len(pop.calls) == 1
            assert "twilio: a stream is refused: " in caplog.text and why in caplog.text


async def test_an_old_webhook_sent_again_opens_no_call(caplog: pytest.LogCaptureFixture) -> None:
    pop = opened()
    async with serving(pop) as address:
        first = await rung(address)
        assert await rung(address) != first, "Twilio asks again if it gets no answer"
        async with streaming(f"ws://{address}/twilio/stream") as stream:
            await stream.start(first)
            await until(lambda: pop.live)
        assert (await post(f"http://{address}/twilio/voice", CALL)).status_code == 403
        untaken = CALL | {"DialCallStatus": "no-answer"}
        assert verbs(await post(f"http://{address}/twilio/after", untaken))[0].tag == "Hangup", "nobody was dialled"
    assert "twilio: a webhook is refused: its call has been streamed before" in caplog.text


async def test_our_own_pages_stay_closed_to_other_names() -> None:
    async with serving(opened()) as address:
        answer = await post(f"http://{address}/v1/realtime/calls", {}, {"Host": "voice.example.com"})
        assert answer.status_code == 403 and "http.origins" in answer.text


# --- a call -----------------------------------------------------------------------------------------------------


async def test_a_question_is_answered_and_the_sideband_sees_it() -> None:
    pop = opened(RouteConfig(called="+4930*", agent="clinic"))
    pop.packets, pop.pace = 25, 0.005
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.start(await rung(address) | {"tier": "gold"})
        await until(lambda: pop.calls)
        [call] = pop.calls
        assert call.settings.agent.name == "clinic" and call.line.kind == "twilio"
        assert call.settings.origin == Origin("+1555", "+4930123", {"tier": "gold"})
        async with connect(f"ws://{address}/v1/realtime?call_id=CA1", proxy=None) as beside:
            assert json.loads(await beside.recv())["type"] == "session.created"
            await stream.send("dtmf", dtmf={"track": "inbound_track", "digit": "5"})
            pressed = json.loads(await beside.recv())
            assert (pressed["type"], pressed["event"]) == ("input_audio_buffer.dtmf_event_received", "5")
            await stream.say(LOUD)
            await stream.say(QUIET)
            await until(lambda: len(stream.events("media")) == 50)
            await until(lambda: call.line.played() == 50 * 160)
            await stream.send("stop", stop={"accountSid": "AC1", "callSid": "CA1"})
            events = [json.loads(message)["type"] async for message in beside]
        assert {"input_audio_buffer.speech_started", "output_audio_buffer.started", "response.done"} <= set(events)
        await stream.closed.wait()
        assert len(stream.events("mark")) == 5
        assert np.abs(stream.played.astype(int)).max() > 5000


@pytest.mark.usefixtures("unencoded")
async def test_without_a_sideband_nothing_is_encoded_but_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    pop = opened()
    pop.packets, pop.pace = 25, 0.005
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.start(await rung(address))
        await stream.send("dtmf", dtmf={"track": "inbound_track", "digit": "5"})
        await stream.say(LOUD)
        await stream.say(QUIET)
        await until(lambda: len(stream.events("media")) == 50)
        await stream.send("stop", stop={"accountSid": "AC1", "callSid": "CA1"})
        await stream.closed.wait()
    assert pop.calls[0].history and "failed" not in caplog.text


async def test_an_interruption_clears_what_twilio_has_not_played() -> None:
    pop = opened()
    pop.packets, pop.pace = 100, 0.001  # faster than it can be played
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.start(await rung(address))
        await stream.say(LOUD)
        await stream.say(QUIET)
        await until(lambda: len(stream.events("media")) > 50)
        await stream.say(LOUD)
        await until(lambda: stream.events("clear"))
        [call] = pop.calls
        assert call.line.played() < 160 * len(stream.events("media"))


async def test_twilio_may_just_go_away() -> None:
    pop = opened()
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.start(await rung(address))
        await until(lambda: pop.live)
        stream.socket.transport.abort()
        await until(lambda: not pop.live)


async def test_our_end_closes_the_stream_so_that_the_next_verb_runs() -> None:
    pop = opened()
    async with serving(pop) as address:
        async with streaming(f"ws://{address}/twilio/stream") as stream:
            await stream.start(await rung(address))
            await until(lambda: pop.calls)
            await pop.calls[0].line.hang_up()
            await stream.closed.wait()
            assert stream.socket.close_code == 1000
        [verb] = verbs(await post(f"http://{address}/twilio/after", CALL))
        assert verb.tag == "Hangup"


@pytest.mark.parametrize(
    ("target", "verb", "dialled"),
    [
        ("+49 (30) 12-34", "Number", "+49301234"),
        ("tel:+1-415-555-0123", "Number", "+14155550123"),
        ("sip:a@b.example?x=1&y=2", "Sip", "sip:a@b.example?x=1&y=2"),
    ],
)
async def test_a_transfer_is_dialled_once(target: str, verb: str, dialled: str) -> None:
    pop = opened()
    async with serving(pop) as address:
        async with streaming(f"ws://{address}/twilio/stream") as stream:
            await stream.start(await rung(address))
            await until(lambda: pop.calls)
            await pop.calls[0].line.transfer(target)
            await pop.calls[0].line.hang_up()
            await stream.closed.wait()
        [dial] = verbs(await post(f"http://{address}/twilio/after", CALL))
        assert (dial.tag, dial.get("action")) == ("Dial", f"http://{address}/twilio/after")
        assert (dial[0].tag, dial[0].text) == (verb, dialled)
        assert verbs(await post(f"http://{address}/twilio/after", CALL))[0].tag == "Hangup"


async def test_streams_and_transfers_are_handed_over_to_the_process_that_takes_over() -> None:
    old, new = opened(), opened()
    async with serving(old) as address, serving(new) as other:
        asked, later = await rung(address), await rung(address, "CA2")
        async with streaming(f"ws://{address}/twilio/stream") as stream:
            await stream.start(asked)
            await until(lambda: old.calls)
            for name, state in old.takeover_parts.given().items():
                new.takeover_parts.taken(name, state)
            old.takeover_parts.publish = new.takeover_parts.taken
            async with streaming(f"ws://{other}/twilio/stream") as second:
                second.call_sid = "CA2"
                await second.start(later)
                await until(lambda: new.calls)
            await old.calls[0].line.transfer("+4930")
            await old.calls[0].line.hang_up()
            await stream.closed.wait()
        [dial] = verbs(await post(f"http://{other}/twilio/after", CALL))
        assert dial.tag == "Dial"
        assert verbs(await post(f"http://{other}/twilio/after", CALL))[0].tag == "Hangup"


async def test_a_call_that_nobody_took_comes_back_and_is_told() -> None:
    pop = opened()
    async with serving(pop) as address:
        url = f"http://{address}/twilio/voice?agent=clinic"
        for number in range(2):
            [connected] = verbs(await post(url, CALL | {"DialCallStatus": "no-answer"} if number else CALL))
            async with streaming(connected[0].get("url") or "") as stream:
                await stream.start({one.get("name", ""): one.get("value", "") for one in connected[0]})
                await until(lambda: len(pop.calls) > number)  # noqa: B023
                agent = pop.calls[number].settings.agent
                assert (agent.name, agent.greeting) == ("clinic", agent.transfer_failed if number else "")
                assert pop.calls[number].settings.origin == Origin("+1555", "+4930123", {})
                await pop.calls[number].line.transfer("+4930")
                await pop.calls[number].line.hang_up()
                await stream.closed.wait()
            url = connected.get("action") or ""
            assert url == f"http://{address}/twilio/after?agent=clinic"
            [dial] = verbs(await post(url, CALL))
            url = dial.get("action") or ""
        assert verbs(await post(url, CALL | {"DialCallStatus": "completed"}))[0].tag == "Hangup"
        pop.refuse = PopFull("full")
        assert verbs(await post(url, CALL | {"DialCallStatus": "busy"}))[0].tag == "Hangup"


async def test_a_stream_of_somebody_elses_twiml_cannot_be_transferred() -> None:
    pop = opened(own_twiml=True)
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.start({"from": "+1555", "tier": "gold"})
        await until(lambda: pop.calls)
        assert pop.calls[0].settings.origin == Origin("+1555", "", {"tier": "gold"})
        with pytest.raises(TransferFailed, match="/twilio/voice"):
            await pop.calls[0].line.transfer("+4930")


async def test_a_pop_that_has_filled_up_since_closes_the_stream() -> None:
    pop = opened()
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        parameters = await rung(address)
        pop.refuse = PopFull("full")
        await stream.start(parameters)
        await stream.closed.wait()
        assert stream.socket.close_code == 1008 and not pop.calls


async def test_a_call_that_twilio_says_nothing_of_any_more_is_ended() -> None:
    pop = opened()
    limits = msgspec.structs.replace(pop.config.limits, idle_ms=1000)
    pop.config = msgspec.structs.replace(pop.config, limits=limits, http=HttpConfig(port=0))
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.start(await rung(address))
        await until(lambda: pop.calls)
        await stream.closed.wait()


# --- what makes no sense ----------------------------------------------------------------------------------------


async def test_odd_messages_are_told_and_the_call_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    pop = opened()
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        await stream.say(LOUD[:160])
        await stream.start(await rung(address))
        await stream.start({})
        await stream.socket.send("{")
        await stream.send("weather", weather="fine")
        stream.stream_sid = "MZ2"
        await stream.say(LOUD[:160])
        stream.stream_sid = "MZ1"
        await stream.say(LOUD)
        await until(lambda: len(pop.calls[0].blocks) >= 50 if pop.calls else False)
        assert len(pop.calls) == 1
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    for why in ("comes before its start", "starts it a second time", "is no JSON", "names another stream, 'MZ2'"):
        assert any(why in line for line in said), why


async def test_a_stream_of_nothing_else_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(opened()) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        for _ in range(20):
            await stream.socket.send("{")
        await stream.closed.wait()
        assert stream.socket.close_code == 1008
    assert "is given up after 10" in caplog.text


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(messages, max_size=8), st.booleans())
def test_random_messages_crash_nothing(
    monkeypatch: pytest.MonkeyPatch, said: list[dict[str, Any]], begun: bool
) -> None:
    async def run() -> None:
        pop = opened()
        async with serving(pop) as address:
            async with streaming(f"ws://{address}/twilio/stream") as stream:
                if begun:
                    await stream.start(await rung(address))
                for message in said:
                    await stream.socket.send(json.dumps(message))
                await stream.send("stop")
            async with streaming(f"ws://{address}/twilio/stream", call_sid="CA2") as after:
                await after.start(await rung(address, "CA2"))
                await until(lambda: pop.live)

    asyncio.run(run())
