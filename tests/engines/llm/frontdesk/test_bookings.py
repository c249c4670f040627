"""The front desk of configs/agents by the embedded engine: books what can be booked, changes, cancels, and waits."""

from functools import reduce

import pytest
from msgspec.structs import replace

from tests.engines.llm.frontdesk.front_desk import AT_ONCE, FRONT_DESK, Caller, a_wednesday, reply  # noqa: F401
from voicepipe.agent import ToolSpec
from voicepipe.engines.base import Message, Prompt, ToolCall
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue, FrontdeskState
from voicepipe.tools import restaurant

pytestmark = pytest.mark.usefixtures("a_wednesday")
RIGHT = "Is that right?"
NAME, PHONE = "ann brown", "five five five oh one four two"
BOOKED = {"people": 2, "day": "Friday", "time": "7 o'clock", "name": "Ann Brown", "phone": "5550142"}


@pytest.fixture(scope="module")
def desk() -> FrontdeskDialogue:
    return FrontdeskDialogue(FRONT_DESK)


@pytest.fixture
def caller(desk: FrontdeskDialogue) -> Caller:
    return Caller(desk)


def asked_for(caller: Caller) -> str:
    """Ann Brown wants a table for two on Friday at seven; what she is asked then."""
    return caller.says("a table for two at seven on friday", NAME, PHONE)


def booked(caller: Caller) -> None:
    asked_for(caller)
    caller.say("yes please")
    assert caller.called("book_table") == [BOOKED]


def test_a_booking_is_read_back_and_waits_for_a_yes(caller: Caller) -> None:
    assert caller.say("i'd like to book a table") == "With pleasure. For how many people?"
    assert caller.say("two") == "For which day?"
    assert caller.say("on friday") == "And at what time?"
    assert caller.say("seven") == "What name may I put it under?"
    assert caller.say("my name is ann brown") == "And your telephone number, please?"
    assert caller.say(PHONE) == f"A table for 2, Friday at 7 o'clock, for Ann Brown, telephone 5 5 5, 0 1 4 2. {RIGHT}"
    assert not caller.called("book_table")
    assert caller.say("yes please").startswith("Thank you. It is booked, your reference is")
    assert caller.called("book_table") == [BOOKED]


@pytest.mark.parametrize(
    "said",
    ["Ann Brown 555 0142", "ann brown five five five oh one four two", "it's ann brown and my number is 555 0142",
     "my name is ann brown my telephone number is five five five oh one four two"],
)  # fmt: skip
def test_a_name_and_a_number_in_one_breath(caller: Caller, said: str) -> None:
    """So they reach us also where two questions were talked over."""
    caller.say("a table for two at seven on friday")
    assert "for Ann Brown, telephone 5 5 5, 0 1 4 2." in caller.say(said)


def test_a_number_alone_is_no_name(caller: Caller) -> None:
    caller.say("a table for two at seven on friday")
    assert caller.say("my number is 555 0142") == "What name may I put it under?"


@pytest.mark.parametrize(
    "yes",
    ["yes", "Yes, please.", "yeah that's right", "okay", "correct", "sure go ahead", "please do", "yes for two",
     "yes please book it", "yes that's right thank you", "yes that's all, thank you", "please", "book it please",
     "yes, on Friday at 7"],
)  # fmt: skip
def test_a_yes_in_other_words(caller: Caller, yes: str) -> None:
    asked_for(caller)
    assert "booked" in caller.say(yes)
    assert caller.called("book_table") == [BOOKED]


@pytest.mark.parametrize(
    ("said", "what", "becomes"),
    [
        ("no, at eight", "time", "8 o'clock"),
        ("yes but for three people", "people", 3),
        ("yes for four people", "people", 4),
        ("yes, but at eight o'clock please", "time", "8 o'clock"),
        ("saturday would be better", "day", "Saturday"),
        ("the name is spelled b r a u n", "name", "Ann Braun"),
        ("no the number is five five five nine nine nine nine", "phone", "5559999"),
    ],
)
def test_what_is_wrong_is_corrected_and_read_back_again(caller: Caller, said: str, what: str, becomes: object) -> None:
    asked_for(caller)
    assert caller.say(said).endswith(RIGHT)
    assert not caller.called("book_table")
    caller.say("yes")
    assert caller.called("book_table") == [BOOKED | {what: becomes}]


