"""What directories and PoPs tell each other of editions, and on which subjects of the bus.

Directories publish below `vp.fleet.`, which PoPs only hear; PoPs answer below `vp.pop.ID.`, where no other host may
publish.
"""

import msgspec

from voicepipe.directory.editions.edition import Head

HEADS = "vp.fleet.head"
"""`Newest`, from each directory once a second."""
EDITIONS = "vp.fleet.edition"
"""`edition.packed`: one that was pushed, or that somebody asked for."""
PROPOSALS = "vp.fleet.proposal"
"""`Proposal`: would you take this?"""
DIRECTORIES_WANT = "vp.fleet.wanted"
"""`EditionWanted`, of a directory."""
DIRECTORIES_SAY = "vp.fleet.verdict"
"""`ProposalVerdict`, of a directory."""
POPS_WANT = "vp.pop.*.wanted"
"""`EditionWanted`."""
POPS_SAY = "vp.pop.*.verdict"
"""`ProposalVerdict`."""
PROBLEM_LENGTH = 20_000
"""Characters of a verdict's problem; more say nothing new."""


class Newest(msgspec.Struct, frozen=True):
    """The newest edition that a directory has."""

    directory: str
    """Its id."""
    head: Head
    """Number 0: it has none."""


class Proposal(msgspec.Struct, frozen=True):
    """What is about to be pushed. Whoever hears it reads it as they would on taking it over, and says what is wrong."""

    id: str
    edition: bytes
    """`edition.packed`; it travels as MessagePack, since JSON would make it longer by a third."""


class ProposalVerdict(msgspec.Struct, frozen=True):
    """On a proposal."""

    id: str
    problem: str = ""
    """One line for each problem, which begins with the file; empty: it would be taken over."""
    directory: str = ""
    """The directory's id, if it is one that speaks."""


class EditionWanted(msgspec.Struct, frozen=True):
    """An edition is asked for; who has it publishes it."""

    number: int


def wanted_by(pop: str) -> str:
    return f"vp.pop.{pop}.wanted"


def verdict_of(pop: str) -> str:
    return f"vp.pop.{pop}.verdict"
