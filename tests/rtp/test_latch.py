"""Whose packets a call takes, and where its own go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp.latch import CONTINUES, STAYS, Latch

SAID = ("192.0.2.10", 4000)
NAT = "198.51.100.7"
"""The signalling came from there: the NAT in front of the phone."""
MAPPED, REMAPPED = (NAT, 31_000), (NAT, 32_000)
STRANGER = ("203.0.113.66", 4000)
SSRC = 7


def latch() -> Latch:
    return Latch(SAID, NAT)


def test_before_anything_is_heard_ours_go_where_the_sdp_says() -> None:
    assert latch().target == SAID


@pytest.mark.parametrize("source", [SAID, (SAID[0], 5000), MAPPED])
def test_the_first_acceptable_source_is_the_one(source: tuple[str, int]) -> None:
    media = latch()
    assert media.takes(source, SSRC, 1)
    assert media.target == source


def test_a_stranger_is_never_heard_not_even_first() -> None:
    media = latch()
    assert not media.acceptable(STRANGER)
    assert not media.takes(STRANGER, SSRC, 1)
    assert media.takes(MAPPED, SSRC, 1)
    assert not media.takes(STRANGER, SSRC, 2), "the stream's own numbers are no ticket"
    assert media.target == MAPPED


def test_somebody_else_behind_the_same_nat_does_not_take_over() -> None:
    media = latch()
    assert media.takes(MAPPED, SSRC, 1)
    assert not media.takes(REMAPPED, SSRC + 1, 2), "another stream"
    assert not media.takes(REMAPPED, SSRC, 1), "a packet that was heard"
    assert not media.takes(REMAPPED, SSRC, 2 + CONTINUES), "a guess"
    assert media.target == MAPPED


def test_a_nat_that_changes_its_mind_is_followed() -> None:
    media = latch()
    assert media.takes(MAPPED, SSRC, 65_535)
    assert media.takes(REMAPPED, SSRC, 3), "numbers wrap"
    assert media.target == REMAPPED
    assert not media.takes(MAPPED, SSRC, 2), "what was still on its way"


def test_the_source_that_the_sdp_names_wins_over_a_likely_one_and_stays() -> None:
    media = latch()
    assert media.takes(MAPPED, 99, 500)
    assert media.takes(SAID, SSRC, 1)
    assert media.target == SAID
    assert not media.takes(MAPPED, 99, 501)


def test_the_source_itself_may_begin_a_new_stream() -> None:
    media = latch()
    assert media.takes(SAID, SSRC, 1)
    assert media.takes(SAID, SSRC + 1, 40_000)
    assert media.ssrc == SSRC + 1


def test_a_new_description_names_a_new_source() -> None:
    media = latch()
    media.takes(SAID, SSRC, 1)
    moved = ("192.0.2.99", 6000)
    assert not media.takes(moved, SSRC + 1, 1)
    media.again(moved, NAT)
    assert media.target == moved
    assert not media.takes(SAID, SSRC, 2), "its address is not acceptable any more"
    assert media.takes(moved, SSRC + 1, 1)


def test_after_a_new_description_late_packets_do_not_keep_the_new_source_out() -> None:
    media = latch()
    media.takes(MAPPED, SSRC, 1)
    moved = (SAID[0], 6000)
    media.again(moved, NAT)
    assert media.takes(MAPPED, SSRC, 2), "what was on its way is heard"
    assert media.target == moved
    assert media.takes(REMAPPED, 99, 1)
    assert media.target == REMAPPED
    assert not media.takes(MAPPED, SSRC, 3)


def test_a_description_that_changes_nothing_keeps_where_ours_go() -> None:
    media = latch()
    media.takes(MAPPED, SSRC, 1)
    media.again(SAID, NAT)
    assert media.target == MAPPED
    assert not media.takes(REMAPPED, SSRC + 1, 1), "a refresh lets nobody in"
    assert media.takes(MAPPED, SSRC, 2)


def test_a_call_that_is_resumed_may_come_from_elsewhere() -> None:
    media = latch()
    media.takes(MAPPED, SSRC, 1)
    media.again(SAID, NAT, resumed=True)
    assert media.target == MAPPED and media.takes(MAPPED, SSRC, 2)
    assert media.takes(REMAPPED, SSRC + 1, 1)


def test_a_source_that_stays_after_a_new_description_is_the_one_again() -> None:
    media = latch()
    media.takes(MAPPED, SSRC, 0)
    media.again((SAID[0], 6000), NAT)
    for n in range(1, STAYS + 1):
        assert media.takes(MAPPED, SSRC, n)
    assert media.target == MAPPED
    assert not media.takes(REMAPPED, 99, 1)


def test_hold_by_an_empty_address_changes_nothing() -> None:
    media = latch()
    media.takes(MAPPED, SSRC, 1)
    media.again(("0.0.0.0", 4000), NAT)
    assert media.target == MAPPED and media.takes(MAPPED, SSRC, 2)


SOURCES = [SAID, MAPPED, REMAPPED, STRANGER, (SAID[0], 9), ("0.0.0.0", 0)]


@given(st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(0, 3), st.integers(0, 2**16 - 1), st.booleans())))
def test_whatever_comes_ours_never_go_to_a_stranger(told: list[tuple[tuple[str, int], int, int, bool]]) -> None:
    media = latch()
    for source, ssrc, seq, again in told:
        if again:
            media.again(SAID, NAT, resumed=seq % 2 == 0)
        assert not media.takes(source, ssrc, seq) or media.acceptable(source)
        assert media.acceptable(media.target)


def test_a_softphone_on_this_machine_may_send_from_loopback() -> None:
    media = Latch(SAID, SAID[0], here=True)
    assert media.takes(("127.0.0.1", 31_000), SSRC, 1) and media.target == ("127.0.0.1", 31_000)
    assert not media.takes(STRANGER, SSRC, 2)
    assert not Latch(SAID, SAID[0]).takes(("127.0.0.1", 31_000), SSRC, 1)


def test_on_one_machine_all_addresses_are_one() -> None:
    media = Latch(("127.0.0.1", 4000), "127.0.0.1")
    assert media.takes(("127.0.0.1", 4000), SSRC, 1)
    assert not media.takes(("127.0.0.1", 5000), SSRC + 1, 1)
    assert not media.takes(("127.0.0.2", 4000), SSRC, 2)
