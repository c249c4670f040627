"""Menus that repeat themselves, as a recogniser writes them."""

from itertools import combinations, product

import pytest

from voicepipe.conversation.events import Item
from voicepipe.languages.en.as_said import as_said
from voicepipe.turn.menus import is_same_menu, why_not_to_press

ACME = [
    "Thank you for calling Acme. For sales, press 1. For service, press 2. For billing, press 3. To hear this again, "
    "press star.",
    "Thank you for calling ACME for sails, press one. For service press to. For billing press three. To hear this "
    "again press star.",
    "Sorry, that is not a valid choice. For sales press 1, for service press 2, for building, press 3. To here this "
    "again, press star.",
    "Thank you for calling Acme. For sales, press 1. For service, press 2.",
]
"""One menu: with a recogniser's errors, with another beginning, and cut short by a key."""
GERMAN = [
    "Für den Vertrieb drücken Sie die 1, für den Service drücken Sie die 2, für die Buchhaltung drücken Sie die 3.",
    "für den Vertrieb drücken sie die eins für den Service drücken Sie die zwei für die Buchhaltung drücken die drei",
]
OTHERS = [
    "For orders, press 1. For returns, press 2. For invoices, press 3. To go back, press star.",
    "For opening hours, press 1. For directions, press 2. For anything else, press 3. To hear this again, press star.",
    "Please enter your account number, followed by the pound key.",
    "Please enter your four digit PIN, followed by the pound key.",
    "Please enter your date of birth, followed by the pound key.",
    "For balances press 1. For transfers press 2. For lost cards press 3.",
    "Next message. Hello, this is the dentist to confirm your appointment on Friday at ten. To delete this message "
    "press 7. To save it press 9.",
    "Next message. Hey, it's Carol, the parcel has come and is with the neighbours. To delete this message press 7. To "
    "save it press 9.",
    "Für Rechnungen drücken Sie die 1, für Mahnungen drücken Sie die 2, für Verträge drücken Sie die 3.",
    "Thank you. Please hold while I connect you to the next available agent.",
]
"""Menus that follow one another in one call, built alike."""
REPEATED = "the menu has said the same 3 times"
UNANSWERED = "the other side has said nothing since the last keys"


def told(*heard: str, result: str = "sent") -> list[Item]:
    """A conversation in which the agent has pressed a key after each text but the last."""
    items: list[Item] = []
    for n, text in enumerate(heard):
        items += [Item(f"u{n}", text=text)] if text else []
        if n + 1 < len(heard):
            call = Item(f"c{n}", "function_call", "assistant", call_id=str(n), name="send_keys", arguments="{}")
            items += [call, Item(f"r{n}", "function_call_output", call_id=str(n), output=result)]
    return items


@pytest.mark.parametrize(("one", "other"), [*combinations(ACME, 2), tuple(GERMAN)])
def test_one_menu_that_was_heard_twice(one: str, other: str) -> None:
    assert is_same_menu(as_said(one), as_said(other)) and is_same_menu(as_said(other), as_said(one))


@pytest.mark.parametrize(("one", "other"), [*product(ACME[:3], OTHERS), *combinations(OTHERS, 2)])
def test_menus_that_are_only_built_alike(one: str, other: str) -> None:
    assert not is_same_menu(as_said(one), as_said(other))


def test_a_menu_is_left_the_third_time_that_it_is_heard() -> None:
    assert why_not_to_press(told(ACME[0])) == why_not_to_press(told(*ACME[:2])) == ""
    assert REPEATED in why_not_to_press(told(*ACME[:3]))


def test_other_menus_between_make_no_difference() -> None:
    assert REPEATED in why_not_to_press(told(ACME[0], OTHERS[2], ACME[1], OTHERS[3], ACME[2]))
    assert why_not_to_press(told(*OTHERS[:7])) == ""


def test_a_menu_that_comes_in_pieces_or_twice_at_a_time() -> None:
    begin, end = ACME[0][:60], ACME[0][60:]
    items = told(*ACME[:3])
    items[-1:] = [Item("a", text=begin), Item("b", text=end), Item("c", text=ACME[1])]
    assert REPEATED in why_not_to_press(items)


def test_a_menu_that_repeats_itself_while_no_keys_are_sent_is_listened_to() -> None:
    assert why_not_to_press([Item(str(n), text=ACME[0]) for n in range(5)]) == ""
    assert why_not_to_press(told(*ACME[:3], result="Error: not sent: interrupted")) == ""


@pytest.mark.parametrize("heard", ["yes", "Yes, please.", "okay go on", "what did you say"])
def test_a_person_who_says_the_same_again_is_no_menu(heard: str) -> None:
    assert why_not_to_press(told(*[heard] * 6)) == ""


def test_keys_after_keys_wait_for_the_other_side() -> None:
    assert why_not_to_press(told(ACME[0], "", "")) == ""
    assert UNANSWERED in why_not_to_press(told(ACME[0], "", "", ""))
    assert why_not_to_press(told(ACME[0], "", "", "thank you")) == ""
    assert why_not_to_press([]) == ""
