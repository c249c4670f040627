"""Settling an utterance: which of the language model's answers count."""

import asyncio

import pytest

from voicepipe.audio import Pcm
from voicepipe.engines.base import Hypothesis
from voicepipe.turn.timing import TurnRecord
from voicepipe.utterance import Utterance

GUESS, FIRST_PASS, FINAL = "do you have a", "do you have a table", "do you have a cable"


class Stream:
    """Tells the words of its first pass before the final ones."""

    def __init__(self, final: str) -> None:
        self.utterance = Utterance("item", 0, 0, 0.0, self, TurnRecord("turn"))
        self._final = final

    def feed(self, pcm: Pcm) -> None: ...

    async def settle(self) -> Hypothesis:
        await asyncio.sleep(0.05)
        self.utterance.guess(FIRST_PASS)
        await asyncio.sleep(0.05)
        return Hypothesis(self._final)

    async def finish(self) -> Hypothesis:
        return await self.settle()

    def cancel(self) -> None: ...


@pytest.mark.parametrize(("final", "ends"), [(FIRST_PASS, 0.9), (FINAL, None)])
async def test_the_answer_about_the_latest_words_counts_and_about_others_none(final: str, ends: float | None) -> None:
    asked: list[str] = []

    async def reads(words: str) -> float | None:
        asked.append(words)
        await asyncio.sleep(0.01)
        return {GUESS: 0.1, FIRST_PASS: 0.9}[words]

    utterance = Stream(final).utterance
    utterance.guess(GUESS)
    evidence = await utterance.settle(reads)
    assert (evidence.text, evidence.reading) == (final, ends)
    assert asked == [GUESS, FIRST_PASS]
    utterance.guess(FINAL)
    await asyncio.sleep(0)
    assert asked == [GUESS, FIRST_PASS], "nobody waits for an answer any more"


async def test_words_that_come_while_the_answer_is_waited_for_do_not_take_it_back() -> None:
    utterance = Stream(FIRST_PASS).utterance

    async def reads(words: str) -> float | None:
        if words == FIRST_PASS:
            await asyncio.sleep(0.06)
            utterance.guess(FINAL)
        await asyncio.sleep(0.01)
        return 0.9

    utterance.guess(GUESS)
    assert (await utterance.settle(reads)).reading == 0.9
