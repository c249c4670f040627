"""The words of one call as they may be kept. Words that were reported may have to change later: a number turns out to
be a card's, or not to be one."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from voicepipe.config.pop_config import RedactionConfig
from voicepipe.conversation.own_tools import SEND_KEYS
from voicepipe.observe.last_turns import FullTurn
from voicepipe.redaction.redactor import Redactor

MOST_OF_A_VALUE = 200
"""Characters that are kept of a value with which a call begins: lists of calls have them."""
NEWEST = 8
"""Newest turns that are kept whether or not their words may still change: the last one may yet be a cut-in."""


def redacted(redaction: RedactionConfig, values: Mapping[str, str]) -> dict[str, str]:
    """Values that a call begins with, such as its agent's variables, as they may be kept: each for itself, as words of
    the caller's that nothing follows, and its beginning alone."""
    kept: dict[str, str] = {}
    for name, value in values.items():
        redactor = Redactor[str](redaction)
        kept |= redactor.heard(name, value) | redactor.close()
    return {name: value[:MOST_OF_A_VALUE] for name, value in kept.items()}


class _TextPosition(NamedTuple):
    number: int
    """Number of the turn."""
    part: str
    """ "heard", "answered", "arguments" or "result"."""
    tool: int = 0


class RedactedWords:
    """Redacts the words of a call. Every turn and reply of the call passes through it, in order, before a follower gets
    it."""

    def __init__(self, redaction: RedactionConfig) -> None:
        self._redactor = Redactor[_TextPosition](redaction)
        self._fulls: dict[int, FullTurn] = {}
        """Turns as they are kept, by their number."""

    def of(self, full: FullTurn) -> tuple[FullTurn, list[FullTurn]]:
        """The turn as it may be kept now, and earlier ones whose words are others from now on."""
        number = full.number
        texts = self._redactor.heard(_TextPosition(number, "heard"), full.heard)
        for index, use in enumerate(full.tools):
            is_keys = use.name == SEND_KEYS
            texts |= self._redactor.tool(_TextPosition(number, "arguments", index), use.arguments, is_keys=is_keys)
            texts |= self._redactor.tool(_TextPosition(number, "result", index), use.result, is_keys=is_keys)
        texts |= self._redactor.said(_TextPosition(number, "answered"), full.answered)
        self._fulls[number] = full
        changed = {its.number: its for its in self._changed(texts)}
        self._forget()
        return changed.pop(number), list(changed.values())

    def cut_in(self, full: FullTurn) -> FullTurn:
        """The caller had not finished, as it turned out. `full`: the turn as it was last reported."""
        full = replace(full, turn=replace(full.turn, cut_in=True))
        if full.number in self._fulls:
            self._fulls[full.number] = full
        return full

    def close(self) -> list[FullTurn]:
        """The call is over: returns the earlier turns whose words are others now."""
        return self._changed(self._redactor.close())

    def _forget(self) -> None:
        may_change = {place.number for place in self._redactor.remembered()} | set(list(self._fulls)[-NEWEST:])
        if len(may_change) < len(self._fulls):
            self._fulls = {number: full for number, full in self._fulls.items() if number in may_change}

    def _changed(self, texts: dict[_TextPosition, str]) -> list[FullTurn]:
        for place, text in texts.items():
            if full := self._fulls.get(place.number):
                self._fulls[place.number] = _with(full, place, text)
        numbers: Iterable[int] = dict.fromkeys(place.number for place in texts)
        return [self._fulls[number] for number in numbers if number in self._fulls]


def _with(full: FullTurn, place: _TextPosition, text: str) -> FullTurn:
    if place.part in ("heard", "answered"):
        return replace(full, **{place.part: text})
    tools = list(full.tools)
    tools[place.tool] = replace(tools[place.tool], **{place.part: text})
    return replace(full, tools=tuple(tools))
