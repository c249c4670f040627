"""What a call's followers are told of words: never a card number, and turns again when they read differently."""

import json

from tests.observe.test_calls import LINE, answer, spoken
from voicepipe.config.pop_config import LONGEST, USUAL, RedactionConfig
from voicepipe.conversation.events import CallEnded, CallEvent, Item, ReplyDone, ReplyStarted, ToolUse
from voicepipe.observe.call_followers import CallEnd, CallFacts, CallFollower
from voicepipe.observe.calls import LiveCall
from voicepipe.observe.last_turns import FullTurn, LastTurns
from voicepipe.observe.redacted_words import MOST_OF_A_VALUE, redacted


class FollowerLog(CallFollower):
    """All texts in the order in which they were told, and how each turn reads at last."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.at_last: dict[int, FullTurn] = {}
        self.has_ended = False

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        assert not self.has_ended, "a record is complete when its call ends"
        self.texts += [full.heard, full.answered, *(text for use in full.tools for text in (use.arguments, use.result))]
        self.at_last[full.number] = full

    replied = amended = turn

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        self.has_ended = True


def told(*events: CallEvent, redaction: RedactionConfig = USUAL) -> tuple[FollowerLog, LastTurns]:
    follower, turns = FollowerLog(), LastTurns()
    call = LiveCall(turns, 300, "acme", "front-desk", (follower,), redaction)
    call.answered("call_1", LINE, 1000.0)
    for number, event in enumerate(events):
        call.note(event, 1000.0 + number)
    call.ended("caller", 2000.0)
    return follower, turns


def asked(number: int, text: str, *tools: ToolUse) -> tuple[CallEvent, CallEvent]:
    """A reply of the agent's."""
    said = (Item(f"item_{number}", role="assistant", text=text),)
    return ReplyStarted(f"resp_{number}", f"turn_{number}"), ReplyDone(
        f"resp_{number}", "completed", items=said, tools=tools
    )


def test_half_a_card_number_is_never_told() -> None:
    follower, turns = told(
        spoken("my card is four one one one one one one one"), *asked(1, "Go on."),
        spoken("one one one one one one one one"), *asked(2, "Thank you."), CallEnded("caller"),
    )  # fmt: skip
    assert follower.texts[0] == "my card is [digits]" and follower.at_last[0].heard == "my card is [card]"
    assert not [text for text in follower.texts if "one one" in text]
    kept = turns.find("turn_1")
    assert kept and kept.heard == "my card is [card]", "the dashboard's memory as well"


def test_what_was_no_card_number_is_told_again_as_it_was() -> None:
    follower, turns = told(
        spoken("I am at 030 123456"), *asked(1, "Go on."), spoken("that is all"),
        *asked(2, "And for how many people?"), CallEnded("caller"),
    )  # fmt: skip
    assert "[digits]" in follower.texts[0]
    assert follower.at_last[0].heard == "I am at 030 123456"
    kept = turns.find("turn_1")
    assert kept and kept.heard == "I am at 030 123456"


def test_the_end_of_a_call_reveals_what_is_no_card_number() -> None:
    follower, _ = told(spoken("call me at 030 123456"), *answer(1), CallEnded("caller"))
    assert follower.at_last[0].heard == "call me at 030 123456"


def test_tools_are_told_without_it_and_stay_json() -> None:
    use = ToolUse("pay", took=5.0, arguments='{"card": "4111111111111111", "people": 2}', result="paid")
    follower, _ = told(spoken("pay with 4111 1111 1111 1111"), *asked(1, "Done.", use), CallEnded("caller"))
    arguments = json.loads(follower.at_last[0].tools[0].arguments)
    assert "4111" not in json.dumps(arguments) and arguments["people"] == 2


def test_without_transcripts_nobodys_words_are_told() -> None:
    use = ToolUse("hours", arguments="{}", result="noon")
    follower, _ = told(spoken("when are you open"), *asked(1, "From noon.", use), CallEnded("caller"),
                       redaction=RedactionConfig(transcripts=False))  # fmt: skip
    assert not any(follower.texts) and follower.at_last[0].tools[0].name == "hours"


def test_ones_own_patterns() -> None:
    follower, _ = told(spoken("my number is AB123456"), *answer(1), CallEnded("caller"),
                       redaction=RedactionConfig(patterns=(r"\b[A-Z]{2}\d{6}\b",)))  # fmt: skip
    assert follower.at_last[0].heard == "my number is [redacted]"


def test_long_texts_are_cut() -> None:
    follower, _ = told(spoken("x" * 3 * LONGEST), *answer(1), CallEnded("caller"))
    assert len(follower.texts[0]) == LONGEST


def test_keys_that_the_agent_presses_are_masked_but_a_menus_choice_is_not() -> None:
    pin = ToolUse("send_keys", 900.0, arguments='{"keys": "4w711#"}', result="sent")
    part = ToolUse(
        "send_keys", failed=True, arguments='{"keys": "4711#"}', result='Error: "471" was sent, and "1#" was not'
    )
    choice, other = ToolUse("send_keys", 200.0, arguments='{"keys": "2w#"}'), ToolUse("find", arguments='{"id": "987"}')
    follower, _ = told(
        *asked(1, "My number is 4711.", choice, other), *asked(2, "", pin), *asked(3, "I said 4711.", part),
        CallEnded("caller"),
    )  # fmt: skip
    first, second, third = (follower.at_last[number] for number in range(3))
    assert [use.arguments for use in first.tools] == [choice.arguments, other.arguments]
    assert (first.answered, third.answered) == ("My number is [keys].", "I said [keys].")
    assert [json.loads(use.arguments) for use in (*second.tools, *third.tools)] == [{"keys": "[keys]"}] * 2
    assert third.tools[0].result == 'Error: "[keys]" was sent, and "1#" was not'


def test_keys_that_the_agent_presses_stay_where_keys_are_kept() -> None:
    pin = ToolUse("send_keys", 900.0, arguments='{"keys": "4711#"}', result="sent")
    follower, _ = told(*asked(1, "", pin), CallEnded("caller"), redaction=RedactionConfig(keys=False))
    assert follower.at_last[0].tools[0].arguments == pin.arguments


def test_variables_are_redacted_as_words_are() -> None:
    card = "4111 1111 1111 1111"
    values = {"card": card, "phone": "555 0142", "note": f"pays by {card}", "long": "x" * 900}
    assert redacted(USUAL, values) == {
        "card": "[card]", "phone": "555 0142", "note": "pays by [card]", "long": "x" * MOST_OF_A_VALUE}  # fmt: skip
    assert redacted(RedactionConfig(patterns=("Ann",)), {"name": "Ann"}) == {"name": "[redacted]"}
    assert redacted(RedactionConfig(transcripts=False), values) == dict.fromkeys(values, "")


def test_a_call_s_facts_have_them_redacted() -> None:
    call = LiveCall(LastTurns(), 300, "acme", "front-desk")
    call.answered("call_1", LINE, 1000.0, variables={"plan": "gold", "card": "4111111111111111"})
    assert call.facts and call.facts.variables == {"plan": "gold", "card": "[card]"}
