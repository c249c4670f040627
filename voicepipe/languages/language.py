"""What a language has here: the words by which its callers end their turns, its written forms, and an agent's texts.

One folder a language (`en/`, `de/`); `known.py` finds it by its tag.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from voicepipe.languages.written_form import Forms


class CompletenessRule(NamedTuple):
    """A rule by which a sentence does not end here, with the log-odds that it adds when it holds."""

    name: str
    """Why the turn is not over, in plain words."""
    holds: Callable[[list[str]], bool]
    """Whether it does, for the words of a turn as they were said."""
    log_odds: float


class AgentTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an agent says of itself in one language, where its file has nothing else. Keys as in `agent.Agent`, whose
    defaults are the English ones, but for those that are explained here (`agent_texts.py`)."""

    interrupt: tuple[str, ...]
    acknowledgement: str
    fallback: str
    no_input: tuple[str, ...]
    transfer_failed: str
    cannot_transfer: str
    not_understood: tuple[str, ...]
    denied: str
    """That of each intent (`agent.Intent`)."""
    opening: str
    """Said by the embedded language engine in place of a greeting, where the agent has none and a client asks for a
    reply before the caller has spoken."""
    no_model: str
    """Said by the embedded language engine for an agent without intents."""


@dataclass(frozen=True, slots=True)
class TurnWords:
    """What the words of one language say of whose turn it is. All functions are pure, and take words as a recogniser
    writes them; `said` and `words` are as `as_said` returns them."""

    as_said: Callable[[str, bool], str]
    """(text, dictated) -> the words that were said, in small letters, numbers in words, without marks. `dictated`: a
    telephone number or the like was asked for."""
    rules: Sequence[CompletenessRule]
    """What of these holds speaks against the turn's end; grammar."""
    ends: Callable[[str], float]
    """(said) -> the probability (0..1) that a turn ends after these words."""
    wants_digits: Callable[[str], bool]
    """(asked) -> the agent has asked for a telephone number or the like."""
    answers: Callable[[str, str], bool]
    """(text, asked) -> these few words may be all of an answer to what the agent has asked."""
    is_lone: Callable[[str], bool]
    """(text) -> a yes or a no without so much as a "please"."""
    is_stray: Callable[[str, str], bool]
    """(text, asked) -> a single word that is no answer to a question for a yes or a no."""
    asks_to_wait: Callable[[str], bool]
    """(text) -> "wait a moment" or the like, and nothing else."""
    is_digit: Callable[[str], bool]
    """(word) -> it is said for one digit of a number that is dictated."""
    warm: Callable[[], object] = lambda: None
    """Makes what `ends` needs, which takes up to a second the first time."""
    is_known: bool = True
    """Whether the language's words are known at all; otherwise the voice and the marks of sentences decide."""
    has_own_weights: bool = False
    """Whether it is measured for this language how much words, voice and full stop count beside each other."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language in which agents speak and callers are heard."""

    tag: str
    """BCP 47, the language alone: "de". Empty: every language without a folder of its own."""
    name: str
    """In English."""
    forms: Forms
    """Its written forms, and how each is said."""
    turn: TurnWords
    texts: AgentTexts | None = None
    """None: an agent has the English ones."""

    def as_said(self, text: str) -> str:
        """The words of `text` as they were said, however a recogniser wrote them: to compare them."""
        return self.turn.as_said(text, False)
