"""How long must the caller be silent before the turn is no longer theirs? It depends on what they said.

Evidence is weighed in log-odds that the turn is complete: what grammar says of the words (`completeness.py`), how
likely the recogniser's language model finds a sentence's end after them, whether the voice fell (`pitch.py`), and,
where there is one, what a turn model that heard the voice says, and what the language model that answers says. How long
to wait follows by degrees (`waiting.py`): a pause after "my number is" is waited out, "what are your opening hours" is
answered at once, and what may be either waits for a moment. Words that answer what the agent has asked (`answers.py`)
are complete, however little they are.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from voicepipe.ranges import Ms, Spread, Wait
from voicepipe.turn.answers import answers, asks_to_wait, is_lone, is_stray
from voicepipe.turn.completeness import RULES, TRAILING, TRAILS_OFF
from voicepipe.turn.waiting import Pauses, Waits
from voicepipe.words import plain

Eagerness = Literal["low", "medium", "high", "auto"]
PATIENCE: dict[Eagerness, float] = {"low": 2.0, "medium": 1.0, "auto": 1.0, "high": 0.6}
"""So many times as long as `auto` expects people to hesitate, and would rather wait than interrupt them."""
SURE = 0.75
"""From this probability on that the turn is complete it is surely so."""
UNFINISHED = 0.4
"""Up to this one more is to come."""


class EndpointConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    sure_ms: Ms = 140
    """The shortest wait: required silence when nothing speaks against the turn's end."""
    answer_ms: Ms = 240
    """The same of a few words that answer what the agent asked. Never less than `sure_ms`."""
    yes_ms: Ms = 320
    """The same of a lone yes or no: "but ..." may follow, behind a pause of its own. Also of "wait a moment", behind
    which "please" may follow, and to which nobody waits for an answer, and of one word after a question that wants a
    yes or a no: it may be a misheard one."""
    longest_ms: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1350
    """The longest wait: few hesitate for longer inside a phrase, and who will not go on is answered."""
    cut_in_ms: Wait = 1100
    """To interrupt a caller who goes on is as bad as to let one wait for so much longer who has finished."""
    hesitation_ms: Wait = 450
    """Half of the hesitations inside a phrase last longer."""
    hesitation_spread: Spread = 0.6
    """Standard deviation of their natural logarithm: one in eleven lasts longer than a second."""
    model: str = ""
    """Path of a Smart Turn v3 ONNX file, which is asked too; empty: words and melody alone."""
    ask_llm: bool = False
    """Experiment: the language model is asked, too, how likely the turn ends after its words. Only `vllm` can tell."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known in a silence."""

    text: str
    """Words of the turn so far, as recognised: mistakes and all, with punctuation if the recogniser writes it."""
    end_logprob: float | None = None
    """log10 probability of a sentence's end after them, by the recogniser (`engines.base.Hypothesis.end_logprob`)."""
    pitch: float = 0.0
    """Log-odds that the turn is complete, by the fall of the voice (`pitch.Pitch.log_odds`)."""
    voice: float | None = None
    """Probability that the turn is complete, by a turn model that heard the voice."""
    reading: float | None = None
    """Probability that the turn ends after its words, by the language model that answers (`engines.base.Reader`)."""
    asked: str = ""
    """What the agent has said since the caller spoke last."""


@dataclass(frozen=True, slots=True)
class Verdict:
    required_ms: float
    confident: bool
    """The turn is surely complete."""
    reason: str
    """In plain words."""


PRIOR = 0.9
"""Log-odds that a silence of 60 ms after speech is the turn's end, before anything else is known."""
NGRAM_MIDDLE, NGRAM_SLOPE, NGRAM_LIMIT = -1.25, 1.75, 5.0
"""An end of sentence with log10 probability -1.25 says nothing; each tenfold more or less says 1.75, at most 5."""
WITHOUT_NGRAM = 1.2
"""Words that no rule speaks against are mostly whole sentences."""
ANSWERS = 1.5
"""Words that answer what the agent asked are complete. Grammar and n-gram do not know the question, and have no say."""
GRAMMAR_BESIDE_NGRAM = 0.2
"""An n-gram that weighs all likely readings of the sound knows most of what grammar says of one of them."""
READING_MIDDLE, READING_SLOPE, READING_LIMIT = -0.85, 1.2, 3.0
"""The same of the language model that answers, fitted to the tests' nano LLM (tests/models/fit_ends.py)."""
SURE_OF_VOICE = 0.98
"""A turn model's probability is taken no nearer to 0 or 1: it must not outvote everything else."""


