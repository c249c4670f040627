"""The messages about editions between directories and PoPs, and their subjects on the bus.

Directories publish below `vp.fleet.`, which PoPs only hear; PoPs answer below `vp.pop.ID.`, where no other host may
publish.
"""

import msgspec

from voicepipe.directory.editions.edition import EditionId

HEADS = "vp.fleet.head"
"""Subject of `EditionAnnouncement`, from each directory once a second."""
EDITIONS = "vp.fleet.edition"
"""Subject of `edition.packed`: an edition that was pushed or requested."""
PROPOSALS = "vp.fleet.proposal"
"""Subject of `Proposal`."""
DIRECTORIES_WANT = "vp.fleet.wanted"
"""Subject of `EditionWanted`, from directories."""
DIRECTORIES_SAY = "vp.fleet.verdict"
"""Subject of `ProposalVerdict`, from directories."""
POPS_WANT = "vp.pop.*.wanted"
"""Subject of `EditionWanted`, from PoPs."""
POPS_SAY = "vp.pop.*.verdict"
"""Subject of `ProposalVerdict`, from PoPs."""
PROBLEM_LENGTH = 20_000
"""Characters of a verdict's problem at most."""


class EditionAnnouncement(msgspec.Struct, frozen=True):
    """Announces the newest edition that a directory has."""

    directory: str
    """The directory's id."""
    head: EditionId
    """Number 0: it has none."""


class Proposal(msgspec.Struct, frozen=True):
    """Asks all hosts whether they would take an edition that is about to be pushed. Each host reads it as on taking it
    over, and answers with a `ProposalVerdict`."""

    id: str
    edition: bytes
    """`edition.packed`; it travels as MessagePack, since JSON would be longer by a third."""


class ProposalVerdict(msgspec.Struct, frozen=True):
    """A host's answer to a `Proposal`."""

    id: str
    problem: str = ""
    """One line for each problem, which begins with the file; empty: the host would take the edition over."""
    directory: str = ""
    """The directory's id, if a directory answers."""


class EditionWanted(msgspec.Struct, frozen=True):
    """Requests an edition; a host that has it publishes it."""

    number: int
