"""Calls as records keep them."""

from voicepipe.conversation.events import Item, ReplyDone, ToolUse
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.call_followers import CallFacts
from voicepipe.observe.last_turns import AskedTurn, FullTurn, full_turn
from voicepipe.records.record import RecordedHost

HOST = RecordedHost("fra1", "eu-central")
LONG_AGO = 1_790_000_000.0


def call(number: int, *, tenant: str = "acme", agent: str = "front-desk", caller: str = "+4930123456") -> CallFacts:
    """The calls of one day, a second apart."""
    return CallFacts(id=f"rtc_fra1.{number:012x}", tenant=tenant, agent=agent, line="sip", since=LONG_AGO + number,
                     caller=caller, called="+49301000")  # fmt: skip


def said(of: CallFacts, number: int, latency_ms: float = 180.0, *, heard: str = "when are you open") -> FullTurn:
    """A turn of a call, answered."""
    asked = AskedTurn(of.since + number, f"turn_{of.id}_{number}", heard, of.id, of.tenant, of.agent, number=number)
    record = TurnSummary(turn_latency=latency_ms, at_commit=140.0, speculation="hit")
    items = (Item("item_2", role="assistant", text="From noon."),)
    tools = (ToolUse("hours", took=12.0, at=90.0, arguments="{}", result="noon"),)
    return full_turn(asked, ReplyDone("resp_1", "completed", items=items, record=record, tools=tools), 300)
