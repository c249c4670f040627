"""What one reply tells the caller of tools."""

from collections.abc import Iterable

from voicepipe.call.errands import Errand, Errands


class Telling:
    """Which results ONE reply tells, and how much of that the caller has heard.

    The model answers once more after each of its calls of tools. An answer that ends in such calls tells nothing: "Let
    me see" comes before what there is to tell.
    """

    def __init__(self, errands: Errands) -> None:
        self.knows: list[Errand] = []
        """The untold tools whose results stand in the prompt, or have come since; a reply beside the conversation tells
        the caller of none."""
        self.answer = 0
        """The number of the model's answer that is made."""
        self._errands = errands
        self._began: dict[Errand, int] = {}
        """How many sentences were said before the first that tells of it."""
        self._ends: list[int] = []
        """The sample of the reply at which each sentence was heard."""

    def says(self, answer: int, ends: Iterable[int]) -> None:
        """Words of the model's answer of that number begin to be heard; sentences end at these samples."""
        if answer == self.answer:
            new = [errand for errand in self.knows if errand not in self._began]
            self._began |= dict.fromkeys(new, len(self._ends))
            self._errands.told(new)
            self._ends += ends

    def calls_tools(self) -> None:
        """The answer that was made so far ends in calls of tools."""
        self.answer += 1
        self._errands.taken_back(self._began)
        self._began.clear()

    def broke_off(self, heard: int) -> list[Errand]:
        """The caller heard `heard` samples of the reply: results of which that holds no whole sentence were not told.
        Returns these."""
        missed = [errand for errand, before in self._began.items() if all(end > heard for end in self._ends[before:])]
        self._errands.taken_back(missed)
        return missed