def test_a_bare_no_is_asked_what_should_be_different(caller: Caller) -> None:
    asked_for(caller)
    assert caller.say("no") == "What should be different?"
    assert "at 7:30" in caller.say("at half past seven")
    assert caller.say("no the name is wrong") == "What name may I put it under?"
    assert "for John Smith" in caller.say("john smith")
    assert caller.say("no the number is wrong") == "And your telephone number, please?"
    assert not caller.called("book_table")


@pytest.mark.parametrize(
    "said",
    ["yes but wait", "brr", "yes but not so fast", "do you have a table", "please hold on", "please repeat that",
     "okay and do you have parking", "yes eight", "yes maybe", "is it"],
)  # fmt: skip
def test_what_is_no_yes_books_nothing(caller: Caller, said: str) -> None:
    asked_for(caller)
    caller.say(said)
    assert not caller.called("book_table")
    assert "booked" in caller.say("yes")


@pytest.mark.parametrize("said", ["okay no", "right no", "absolutely not", "of course not", "please don't book it"])
def test_a_no_behind_other_words_is_a_no(caller: Caller, said: str) -> None:
    asked_for(caller)
    assert caller.say(said) == "What should be different?"
    assert not caller.called("book_table")


@pytest.mark.parametrize("said", ["okay never mind", "alright forget it", "ok cancel", "okay goodbye"])
def test_who_leaves_books_nothing(caller: Caller, said: str) -> None:
    asked_for(caller)
    assert RIGHT not in caller.say(said)
    caller.say("yes")
    assert not caller.called("book_table") and not caller.called("cancel_booking")


def test_who_cannot_be_put_through_is_read_the_booking_again(caller: Caller) -> None:
    read_back = asked_for(caller)
    assert caller.say("please connect me to a person") == f"{caller.desk.agent.cannot_transfer} {read_back}"
    assert not caller.called("book_table")


@pytest.mark.parametrize("said", ["okay", "yes please", "great"])
def test_who_is_put_through_books_nothing_if_that_is_cut(caller: Caller, said: str) -> None:
    """The tool is called once the reply has been heard out: here it never is."""
    caller.tools = (*caller.tools, ToolSpec("transfer_call", "Puts the caller through."))
    asked_for(caller)
    assert "put you through to a colleague" in caller.say("please connect me to a person")
    caller.say(said)
    assert not caller.called("book_table")


def test_what_should_be_different_is_asked_again_of_who_cannot_be_put_through(caller: Caller) -> None:
    asked_for(caller)
    assert caller.say("no") == "What should be different?"
    assert caller.say("a person please").endswith("What should be different?")


def test_of_a_single_request_too_a_caller_can_let_go() -> None:
    (booking,) = (intent for intent in FRONT_DESK.intents if intent.name == "booking")
    only = Caller(FrontdeskDialogue(replace(FRONT_DESK, intents=(booking,))))
    asked_for(only)
    assert only.say("ok cancel") == FRONT_DESK.acknowledgement
    assert not only.called("book_table") and not only.called("cancel_booking")


def test_a_question_before_the_yes_is_answered_and_what_is_open_asked_again(caller: Caller) -> None:
    asked_for(caller)
    assert caller.say("do you have parking").endswith(f"Parking is free for our guests. {RIGHT}")
    assert "booked" in caller.say("yes")


@pytest.mark.parametrize(
    ("said", "problem", "question"),
    [
        ("a table for two at seven on monday", "On Mondays we are closed.", "For which day?"),
        ("a table for two at seven yesterday", "That day is over.", "For which day?"),
        ("a table for two at seven on the 24th of december", "On Christmas Eve we are closed.", "For which day?"),
        ("a table for two at eleven at night on friday", "We have tables from noon", "And at what time?"),
        ("a table for two at ten in the morning today", "We have tables from noon", "And at what time?"),
        ("a table for twelve people at seven on friday", "For more than eight", "For how many people?"),
    ],
)
def test_what_cannot_be_booked_is_told_at_once_and_asked_for_again(
    caller: Caller, said: str, problem: str, question: str
) -> None:
    answer = caller.say(said)
    assert problem in answer and answer.endswith(question)
    assert not caller.called("book_table")


def test_a_day_that_is_closed_is_replaced_and_the_rest_stays(caller: Caller) -> None:
    caller.say("a table for two at seven on monday")
    caller.says("friday", NAME, PHONE, "yes")
    assert caller.called("book_table") == [BOOKED]


