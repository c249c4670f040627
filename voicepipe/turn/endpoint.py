"""How long must the caller be silent before the turn is no longer theirs? It depends on what they said.

Evidence is weighed in log-odds that the turn is complete: what the words say by the rules of their language
(`languages/`: what callers' sentences teach, and grammar), whether the recogniser would write a full stop
behind them, whether the voice fell (`pitch.py`), and, where there is one, what a turn model that heard the voice says.
How long to wait follows by degrees (`wait_times.py`): a pause after "my number is" is waited out, "what are your
opening hours" is answered at once, and what may be either waits for a moment. Words that answer what the agent has
asked are complete, however little they are. Of a language whose words are not known, the voice and the marks decide.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from voicepipe.base import odds
from voicepipe.base.punctuation import latin
from voicepipe.base.ranges import Ms, Spread, Wait
from voicepipe.languages.known import language_of
from voicepipe.languages.language import CompletenessRule, TurnWords
from voicepipe.turn.wait_times import Pauses, WaitTimes

Eagerness = Literal["low", "medium", "high", "auto"]
ENGLISH = language_of("en").turn
PATIENCE: dict[Eagerness, float] = {"low": 2.0, "medium": 1.0, "auto": 1.0, "high": 0.6}
"""Waits are so many times as long as with "auto", but for the shortest."""
TRAILING = ("...", "…", "-", "–", "—")
"""What a recogniser that writes punctuation ends with where more is to come: Whisper tiny.en at 27 of 186 pauses inside
turns, and at the end of 5 of 277. A comma it writes at 4 such pauses, and behind 9 of 50 short answers ("7,")."""
TRAILS_OFF = CompletenessRule("its punctuation leaves it open", lambda words: True, -5.0)
"""The rule for words that end in one of TRAILING, and for a lone "Yes,"."""
SURE = 0.75
"""From this probability on that the turn is complete it is surely so."""
UNFINISHED = 0.4
"""Up to this probability that the turn is complete, more is to come."""


class EndpointConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How long the caller must be silent before a turn ends (`[endpoint]`). Times are in ms."""

    sure_ms: Ms = 140
    """The shortest wait: required silence when nothing speaks against the turn's end."""
    answer_ms: Ms = 240
    """The shortest wait after a few words that answer what the agent asked. Never less than `sure_ms`."""
    yes_ms: Ms = 320
    """The shortest wait after a lone yes or no: "but ..." may follow, behind a pause of its own. Also after "wait a
    moment": "please" may follow, and nobody waits for an answer to it. Also after one word that answers a question
    for a yes or a no: it may be a misheard one."""
    longest_ms: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1350
    """The longest wait: few hesitate for longer inside a phrase, and who will not go on is answered."""
    cut_in_ms: Wait = 950
    """To interrupt a caller who goes on is as bad as to let one wait for so much longer who has finished."""
    hesitation_ms: Wait = 450
    """Half of the hesitations inside a phrase last longer."""
    hesitation_spread: Spread = 0.6
    """Standard deviation of their natural logarithm: one in eleven lasts longer than a second."""
    model: str = "smart-turn-v3.2"
    """One that `models pull` knows, or the path of a Smart Turn v3 ONNX file; empty: words and melody alone."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about whether the turn is complete, when the caller falls silent."""

    text: str
    """Words of the turn so far, as recognised: mistakes and all, with punctuation if the recogniser writes it."""
    pitch: float = 0.0
    """Log-odds that the turn is complete, by the fall of the voice (`pitch.Pitch.log_odds`)."""
    voice: float | None = None
    """Probability that the turn is complete, by a turn model that heard the voice."""
    full_stop: float | None = None
    """Probability that a sentence ends after them, by the mark that the recogniser would write
    (`engines.base.Hypothesis.full_stop`)."""
    asked: str = ""
    """What the agent has said since the caller spoke last."""


