"""Keys pressed: what ends a turn of them, and how it reads."""

import pytest

from voicepipe.turn.keypad import MOST, Keypad, as_digits

TABLE = {"1": "When are you open?", "2": "Where are you?", "21": "Is there parking?", "*9": "Repeat that."}


def pressed(keys: str, table: dict[str, str]) -> tuple[list[str], str]:
    """The turns that keys make without a pause, and the keys that then wait for one."""
    keypad = Keypad()
    turns = [keypad.take(table) for key in keys if keypad.press(key, table) and keypad.complete(table)]
    return turns, keypad.keys


@pytest.mark.parametrize(
    ("keys", "turns", "waiting"),
    [
        ("1", ["When are you open?"], ""),
        ("2", [], "2"),
        ("21", ["Is there parking?"], ""),
        ("2#", ["The caller pressed the key 2 on their telephone."], ""),
        ("22", [], "22"),
        ("*9", ["Repeat that."], ""),
        ("*", [], "*"),
        ("40#", ["The caller pressed the keys 4 0 on their telephone."], ""),
        ("1#1#", ["When are you open?"] * 2, ""),
        ("#", [], ""),
        ("##", [], ""),
        ("5" * (MOST + 1), [f"The caller pressed the keys {' '.join('5' * MOST)} on their telephone."], "5"),
    ],
)
def test_turns(keys: str, turns: list[str], waiting: str) -> None:
    assert pressed(keys, TABLE) == (turns, waiting)


def test_a_hash_that_the_table_knows_is_a_key_like_the_others() -> None:
    table = {"#": "Go back.", "#1": "Start again."}
    assert pressed("#", table) == ([], "#")
    assert pressed("#1", table) == (["Start again."], "")


def test_after_a_pause_an_entry_that_others_begin_with_means_what_it_says() -> None:
    keypad = Keypad()
    assert keypad.press("2", TABLE) and not keypad.complete(TABLE)
    assert keypad.take(TABLE) == "Where are you?"
    assert keypad.keys == ""


def test_keys_as_a_number() -> None:
    turns, _ = pressed("407#", {})
    assert as_digits(turns[0]) == "407"
    assert as_digits(f"it is {turns[0]} thanks") == "it is 407 thanks"
    assert as_digits("I pressed 4 0 7") == "I pressed 4 0 7"
