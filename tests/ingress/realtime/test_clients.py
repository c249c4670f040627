"""The clients of one call: told the same, whenever they join."""

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop
from tests.ingress.realtime.test_websocket import dialled, ends
from tests.ingress.test_hosted_call import Happens, happen, hosted, spoken, told
from voicepipe.agent import Agent
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.events import (
    AgentChanged,
    CallEnded,
    Item,
    ItemAdded,
    ItemDeleted,
    LanguageChanged,
    SpeechStarted,
    SpeechStopped,
)
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.rights import Rights

HAPPENS: Happens = (
    SpeechStarted("asked", 100), SpeechStopped("asked", 900), ItemAdded(Item("asked", text="when?"), None, spoken=True),
    *spoken(1), *spoken(2, metadata={"a": "b"}, remembered=False), *spoken(3, modality="text"), ItemDeleted("item_1"),
)  # fmt: skip


@pytest.mark.parametrize("missed", range(len(HAPPENS) + 1))
async def test_who_joins_late_is_told_the_same_from_then_on(missed: int) -> None:
    call, session = hosted()
    early, left = RealtimeClients(call, session), RealtimeClients(call, session)
    stays, goes = early.join(lambda: None), left.join(lambda: None)
    happen(call, HAPPENS[: missed // 2])
    left.leave(goes)
    happen(call, HAPPENS[missed // 2 : missed])
    late = RealtimeClients(call, session)
    outboxes = [clients.join(lambda: None) for clients in (early, left, late)]
    early.leave(stays)
    happen(call, HAPPENS[missed:])
    call.end("caller")
    call.close()
    first, second, third = [await told(outbox) for outbox in outboxes]
    assert first[0]["type"] == "session.created" and len(first) > (missed < len(HAPPENS))
    assert first == second == third


async def test_all_clients_of_a_call_have_one_session_which_is_that_of_its_settings() -> None:
    call, _ = hosted()
    assert not call.listeners
    call.control.configure(msgspec.structs.replace(call.settings, instructions="Be brief."))
    clients = RealtimeClients.of(call)
    assert RealtimeClients.of(call) is clients and call.listeners == [clients]
    outbox = clients.join(lambda: None)
    call.close()
    (created,) = await told(outbox)
    assert created["session"]["instructions"] == "Be brief."
    assert created["session"]["expires_at"] == call.until


async def test_who_joins_a_call_that_is_over_sees_its_session_and_goodbye() -> None:
    call, _ = hosted()
    call.end("max_length")
    call.close()
    clients = RealtimeClients.of(call)
    assert [event["type"] for event in await told(clients.join(lambda: None))] == ["session.created"]
    assert clients.goodbye.close == 1001 and not call.listeners


@pytest.mark.parametrize("reason", ["no_input", "shutdown", "something new"])
async def test_every_reason_closes(reason: str) -> None:
    pop = FakePop()
    async with dialled(pop) as socket:
        call = pop.calls[0]
        call.emit(CallEnded(reason))
        await call.line.hang_up()
        code, _ = await ends(socket)
        assert code == {"no_input": 1000, "shutdown": 1012}.get(reason, 1000)


async def test_the_session_is_that_of_the_agent_that_has_taken_over_for_who_is_there_and_who_joins_later() -> None:
    call, _ = hosted()
    clients = RealtimeClients.of(call)
    outbox = clients.join(lambda: None)
    other = Agent("booking", instructions="You book.", voice="de", speed=1.5)
    call.control.configure(call.settings.handed_to(CallSettings.of(other)))
    happen(call, (AgentChanged(call.settings),))
    clients.leave(outbox)
    back = CallSettings.of(FakePop().known["clinic"])
    call.control.configure(call.settings.handed_to(back))
    happen(call, (AgentChanged(call.settings),))
    late = clients.join(lambda: None)
    call.close()
    _, updated = [event["session"] for event in await told(outbox)]
    assert (updated["model"], updated["instructions"]) == ("booking", "You book.")
    assert (updated["audio"]["output"]["voice"], updated["audio"]["output"]["speed"]) == ("de", 1.5)
    (created,) = [event["session"] for event in await told(late)]
    assert (created["model"], created["instructions"]) == ("clinic", "Be brief.")


async def test_of_an_agent_that_has_taken_over_who_holds_an_ek_key_sees_the_instructions_of_its_file() -> None:
    call, _ = hosted()
    clients = RealtimeClients.of(call)
    program, browser = clients.join(lambda: None), clients.join(lambda: None, Rights(of_tenant=False))
    filled = CallSettings.of(Agent("booking", instructions="You book for Ann."))
    filled = msgspec.structs.replace(filled, written_instructions="You book for {{customer}}.")
    call.control.configure(call.settings.handed_to(filled))
    happen(call, (AgentChanged(call.settings),))
    late = clients.join(lambda: None, Rights(of_tenant=False))
    call.close()
    shown = [(await told(each))[-1]["session"]["instructions"] for each in (program, browser, late)]
    assert shown == ["You book for Ann.", "You book for {{customer}}.", "You book for {{customer}}."]


def spoken_in(call: HostedCall, tag: str) -> None:
    """The call's language is another."""
    agent = Agent("desk", language=tag, languages=("en", "de"), voices={"en": "en-us", "de": "de"})
    call.control.configure(msgspec.structs.replace(call.settings, agent=agent))
    happen(call, (LanguageChanged(tag),))


async def test_the_session_with_another_voice_is_shown_once_and_not_inside_a_response() -> None:
    call, _ = hosted()
    clients = RealtimeClients.of(call)
    outbox = clients.join(lambda: None)
    spoken_in(call, "de")
    spoken_in(call, "de")
    happen(call, reply := spoken(1))
    happen(call, reply[:5])
    spoken_in(call, "en")
    happen(call, reply[5:])
    happen(call, reply[:5])
    spoken_in(call, "de")
    spoken_in(call, "en")  # What changed it was taken back.
    happen(call, reply[5:])
    late = clients.join(lambda: None)
    call.close()
    kinds = {"session.updated", "response.created", "response.done"}
    shown = [event for event in await told(outbox) if event["type"] in kinds]
    assert [event["type"] for event in shown] == [
        "session.updated", "response.created", "response.done",
        "response.created", "response.done", "session.updated",
        "response.created", "response.done",
    ]  # fmt: skip
    voices = [event["session"]["audio"]["output"]["voice"] for event in shown if "session" in event]
    assert voices == ["de", "en-us"]
    spoke = [event["response"]["audio"]["output"]["voice"] for event in shown if "response" in event]
    assert spoke == ["de", "de", "de", "de", "en-us", "en-us"], "a response has one voice"
    assert (await told(late))[0]["session"]["audio"]["output"]["voice"] == "en-us"


async def test_a_voice_that_changed_while_nobody_listened_is_shown_to_who_comes() -> None:
    call, _ = hosted()
    clients = RealtimeClients.of(call)
    gone = clients.join(lambda: None)
    happen(call, (reply := spoken(1))[:5])
    clients.leave(gone)
    spoken_in(call, "de")
    happen(call, reply[5:])
    outbox = clients.join(lambda: None)
    happen(call, spoken(1))
    call.close()
    sessions = [event for event in await told(outbox) if "session" in event]
    assert [event["type"] for event in sessions] == ["session.created"]
    assert sessions[0]["session"]["audio"]["output"]["voice"] == "de"


async def test_a_language_with_the_same_voice_shows_no_session_again() -> None:
    call, _ = hosted()
    outbox = RealtimeClients.of(call).join(lambda: None)
    spoken_in(call, "en")
    call.close()
    assert [event["type"] for event in await told(outbox)] == ["session.created"]