@dataclass(frozen=True, slots=True)
class EndpointVerdict:
    """The silence that ends a turn, and why."""

    required_ms: float
    confident: bool
    """Whether the turn is surely complete."""
    reason: str
    """Why so long, in plain words."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each kind of evidence counts, in log-odds that the turn is complete."""

    offset: float
    """Added whatever the evidence is: what a silence of 60 ms says by itself."""
    words: float
    """Factor of the log-odds that a turn ends after these words (`TurnWords.ends`, which knows grammar)."""
    pitch: float
    voice: float = 0.0
    """Factor of the turn model's log-odds."""
    trails: float = -5.0
    """Added for words whose punctuation leaves them open."""
    full_stop: float = 0.0
    """Factor of the log-odds of a full stop, where one is likely ..."""
    no_full_stop: float = 0.0
    """... and where none is: a short answer often has none either."""


AS_READ, AS_READ_AND_HEARD = Weights(2.8, 1.3, 1.0), Weights(0.46, 0.72, 0.26, 0.49, trails=-3.0)
"""Weights for a text that is taken for what was said. The first are for true words, the second beside a turn model: a
recogniser mishears the end of a sentence that breaks off."""
WITH_FULL_STOP = Weights(-0.6, 0.55, 0.3, trails=0.0, full_stop=1.1, no_full_stop=0.55)
WITH_FULL_STOP_AND_HEARD = Weights(-0.9, 0.55, 0.3, 0.4, trails=0.0, full_stop=1.05, no_full_stop=0.4)
"""Weights where the recogniser says how likely a full stop is, without and with a turn model. Logistic regressions on
silences of natural voices' development sentences and of people's prompts, as Whisper tiny.en reads them
("Whisper tells how likely a full stop is", `README.md`)."""
BY_PEOPLE = Weights(-2.6, 0.3, 1.0, 0.25, trails=0.0, full_stop=0.7, no_full_stop=0.5)
"""Weights where the recogniser says how likely a full stop is, for every language but English, with or without known
words, and with or without a turn model: without one it was not measured. Set with people's prompts in four languages,
as Whisper base reads them ("Other languages are weighed by people's prompts", `README.md`)."""
UNREAD = Weights(-1.0, 0.0, 0.3, 0.6, trails=-3.0)
"""Weights for a language of whose words nothing is known, where there is no such recogniser: the voice decides."""
ANSWERS, OPEN_ANSWER = 2.4, -3.0
"""Words that answer what the agent asked are complete. Nothing else knows the question, so nothing else counts, but a
mark that leaves them open: "Yes, ..."."""
GROWTH = 1.5
"""Few notice 100 ms more, and everybody a second."""
FULL_STOP_LEAST, FULL_STOP_MOST = 0.06, 0.999
"""The probability of a full stop is taken no nearer to 0 and 1."""
SURE_OF_VOICE = 0.98
"""A turn model's probability is taken no nearer to 0 or 1: it must not outvote everything else."""


def _said(evidence: Evidence, turn: TurnWords) -> str:
    return turn.as_said(evidence.text, turn.wants_digits(evidence.asked))


def weights_of(evidence: Evidence, turn: TurnWords = ENGLISH) -> Weights:
    """The weights for the evidence that there is."""
    if evidence.full_stop is None:
        if not turn.is_known:
            return UNREAD
        return AS_READ if evidence.voice is None else AS_READ_AND_HEARD
    if not turn.has_own_weights:
        return BY_PEOPLE
    return WITH_FULL_STOP if evidence.voice is None else WITH_FULL_STOP_AND_HEARD


def words_log_odds(evidence: Evidence, turn: TurnWords = ENGLISH) -> float:
    """What the words say of the turn's end, and the mark behind them; the question that they answer aside."""
    weights = weights_of(evidence, turn)
    words = weights.words * odds.log_odds(turn.ends(_said(evidence, turn)))
    return weights.offset + words + full_stop_log_odds(evidence, turn)


def full_stop_log_odds(evidence: Evidence, turn: TurnWords = ENGLISH) -> float:
    """What the recogniser says of the turn's end by the mark behind the last word."""
    if evidence.full_stop is None:
        return 0.0
    weights = weights_of(evidence, turn)
    likely = odds.log_odds(min(FULL_STOP_MOST, max(FULL_STOP_LEAST, evidence.full_stop)))
    return likely * (weights.full_stop if likely > 0 else weights.no_full_stop)


