"""What hosts tell each other of editions: by which subjects, and how large it is."""

import msgspec
import pytest

from voicepipe.directory.bus import matches
from voicepipe.directory.editions import messages
from voicepipe.directory.editions.edition import EditionId
from voicepipe.directory.editions.messages import EditionAnnouncement, Proposal, ProposalVerdict
from voicepipe.directory.subjects import of_pop, pop_of


@pytest.mark.parametrize("pop", ["fra", "fra-1", "a" * 60])
def test_a_pop_speaks_only_below_its_own_name(pop: str) -> None:
    for pattern, subject in (
        (messages.POPS_SAY, of_pop(messages.POPS_SAY, pop)),
        (messages.POPS_WANT, of_pop(messages.POPS_WANT, pop)),
    ):
        assert matches(pattern, subject) and subject.startswith(f"vp.pop.{pop}.") and pop_of(subject) == pop
    assert not matches(messages.POPS_SAY, of_pop(messages.POPS_WANT, pop))


@pytest.mark.parametrize("subject", [messages.HEADS, messages.EDITIONS, messages.PROPOSALS,
                                     messages.DIRECTORIES_WANT, messages.DIRECTORIES_SAY])  # fmt: skip
def test_directories_speak_where_pops_only_hear(subject: str) -> None:
    assert matches("vp.fleet.>", subject) and not matches("vp.pop.>", subject)


def test_the_newest_edition_has_a_greater_head() -> None:
    said = msgspec.json.encode(EditionAnnouncement("a", EditionId(12, "d1")))
    assert msgspec.json.decode(said, type=EditionAnnouncement) == EditionAnnouncement("a", EditionId(12, "d1"))
    assert EditionId(12, "d1") > EditionId(9, "d9") and EditionId(12, "d2") > EditionId(12, "d1")


def test_an_edition_travels_in_a_proposal_as_it_is() -> None:
    packed = bytes(range(256)) * 100
    sent = msgspec.msgpack.encode(Proposal("r1", packed))
    assert msgspec.msgpack.decode(sent, type=Proposal).edition == packed
    assert len(sent) < len(packed) + 100


def test_a_host_that_says_nothing_more_agrees() -> None:
    assert msgspec.json.decode(b'{"id": "r1"}', type=ProposalVerdict) == ProposalVerdict("r1", problem="", directory="")
