"""A scripted voice that streams."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.scripted import ScriptedTts
from voicepipe.engines.base import Speech, Word

STREAMED = 3840
"""Samples of a piece: 0.16 s."""


def stream(monkeypatch: pytest.MonkeyPatch, piece_s: float = 0.0) -> None:
    """The scripted voice streams; it takes so long for a piece."""
    whole = ScriptedTts.speak

    async def in_pieces(tts: ScriptedTts, text: str, **how: Any) -> AsyncIterator[Speech]:
        async for speech in whole(tts, text, **how):
            for at in range(0, speech.pcm.size, STREAMED):
                await asyncio.sleep(piece_s)
                end = min(at + STREAMED, speech.pcm.size)
                words = tuple(Word(word.text, word.end - at) for word in speech.words if at < word.end <= end)
                yield Speech(speech.pcm[at:end], words, more=end < speech.pcm.size)

    monkeypatch.setattr(ScriptedTts, "speak", in_pieces)
