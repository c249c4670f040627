"""What may be kept of a call's words: card numbers and pressed keys are taken out before anything is kept. Pure.

A number may go on in the speaker's next utterance. What may be the beginning of a card number is therefore masked at
once, and shown as it was when it turns out to be harmless: a crash leaves the mask.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import regex

from voicepipe.config.pop_config import USUAL, RedactionConfig
from voicepipe.conversation.events import TOOL_CHARS
from voicepipe.redaction import card_numbers
from voicepipe.redaction.card_numbers import is_right, joined
from voicepipe.redaction.maskable_text import MaskableText, TextPart, json_or_plain, plain, presses, split
from voicepipe.redaction.number_words import ASKED, CODES
from voicepipe.redaction.numbers_read import Gap, Number, NumbersReading, read
from voicepipe.turn.keypad import MOST as MOST_KEYS
from voicepipe.turn.keypad import PRESSED

CARD, OPEN, KEYS, OWN = "[card]", "[digits]", "[keys]", "[redacted]"
"""The masks of card numbers and their codes; of numbers that may become one; of keys; of matches of the operator's
patterns."""
KEYS_MESSAGE = f"The caller pressed keys on their telephone: {KEYS}."
STRENGTH = {"": 0, OPEN: 1, KEYS: 2, CARD: 2}

PATTERN_S = 0.05
"""Seconds on the event loop that an operator's pattern may take for a text."""
OPEN_FROM = 3
"""Digits of a number from which on it is masked while it may become more."""
PART = 7
"""Digits of a part that is masked where the talk was of a card, even if no more of them come."""
PATIENCE, PATIENCE_IN_TALK = 2, 4
"""Utterances of other words after which a number does not go on; and while the talk is of cards."""
TALK_LASTS, DIGITS_LAST = 12, 6
"""Texts after which talk of cards is forgotten: of other words; of digits that the caller says meanwhile."""
NEAR, NEAR_NUMBER = 2, 6
"""Texts in which an incomplete number may be a card's: the one that mentions cards and the next; more where it mentions
a card's number."""
CODES_IN = 2
"""Utterances after a card number in which short numbers are its expiry date and its code."""
CODE = (3, 9)
"""Digits of a code, and of a date with a code."""
CARD_GRAM, KEYS_GRAM = 5, 4
"""Digits in a row by which a card number, or keys, are recognised when they are repeated. A card's last four are not
enough."""
MOST_OPEN = 60
"""Numbers in progress that are kept."""
REMEMBERED, REMEMBERED_DIGITS = 300, 4000
"""Texts with numbers that may still change, and digits in them; older ones stay as they are."""

CODE_NAMES = re.compile(r"(?i)cv[cvn]\d?$|csc$|security.?code|card.?code|expir|\bexp\b|exp_|valid.?(?:to|thru|until)")
CARD_NUMBER = re.compile(r"(?i)n[uú]m(?:b?er|éro)|nummer|digits|ziffern")
"""Words beside talk of cards that announce their numbers."""
CARD_NAMES = re.compile(r"(?i)card(?:.?n(?:um|r|o)|$|\.)|\bpan$|\bcc.?n(?:um|r|o)")
KNOWN_NAMES = re.compile(
    r"(?i)phone|mobile|fax|booking|reserv|order|ticket|zip|postal|postcode|date|time|birth|guest|people|price|amount|total"
)
"""Names in a tool's JSON whose values are a card's expiry date or code; a card number; something else."""
NO_CARD = re.compile(r"1\d{12}|-.*|(?!\d{13,}\.0+$).*[.eE].*")
"""Numbers of JSON that are no card's: a time in ms, and decimals."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _SpeakerNumbers:
    """The numbers in progress of one speaker."""

    chain: list[Number] = field(default_factory=list)
    """Numbers that may be parts of one number, and may go on."""
    gap: Gap = Gap.CLOSE
    """The gap since then."""
    idle: int = 0
    """Utterances since then."""
    codes: int = -1
    """Utterances that may still contain the codes of a card; negative: none may."""
    asked: bool = False
    """The agent has asked for a number that is no card's."""
    card: bool = False
    """The text of the chain mentions a card."""
    last: str = ""
    """The digits of the last utterance that had any."""


