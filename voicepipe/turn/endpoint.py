"""How long must the caller be silent before the turn is no longer theirs? It depends on what they said.

Evidence is weighed in log-odds that the turn is complete: what grammar says of the words (`completeness.py`), how
likely the recogniser's language model finds a sentence's end after them, whether the voice fell (`pitch.py`), and,
where there is one, what a turn model that heard the voice says, and what the language model that answers says. A pause
after "my number is" is waited out; "what are your opening hours" is answered at once. Words that answer what the agent
has asked (`answers.py`) are complete, however little they are.
"""

import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from voicepipe.ranges import Ms, Probability
from voicepipe.turn.answers import answers, asks_to_wait, is_lone, is_stray
from voicepipe.turn.completeness import RULES, TRAILING, TRAILS_OFF
from voicepipe.words import plain

Eagerness = Literal["low", "medium", "high", "auto"]
PATIENCE: dict[Eagerness, float] = {"low": 2.0, "medium": 1.0, "auto": 1.0, "high": 0.6}
"""Scales the waits for turns that are not surely complete."""


class EndpointConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    sure_ms: Ms = 140
    """Required silence when the turn is surely complete."""
    answer_ms: Ms = 240
    """The same of a few words that answer what the agent asked. Never less than `sure_ms`."""
    yes_ms: Ms = 320
    """The same of a lone yes or no: "but ..." may follow, behind a pause of its own. Never less than `answer_ms`. Also
    of "wait a moment", behind which "please" may follow, and to which nobody waits for an answer, and of one word after
    a question that wants a yes or a no: it may be a misheard one."""
    unsure_ms: Ms = 850
    """Hesitations inside a phrase mostly last 300 to 700 ms."""
    unfinished_ms: Ms = 950
    """Longer than people hesitate inside a phrase, short enough for those who will not go on."""
    sure_probability: Probability = 0.75
    """From this probability on that the turn is complete it is surely so."""
    unfinished_probability: Probability = 0.4
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
        self._patience = PATIENCE[eagerness]

    def probability(self, evidence: Evidence) -> tuple[float, str]:
        """Probability in 0..1 that the turn is complete, and what speaks against it most."""
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
        return 1 / (1 + math.exp(-odds)), reason

    def may_end(self, text: str, asked: str = "") -> bool:
        """Nothing in the words speaks so much against their end that preparing a reply to them would be a waste."""
        return self.probability(Evidence(text, asked=asked))[0] > self.config.unfinished_probability

    def judge(self, evidence: Evidence) -> Verdict:
        """The silence that these words require."""
        config = self.config
        if not evidence.text:
            return Verdict(config.unsure_ms * self._patience, False, "no words")
        probability, reason = self.probability(evidence)
        if probability >= config.sure_probability and answers(evidence.text, evidence.asked):
            yes_ms = config.yes_ms if is_lone(evidence.text) else 0.0
            required_ms = max(config.sure_ms, config.answer_ms, yes_ms)
            return Verdict(required_ms, True, "it answers what was asked")
        if probability >= config.sure_probability and asks_to_wait(evidence.text):
            return Verdict(max(config.sure_ms, config.yes_ms), True, "it asks to wait")
        if probability >= config.sure_probability and is_stray(evidence.text, evidence.asked):
            return Verdict(max(config.sure_ms, config.yes_ms), True, "one word, which is no yes and no no")
        if probability >= config.sure_probability:
            return Verdict(config.sure_ms, True, "the sentence is complete")
        if probability > config.unfinished_probability:
            return Verdict(config.unsure_ms * self._patience, False, reason or "the sentence may go on")
        return Verdict(config.unfinished_ms * self._patience, False, reason or "sentences seldom end here")


class FixedSilence(Endpointer):
    """The client says how much silence ends a turn, whatever the words are."""

    def __init__(self, config: EndpointConfig, silence_ms: float) -> None:
        super().__init__(config)
        self._silence_ms = silence_ms

    def judge(self, evidence: Evidence) -> Verdict:
        return Verdict(self._silence_ms, confident=False, reason="as the client set it")