def ngram_log_odds(evidence: Evidence) -> float:
    """What the recogniser's language model says."""
    if evidence.end_logprob is None:
        return WITHOUT_NGRAM
    return max(-NGRAM_LIMIT, min(NGRAM_LIMIT, NGRAM_SLOPE * (evidence.end_logprob - NGRAM_MIDDLE)))


def voice_log_odds(evidence: Evidence) -> float:
    """What the turn model says, which has heard the melody too; without one, the melody alone."""
    if evidence.voice is None:
        return evidence.pitch
    probability = max(1 - SURE_OF_VOICE, min(SURE_OF_VOICE, evidence.voice))
    return math.log(probability / (1 - probability))


def reading_log_odds(evidence: Evidence) -> float:
    """What the language model says that answers."""
    if evidence.reading is None:
        return 0.0
    logprob = math.log10(max(evidence.reading, 1e-9))
    return max(-READING_LIMIT, min(READING_LIMIT, READING_SLOPE * (logprob - READING_MIDDLE)))


class Endpointer:
    """Stateless; one for each call, since clients choose how eager theirs is."""

    def __init__(self, config: EndpointConfig, eagerness: Eagerness = "auto") -> None:
        self.config = config
        patience = PATIENCE[eagerness]
        pauses = Pauses(config.hesitation_ms * patience, config.hesitation_spread)
        longest_ms = max(config.sure_ms, config.longest_ms * patience)
        self._waits = Waits(config.sure_ms, longest_ms, config.cut_in_ms * patience, pauses)

    def log_odds(self, evidence: Evidence) -> tuple[float, str]:
        """That the turn is complete, and what speaks against it most."""
        words, answer = plain(evidence.text).split(), answers(evidence.text, evidence.asked)
        against = [rule for rule in RULES if words and not answer and rule.holds(words)]
        if evidence.text.endswith(TRAILING):
            against.append(TRAILS_OFF)
        grammar = sum(rule.log_odds for rule in against)
        if evidence.end_logprob is not None and not answer:
            grammar *= GRAMMAR_BESIDE_NGRAM
        ending = ANSWERS if answer else ngram_log_odds(evidence)
        odds = PRIOR + grammar + ending + voice_log_odds(evidence) + reading_log_odds(evidence)
        reason = min(against, key=lambda rule: rule.log_odds).name if against else ""
        return odds, reason

    def probability(self, evidence: Evidence) -> float:
        """In 0..1, that the turn is complete."""
        return 1 / (1 + math.exp(-self.log_odds(evidence)[0]))

    def may_end(self, text: str, asked: str = "") -> bool:
        """Nothing in the words speaks so much against their end that preparing a reply to them would be a waste."""
        return self.probability(Evidence(text, asked=asked)) > UNFINISHED

    def judge(self, evidence: Evidence) -> Verdict:
        """The silence that these words require."""
        if not evidence.text:
            return Verdict(self._waits.longest_ms, False, "no words")
        odds, against = self.log_odds(evidence)
        wait_ms = self._waits.ms(odds)
        probability = 1 / (1 + math.exp(-odds))
        if probability < SURE:
            unclear = "the sentence may go on" if probability > UNFINISHED else "sentences seldom end here"
            return Verdict(wait_ms, False, against or unclear)
        least_ms, reason = self._complete(evidence)
        return Verdict(max(wait_ms, least_ms), True, reason)

    def _complete(self, evidence: Evidence) -> tuple[float, str]:
        """The least wait for words that are complete, and why they are."""
        config = self.config
        yes_ms = max(config.answer_ms, config.yes_ms)
        if answers(evidence.text, evidence.asked):
            return yes_ms if is_lone(evidence.text) else config.answer_ms, "it answers what was asked"
        if asks_to_wait(evidence.text):
            return config.yes_ms, "it asks to wait"
        if is_stray(evidence.text, evidence.asked):
            return config.yes_ms, "one word, which is no yes and no no"
        return config.sure_ms, "the sentence is complete"


class FixedSilence(Endpointer):
    """The client says how much silence ends a turn, whatever the words are."""

    def __init__(self, config: EndpointConfig, silence_ms: float) -> None:
        super().__init__(config)
        self._silence_ms = silence_ms

    def judge(self, evidence: Evidence) -> Verdict:
        return Verdict(self._silence_ms, confident=False, reason="as the client set it")