class _FoundSecrets:
    """Secrets that are masked wherever they are repeated."""

    def __init__(self) -> None:
        self._whole: dict[str, str] = {}
        """Masks by numbers that show a secret only where nothing stands beside them."""
        self._grams: dict[str, str] = {}
        """Masks by digits that show a secret anywhere."""
        self.has_card = False
        self.are_new = False
        """Earlier texts have not been searched for them."""

    def card(self, digits: str) -> None:
        self.has_card = True
        last = digits[-4:]
        fours = [digits[at : at + 4] for at in range(len(digits) - 4)]
        self._learn(self._whole, [four for four in fours if four != last], CARD)
        self._learn(self._grams, _grams(digits, CARD_GRAM), CARD)

    def code(self, digits: str) -> None:
        self._learn(self._whole, [digits], CARD)

    def keys(self, digits: str, pressed: str) -> None:
        """The keys of a turn, alone and with those of the turns before."""
        if len(digits) >= OPEN_FROM:
            self._learn(self._whole, [digits], KEYS)
        self._learn(self._grams, _grams(pressed, KEYS_GRAM), KEYS)

    def _learn(self, known: dict[str, str], digits: Iterable[str], mask: str) -> None:
        before = len(known)
        for each in digits:
            known.setdefault(each, mask)
        self.are_new |= len(known) > before

    def masks(self, run: Sequence[Number]) -> list[str]:
        """The masks of consecutive numbers; empty where a number shows no secret."""
        if not self._whole and not self._grams:
            return [""] * len(run)
        digits = "".join([number.digits for number in run])
        shown = [""] * len(digits)
        for size in (CARD_GRAM, KEYS_GRAM):
            for at in range(len(digits) - size + 1):
                if mask := self._grams.get(digits[at : at + size]):
                    shown[at : at + size] = [mask] * size
        masks, at = [], 0
        for number in run:
            end = at + len(number.digits)
            masks.append(self._whole.get(number.digits) or max(shown[at:end]))
            at = end
        return masks


def _grams(digits: str, size: int) -> list[str]:
    return [digits[at : at + size] for at in range(len(digits) - size + 1)]