def test_what_was_refused_is_refused_again(caller: Caller) -> None:
    caller.say("a table for two at seven yesterday")
    assert caller.say("yesterday").endswith("over. For which day?")
    assert caller.say("friday") == "What name may I put it under?"


def test_what_became_impossible_meanwhile_is_not_booked(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for(caller)
    monkeypatch.setattr(restaurant, "CLOSED", 4)
    assert caller.say("yes").endswith("closed. For which day?")
    assert not restaurant._booked
    caller.says("saturday", "yes")
    assert [booking.people for booking in restaurant._booked.values()] == [2]


@pytest.mark.parametrize("said", ["wait, stop please", "hold on", "stop", "wait a moment please", "no wait"])
def test_who_wants_silence_gets_it(caller: Caller, said: str) -> None:
    assert caller.say(said) == "Of course."
    caller.says("a table for two at seven on friday", NAME)
    assert caller.say(said) == "Of course."
    assert caller.say(PHONE).endswith(RIGHT), "and the booking goes on where it was"
    assert caller.say(said) == "Of course."
    assert "booked" in caller.say("yes")


@pytest.mark.parametrize("said", ["wait stop please", "stop", "no wait", "just wait a minute please"])
def test_who_stops_us_as_soon_as_we_begin_gets_silence_and_is_not_asked_again(caller: Caller, said: str) -> None:
    """A voice so soon after the turn goes on with it, so that the turn ends in these words."""
    caller.says("a table for two at seven on friday", NAME)
    assert caller.say(f"{PHONE} {said}") == "Of course."
    assert not caller.called("book_table")
    read_back = f"A table for 2, Friday at 7 o'clock, for Ann Brown, telephone 5 5 5, 0 1 4 2. {RIGHT}"
    assert caller.say("yes please") == read_back, "nothing was read back yet that a yes could be about"
    caller.say("yes please")
    assert caller.called("book_table") == [BOOKED]


def test_a_no_after_we_were_stopped_asks_what_is_wrong(caller: Caller) -> None:
    caller.says("a table for two at seven on friday", NAME)
    caller.say(f"{PHONE} wait stop")
    assert caller.say("no that's wrong") == "What should be different?"
    assert "at 8 o'clock" in caller.say("at eight o'clock")


def test_noise_after_we_were_stopped_carries_nothing_out() -> None:
    caller = Caller(FrontdeskDialogue(AT_ONCE))
    caller.says("i'd like to book a table", "two", "on friday")
    assert caller.say("seven o'clock hold on") == "Of course."
    caller.say("umph gurgle")
    assert not caller.called("book_table")
    caller.say("yes please")
    assert caller.called("book_table")


def test_a_detail_after_we_were_stopped_goes_on_with_the_booking(caller: Caller) -> None:
    caller.says("a table for two at seven on friday", NAME)
    caller.say(f"{PHONE} hold on")
    assert caller.say("my name is mary jones").startswith("A table for 2, Friday at 7 o'clock, for Mary Jones")
    assert caller.say("is there a bus stop near you").startswith("Take the ferry")


def test_a_booking_is_cancelled(caller: Caller, desk: FrontdeskDialogue) -> None:
    booked(caller)
    later = Caller(desk)
    assert later.say("i have to cancel my booking") == "Under which telephone number is it?"
    again = later.say("five five five nine nine nine nine")
    assert again == "I find no booking under that number. Under which telephone number is it?"
    table = "That is a table for 2, Friday, the 27th of November at 7 o'clock. Shall I cancel it?"
    assert later.say("sorry it's five five five oh one four two") == table
    assert later.say("no") == "All right, it stays as it is." and restaurant._booked
    assert later.says("please cancel my reservation", PHONE) == table
    assert later.say("yes cancel it please") == "It is cancelled. Is there anything else?"
    assert not restaurant._booked


@pytest.mark.parametrize(
    ("said", "cancelled"),
    [("ok keep it", False), ("okay leave it as it is", False), ("okay no", False), ("yes but hold on", False),
     ("cancel it please", True), ("yes cancel my booking", True), ("yes cancel", True), ("of course", True)],
)  # fmt: skip
def test_only_a_yes_cancels(caller: Caller, desk: FrontdeskDialogue, said: str, cancelled: bool) -> None:
    booked(caller)
    later = Caller(desk)
    assert later.says("i have to cancel my booking", PHONE).endswith("Shall I cancel it?")
    later.say(said)
    assert bool(later.called("cancel_booking")) == cancelled


def test_a_booking_is_changed(caller: Caller, desk: FrontdeskDialogue) -> None:
    booked(caller)
    later = Caller(desk)
    found = later.says("i want to change my reservation", PHONE)
    assert found == "I have a table for 2, Friday, the 27th of November at 7 o'clock. What should be different?"
    assert later.say("on monday").endswith("closed. For which day?") or later.called("change_booking") == []
    assert later.says("saturday at eight for three people") == f"So a table for 3, Saturday at 8 o'clock. {RIGHT}"
    assert later.say("that's right") == "It is changed. See you then."
    (booking,) = restaurant._booked.values()
    assert (booking.people, booking.day.isoformat(), booking.time) == (3, "2026-11-28", "8 o'clock")


def test_a_change_to_a_day_that_is_closed_is_refused(caller: Caller, desk: FrontdeskDialogue) -> None:
    booked(caller)
    later = Caller(desk)
    later.says("i want to change my reservation", PHONE, "to monday evening at seven o'clock for two")
    assert "closed" in later.say("yes")
    (booking,) = restaurant._booked.values()
    assert booking.day.isoformat() == "2026-11-27"


def test_who_wants_something_else_in_the_middle_gets_it(caller: Caller, desk: FrontdeskDialogue) -> None:
    booked(caller)
    later = Caller(desk)
    later.say("i want to change my reservation")
    assert "how many" in later.say("i would like to book a table please")


def test_who_drops_a_booking_is_not_asked_for_one_to_cancel(caller: Caller) -> None:
    asked_for(caller)
    assert "number" not in caller.say("cancel that please")
    assert "book" not in caller.say("yes")
    assert not caller.called("book_table") and not caller.called("cancel_booking")


def test_while_a_check_runs_the_caller_goes_on(desk: FrontdeskDialogue) -> None:
    """The check's answer comes when the next detail has been said: it is told, and nothing is lost."""
    check = ToolCall("c1", "check_table", '{"people": 2, "day": "Monday", "time": "7 o\'clock"}')
    messages = (
        Message("user", "a table for two at seven on the 7th of december"),
        Message("assistant", call=check),
        Message("user", NAME),
        Message("tool", restaurant.check_table(2, "the 7th of December", "7 o'clock"), call_id="c1"),
    )
    said = reply(desk, Prompt(messages, tuple(tool.spec for tool in FRONT_DESK.tools), agent=FRONT_DESK))
    assert said == ["On Mondays we are closed. For which day?"]
    state = reduce(desk.after, messages, FrontdeskState())
    assert state.values == {"people": "2", "time": "7 o'clock", "name": "Ann Brown"} and state.asked == "day"


@pytest.mark.parametrize(
    "result",
    ['{"problem": null}', '{"problem": false}', '{"problem": ""}', '{"problem": {"about": "day"}, "about": "day"}',
     '{"people": null, "day": true, "time": [], "name": {}}'],
)  # fmt: skip
def test_what_is_no_problem_and_no_detail(caller: Caller, result: str) -> None:
    assert caller.say("a table for two at seven on friday", result) == "What name may I put it under?"
    caller.says(NAME, PHONE, "yes")
    assert caller.called("book_table") == [BOOKED]


def test_a_check_fills_slots_with_texts_and_numbers(desk: FrontdeskDialogue) -> None:
    caller = Caller(desk)
    caller.say("i have to cancel my booking")
    said = caller.say(PHONE, '{"people": 4.0, "day": "Friday", "time": 7, "problem": null}')
    assert said == "That is a table for 4, Friday at 7. Shall I cancel it?"


def test_a_check_that_fails_stops_no_booking(caller: Caller) -> None:
    assert caller.say("a table for two at seven on friday", "Error: no connection") == FRONT_DESK.fallback
    caller.says(NAME, PHONE, "yes")
    assert caller.called("book_table") == [BOOKED]


def test_without_its_tools_it_asks_and_reads_back(desk: FrontdeskDialogue) -> None:
    caller = Caller(desk, ())
    assert asked_for(caller).endswith(RIGHT)
    assert caller.say("yes") == "Thank you."
    assert not caller.calls
