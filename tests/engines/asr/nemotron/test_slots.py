"""Whose turn it is for the model's memory."""

from hypothesis import given
from hypothesis import strategies as st

from voicepipe.engines.asr.nemotron.slots import Slots


def test_calls_take_turns_for_slots_and_one_call_does_not_have_them_all() -> None:
    slots: Slots[str] = Slots(4)
    for who in ("a1", "a2", "a3", "a4", "a5", "b1", "b2"):
        slots.request(who, who[0])
        slots.request(who, who[0])
    assert [slots.next() for _ in range(5)] == [("a1", 0), ("b1", 1), ("a2", 2), ("b2", 3), None]
    slots.leave("b1")
    assert slots.next() is None, "a has two, and no more than a quarter is free"
    slots.leave("b2")
    assert slots.next() == ("a3", 3)
    assert (slots.in_use, slots.waiting) == (3, 2)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_a_slot_is_one_utterances(events: list[tuple[int, bool]]) -> None:
    slots: Slots[int] = Slots(3)
    here = set()
    for who, comes in events:
        if comes:
            slots.request(who, str(who % 3))
            here.add(who)
        else:
            slots.leave(who)
            slots.leave(who)
            here.discard(who)
        while slots.next() is not None:
            pass
        has = [slots._slots[who] for who in here if who in slots._slots]
        assert len(set(has)) == len(has) == slots.in_use <= 3
        assert slots.in_use + slots.waiting == len(here)
    for who in here:
        slots.leave(who)
    assert (slots.in_use, slots.waiting) == (0, 0) and not slots._has