class Redactor(Generic[K]):
    """Redacts the texts of one call: card numbers and pressed keys are masked before anything is kept. Texts come in
    the order in which they were said, each once, with a key by which to find it again. Each method returns texts as
    they must be kept from now on, by their keys: the one that was given, and earlier ones that change. Texts are cut at
    `LONGEST` characters; a caller who cuts them before may cut a number, which is then not recognised as one. JSON that
    is cut is no longer JSON."""

    def __init__(self, config: RedactionConfig) -> None:
        self._config = config
        self._patterns = [regex.compile(pattern) for pattern in config.patterns]
        self._caller, self._agent = _SpeakerNumbers(), _SpeakerNumbers()
        self._talk = 0
        """Texts for which the talk still is of cards."""
        self._near = 0
        """Texts for which a card was mentioned just before."""
        self._languages: set[str] = set()
        """The languages that were spoken, besides English."""
        self._secrets = _FoundSecrets()
        self._pressed = ""
        """Digits among the last keys that were pressed."""
        self._texts: dict[K, MaskableText] = {}
        """The texts with numbers."""
        self._digits = 0
        """Digits in these texts."""
        self._touched: dict[Any, None] = {}
        """Keys of texts that may change now."""

    def heard(self, key: K, text: str) -> dict[K, str]:
        """The caller's words, said or written."""
        return self._uttered(key, text, self._caller)

    def said(self, key: K, text: str) -> dict[K, str]:
        """The agent's words. After "For how many people?" no card number of the caller's goes on."""
        return self._uttered(key, text, self._agent)

    def tool(self, key: K, text: str, *, is_keys: bool = False) -> dict[K, str]:
        """The arguments or the result of a tool. `is_keys`: of the one by which the agent presses keys."""
        if not self._config.transcripts:
            return {key: ""}
        its = json_or_plain(key, text)
        for part in its.parts:
            for begin, end, digits in presses(part.text) if is_keys and self._config.keys else ():
                part.replaced.append((begin, end, KEYS))
                self._secrets.keys(digits, digits)
            self._read_part(its, part)
        if self._config.cards:
            for chain in split(its.numbers(), Gap.APART):
                self._judge(chain, written=True)
        its.cut = its.cut or (not its.is_json and len(text) >= TOOL_CHARS)
        return self._as_kept(key, its)

    def remembered(self) -> Iterable[K]:
        """The keys of texts that may still change."""
        return self._texts

    def close(self) -> dict[K, str]:
        """The call is over: numbers in progress become no card's any more."""
        self._end(self._caller)
        self._end(self._agent)
        return self._revised()

    # --- utterances

    def _uttered(self, key: K, text: str, speaker: _SpeakerNumbers) -> dict[K, str]:
        if not self._config.transcripts:
            return {key: ""}
        its = plain(key, text)
        part = its.parts[0]
        self._find_patterns(part)
        words = self._without_keys(part) if speaker is self._caller and self._config.keys else part.text
        reading = read(words, self._languages)
        part.numbers += reading.numbers
        for number in part.numbers:
            number.key = key
        part.numbers.sort(key=lambda number: number.start)
        if self._config.cards:
            self._talk, self._near = max(0, self._talk - 1), max(0, self._near - 1)
            if reading.card:
                self._talk, self._near = TALK_LASTS, NEAR_NUMBER if CARD_NUMBER.search(words) else NEAR
            if CODES.search(words) or (reading.card and self._secrets.has_card):
                self._caller.codes = max(self._caller.codes, 1)
            if speaker is self._caller:
                self._talk = max(self._talk, DIGITS_LAST) if self._talk and part.numbers else self._talk
            elif not reading.card and ASKED.search(words):
                self._end(self._caller)
                self._talk, self._near, self._caller.asked = 0, 0, True
            self._go_on(speaker, part.numbers, reading)
            speaker.card |= self._near > 0 and bool(speaker.chain)
        return self._as_kept(key, its)

    def _without_keys(self, part: TextPart) -> str:
        """The rest of the text without pressed keys, which are masked for good and whose digits count."""
        for match in PRESSED.finditer(part.text):
            part.replaced.append((match.start(), match.end(), KEYS_MESSAGE))
            digits = "".join(filter(str.isdigit, match[1]))
            if digits:
                part.numbers.append(Number(match.start(), match.end(), digits, Gap.CLOSE, final=True))
            self._pressed = (self._pressed + digits)[-MOST_KEYS:]
            self._secrets.keys(digits, self._pressed)
        return PRESSED.sub(lambda match: " " * len(match[0]), part.text)

    def _go_on(self, speaker: _SpeakerNumbers, numbers: Sequence[Number], reading: NumbersReading) -> None:
        tail, wordy = reading.tail, reading.wordy
        if not numbers:
            speaker.idle += wordy
            speaker.codes -= wordy
            speaker.asked &= not wordy
            patience = PATIENCE_IN_TALK if self._talk else PATIENCE
            repeats = speaker is self._agent and self._caller.chain  # It ends no earlier than what it repeats.
            if tail is Gap.APART or (speaker.idle >= patience and not repeats):
                self._end(speaker)
            return
        speaker.codes -= 1
        for number in numbers if speaker.asked else ():
            number.known = True
        speaker.asked = False
        self._mark_again(speaker, numbers)
        numbers[0].gap = max(numbers[0].gap, speaker.gap, self._least(speaker))
        talk = speaker is self._caller and self._talk > 0
        for number in numbers:
            if number.gap is Gap.APART:
                self._judge(speaker.chain, talk)
                self._end(speaker)
            if speaker.chain or not number.soft:
                speaker.chain.append(number)
        self._judge(speaker.chain, talk)
        speaker.chain = speaker.chain[-MOST_OPEN:]
        speaker.gap, speaker.idle, speaker.last = tail, 0, joined(numbers)
        self._find_codes(speaker, numbers)
        if tail is Gap.APART:
            self._end(speaker)
        elif len(joined(speaker.chain)) >= OPEN_FROM:
            for number in speaker.chain:
                self._mask(number, OPEN)

    def _least(self, speaker: _SpeakerNumbers) -> Gap:
        """The smallest gap between two utterances. The agent's numbers were not misheard, so a card's number is
        recognised by its check digit, or by the caller's."""
        apart = speaker is self._agent or (speaker.chain and speaker.chain[-1].known)
        return Gap.LOOSE if apart else Gap.CLOSE

    def _mark_again(self, speaker: _SpeakerNumbers, numbers: Sequence[Number]) -> None:
        """A caller who was not understood repeats the number."""
        before, digits = joined(speaker.chain), joined(numbers)
        is_card = len(digits) < card_numbers.PHONE and is_right(before + digits)
        if len(digits) >= CARD_GRAM and digits in (before, speaker.last) and not is_card:
            for number in numbers if speaker.chain else ():
                number.again = True

    def _end(self, speaker: _SpeakerNumbers) -> None:
        self._recognise(speaker.chain, Gap.APART)
        numbers = [number for number in speaker.chain if not number.soft]
        is_part = speaker.card and len(joined(numbers)) >= PART and not any(number.known for number in numbers)
        for number in speaker.chain:
            if number.mask == OPEN and not number.final and not is_part:
                number.mask = ""
                self._touched[number.key] = None
        speaker.chain, speaker.gap, speaker.idle, speaker.card = [], Gap.CLOSE, 0, False

    def _find_codes(self, speaker: _SpeakerNumbers, numbers: Sequence[Number]) -> None:
        for number in numbers:
            digits = number.digits
            if number.mask == CARD and len(digits) >= OPEN_FROM:
                speaker.codes = CODES_IN
            elif speaker.codes >= 0 and CODE[0] <= len(digits) <= CODE[1] and not (number.known or number.soft):
                self._mask(number, CARD)
                self._secrets.code(digits)

    # --- numbers

    def _judge(self, chain: Sequence[Number], talk: bool = False, written: bool = False) -> None:
        for numbers in card_numbers.found(chain, talk, written):
            if all(number.mask == CARD for number in numbers):
                continue
            for number in numbers:
                self._mask(number, CARD)
            self._secrets.card(joined(numbers))

    def _mask(self, number: Number, mask: str) -> None:
        if not number.final and STRENGTH[mask] > STRENGTH[number.mask]:
            number.mask = mask
            self._touched[number.key] = None

    def _recognise(self, numbers: Sequence[Number], at: Gap = Gap.LOOSE) -> None:
        for run in split(numbers, at):
            for number, mask in zip(run, self._secrets.masks(run), strict=True):
                self._mask(number, mask)

    # --- texts

    def _read_part(self, its: MaskableText, part: TextPart) -> None:
        self._find_patterns(part)
        numbers = read(part.text, set(self._languages)).numbers
        if part.raw and not part.raw.startswith('"') and NO_CARD.fullmatch(part.raw):
            numbers = []
        is_code, is_card = bool(CODE_NAMES.search(part.name)), bool(CARD_NAMES.search(part.name))
        is_known = not (is_code or is_card) and bool(KNOWN_NAMES.search(part.name))
        for number in numbers:
            number.key = its.key
            number.known = number.known or is_known
            number.gap = max(number.gap, Gap.APART if is_known else Gap.CLOSE)
        if numbers and part.raw and not part.follows:
            numbers[0].gap = max(numbers[0].gap, Gap.LOOSE)
        part.numbers = numbers
        if self._config.cards and (is_code or (is_card and len(joined(numbers)) >= PART)):
            for number in numbers:
                self._mask(number, CARD)
            if is_card:
                self._secrets.card(joined(numbers))

    def _find_patterns(self, part: TextPart) -> None:
        for pattern in self._patterns:
            try:
                found = [match.span() for match in pattern.finditer(part.text, timeout=PATTERN_S) if match[0]]
            except TimeoutError:  # What is not known to be harmless is not kept.
                found = [(0, len(part.text))]
            part.replaced += [(*span, OWN) for span in found]

    def _as_kept(self, key: K, its: MaskableText) -> dict[K, str]:
        if its.cut and self._config.cards:
            self._seal(its.parts[-1])
        if numbers := its.numbers():
            self._texts[key] = its
            self._digits += sum([len(number.digits) for number in numbers])
            while len(self._texts) > REMEMBERED or (self._digits > REMEMBERED_DIGITS and len(self._texts) > 1):
                oldest = self._texts.pop(next(iter(self._texts)))
                self._digits -= sum([len(number.digits) for number in oldest.numbers()])
        for text in self._texts.values() if self._secrets.are_new else (its,):
            self._recognise(text.numbers())
        for speaker in (self._caller, self._agent):
            self._recognise(speaker.chain, Gap.APART)
        self._secrets.are_new = False
        its.kept = its.reads()
        self._touched.pop(key, None)
        return self._revised() | {key: its.kept}

    def _seal(self, part: TextPart) -> None:
        """Mask digits at the end of a text that was cut, since they may have gone on."""
        if part.numbers and not any(map(str.isalnum, part.text[part.numbers[-1].end :])):
            self._mask(part.numbers[-1], OPEN)
            part.numbers[-1].final = True

    def _revised(self) -> dict[K, str]:
        touched, self._touched = self._touched, {}
        revised = {}
        for key in touched:
            text = self._texts.get(key)
            if text and (reads := text.reads()) != text.kept:
                revised[key] = text.kept = reads
        return revised


def logged(result: str) -> str:
    """A tool's result for the log, without card numbers."""
    redactor = Redactor[int](USUAL)
    return (redactor.tool(0, result) | redactor.close())[0]