def voice_log_odds(evidence: Evidence, turn: TurnWords = ENGLISH) -> float:
    """What the melody and the turn model say of the turn's end."""
    weights = weights_of(evidence, turn)
    heard = 0.0 if evidence.voice is None else odds.log_odds(evidence.voice, 1 - SURE_OF_VOICE)
    return weights.pitch * evidence.pitch + weights.voice * heard


class Endpointer:
    """Judges how long a silence must be before the caller's turn is over. It has no state between calls of its methods;
    each phone call has one, since clients choose the eagerness. `turn`: the words of the language that callers speak.
    """

    def __init__(self, config: EndpointConfig, eagerness: Eagerness = "auto", turn: TurnWords = ENGLISH) -> None:
        self.config, self._turn = config, turn
        self._patience = PATIENCE[eagerness]
        pauses = Pauses(config.hesitation_ms, config.hesitation_spread)
        self._waits = WaitTimes(config.sure_ms, config.longest_ms, config.cut_in_ms, GROWTH, pauses)

    def log_odds(self, evidence: Evidence) -> tuple[float, str]:
        """The log-odds that the turn is complete, and what speaks against it most."""
        turn = self._turn
        words, answer = _said(evidence, turn).split(), turn.answers(evidence.text, evidence.asked)
        against = [rule for rule in turn.rules if words and not answer and rule.holds(words)]
        said = ANSWERS if answer else words_log_odds(evidence, turn)
        last = latin(evidence.text[-1:])
        if evidence.text.endswith(TRAILING) or last in TRAILING or (last == "," and turn.is_lone(evidence.text)):
            against.append(TRAILS_OFF)
            said += OPEN_ANSWER if answer else weights_of(evidence, turn).trails
        reason = min(against, key=lambda rule: rule.log_odds).name if against else ""
        return said + voice_log_odds(evidence, turn), reason

    def probability(self, evidence: Evidence) -> float:
        """The probability (0..1) that the turn is complete."""
        return odds.probability(self.log_odds(evidence)[0])

    def may_end(self, text: str, asked: str = "") -> bool:
        """Whether the words may be all. If not, to prepare a reply to them would be a waste."""
        return self.probability(Evidence(text, asked=asked)) > UNFINISHED

    def judge(self, evidence: Evidence) -> EndpointVerdict:
        """The silence that these words require."""
        if not evidence.text:
            return EndpointVerdict(self._patient(self._waits.longest_ms), False, "no words")
        complete, against = self.log_odds(evidence)
        least_ms, reason = self._complete(evidence)
        wait_ms = max(least_ms, self._patient(self._waits.ms(complete)))
        probability = odds.probability(complete)
        if probability >= SURE:
            return EndpointVerdict(wait_ms, True, reason)
        unclear = "the sentence may go on" if probability > UNFINISHED else "sentences seldom end here"
        return EndpointVerdict(wait_ms, False, against or unclear)

    def _patient(self, wait_ms: float) -> float:
        """`wait_ms` scaled by the client's eagerness. The shortest wait is the same for all."""
        shortest_ms = self.config.sure_ms
        return max(shortest_ms, self._patience * wait_ms) if wait_ms > shortest_ms else wait_ms

    def _complete(self, evidence: Evidence) -> tuple[float, str]:
        """The least wait for words that are complete, and why they are."""
        config, turn = self.config, self._turn
        yes_ms = max(config.answer_ms, config.yes_ms)
        if turn.answers(evidence.text, evidence.asked):
            return yes_ms if turn.is_lone(evidence.text) else config.answer_ms, "it answers what was asked"
        if turn.asks_to_wait(evidence.text):
            return config.yes_ms, "it asks to wait"
        if turn.is_stray(evidence.text, evidence.asked):
            return config.yes_ms, "one word, which is no yes and no no"
        return config.sure_ms, "the sentence is complete"


class FixedSilence(Endpointer):
    """An endpointer for clients that set the silence which ends a turn: the words do not matter."""

    def __init__(self, config: EndpointConfig, silence_ms: float) -> None:
        super().__init__(config)
        self._silence_ms = silence_ms

    def judge(self, evidence: Evidence) -> EndpointVerdict:
        return EndpointVerdict(self._silence_ms, confident=False, reason="as the client set it")
