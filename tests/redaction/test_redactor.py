"""No card number and no key is kept, and nothing else is lost."""

import json
import time
import unicodedata
from collections.abc import Iterable, Iterator
from functools import partial

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.redaction import said_numbers, transcripts_abroad
from tests.redaction.transcripts import Line, Transcript, Who, leaks, readable, with_secrets, without_secrets
from voicepipe.config.pop_config import LONGEST, RedactionConfig
from voicepipe.redaction.number_words import ABROAD, FOLDS, JOINS, WORDS
from voicepipe.redaction.redactor import Redactor

CARD = "4539148803436467"
MISHEARD = "4539148803436468"
"""Its check digit is wrong."""
AS_BY_DEFAULT = RedactionConfig()
WHO: dict[str, Who] = {"caller": "heard", "agent": "said", "tool": "tool"}
NFD = partial(unicodedata.normalize, "NFD")
"""As macOS and some recognisers write accents: as characters of their own."""


def steps(lines: Iterable[Line], config: RedactionConfig = AS_BY_DEFAULT) -> Iterator[list[str]]:
    """What is kept after each line, and after the end of the call."""
    redactor: Redactor[int] = Redactor(config)
    kept: dict[int, str] = {}
    for number, line in enumerate(lines):
        kept |= getattr(redactor, line.who)(number, line.text)
        yield [kept[index] for index in range(number + 1)]
    kept |= redactor.close()
    yield [kept[index] for index in range(len(kept))]


def keep(*lines: str, config: RedactionConfig = AS_BY_DEFAULT) -> list[str]:
    """What is kept in the end of lines such as "caller: 4539"."""
    return list(steps(map(_line, lines), config))[-1]


def _line(text: str) -> Line:
    who, _, said = text.partition(": ")
    return Line(WHO[who], said)


# --- whole calls


@pytest.mark.parametrize("seed", range(5))
def test_nothing_of_cards_and_keys_is_kept_at_any_time(seed: int) -> None:
    for transcript in with_secrets(seed):
        for kept in steps(transcript.lines):
            assert not leaks(transcript, kept), (transcript, kept)


@pytest.mark.parametrize("seed", range(5))
def test_calls_without_cards_and_keys_are_kept_as_they_were(seed: int) -> None:
    for transcript in without_secrets(seed):
        assert list(steps(transcript.lines))[-1] == [line.text for line in transcript.lines]


def test_the_transcripts_do_tell_their_secrets() -> None:
    told = [bool(leaks(transcript, [line.text for line in transcript.lines])) for transcript in with_secrets()]
    assert sum(told) > 0.97 * len(told), "all but some of which the recogniser has misheard too much"


@pytest.mark.parametrize("language", said_numbers.LANGUAGES)
@pytest.mark.parametrize("seed", range(5))
def test_nothing_of_cards_is_kept_in_other_languages(language: str, seed: int) -> None:
    for transcript in transcripts_abroad.with_secrets(language, seed):
        for kept in steps(transcript.lines):
            assert not transcripts_abroad.leaks(transcript, kept, language), (transcript, kept)


@pytest.mark.parametrize("language", said_numbers.LANGUAGES)
@pytest.mark.parametrize("seed", range(5))
def test_other_numbers_are_kept_as_they_were_in_other_languages(language: str, seed: int) -> None:
    for transcript in transcripts_abroad.without_secrets(language, seed):
        assert list(steps(transcript.lines))[-1] == [line.text for line in transcript.lines]


@pytest.mark.parametrize("language", said_numbers.LANGUAGES)
def test_the_transcripts_of_other_languages_do_tell_their_secrets(language: str) -> None:
    for transcript in transcripts_abroad.with_secrets(language, 1):
        assert transcripts_abroad.leaks(transcript, [line.text for line in transcript.lines], language)


# --- card numbers


@pytest.mark.parametrize(
    "lines",
    [
        "caller: my card is 4539 1488 / agent: go on / caller: 0343 6468",
        "caller: it's forty-five thirty-nine fourteen eighty-eight oh three forty three sixty four sixty eight",
        "caller: four five three nine, one four double eight, oh three four three, six four six eight",
        "caller: four thousand five hundred thirty nine one thousand four hundred and eighty eight 0343 6468",
        "caller: for five tree nine won for ate ate oh tree for tree six for six ate",
        "caller: four five three nine one four wine eight zero three four three six four six eight",
        "caller: 4539.1488.0343.6468",
        "caller: VISA4539148803436468CVC123",
        "caller: ４５３９ー１４８８ー０３４３ー６４６８",
        "caller: मेरा कार्ड ४५३९ १४८८ मेरी ०३४३ ६४६८ है",
        "caller: 我的卡号是4539，1488，0343，6468谢谢",
        "caller: การ์ด๔๕๓๙๑๔๘๘๐๓๔๓๖๔๖๘ครับ",
        f"caller: {NFD('quatro cinco três nove um quatro oito oito zero três quatro três seis quatro seis oito')}",
        "caller: 4539\u200b1488\u00a00343\n6468",
        "caller: 4539 14:88 03:43 6468",
        "caller: $4539 1488 0343 6468",
        "caller: 4539 dash 1488 point 0343, let me see, hold on, 6468",
        "caller: 4539 1488 and my dog barks 0343 6467",
        "caller: the first four are 4539 / agent: the second four? / caller: they are 1488, 0343, and then 6468",
        "agent: your card number? / caller: 4539 1488 / agent: Take your time. / caller: it is hard to read in here / "
        "agent: Right. / caller: then I see 0343 and a 6468",
        "caller: vier fünf drei neun eins vier acht acht / agent: ja? / caller: null drei vier drei sechs vier sechs "
        "acht",
        "caller: quarante-cinq trente-neuf quatorze quatre-vingt-huit zéro trois quarante-trois soixante-quatre "
        "soixante-huit",
        "caller: quatro cinco três nove um quatro oito oito zero três quatro três meia quatro meia oito",
        "caller: 4539 1488 0343 / agent: I have twelve digits, and the last four? / caller: 6468",
        "agent: Let me read that back: 4, 5, 3, 9. 1, 4, 8, 8. 0, 3, 4, 3. 6, 4, 6, 8.",
        "caller: 4539 1488 / agent: 4539 1488, yes? / caller: 0343 6468 / agent: 0343 6468. So 4539, 1488.",
        'tool: {"card": "4539 1488 0343 6468"}',
        'tool: {"card": 4539148803436468}',
        'tool: {"a": "4539", "b": "1488", "c": "0343", "d": "6467"}',
        'tool: ["4539", "1488", "0343", "6468"]',
        'tool: {"t": "\\u0034539148803436468"}',
        "tool: pay(number=4539148803436468)",
    ],
)
def test_card_numbers_however_they_are_told(lines: str) -> None:
    kept = keep(*lines.split(" / "))
    assert any("[card]" in text for text in kept)
    assert not leaks(Transcript((), (CARD, MISHEARD)), kept), kept


@pytest.mark.parametrize(
    "lines",
    [
        "caller: fünfundvierzig neununddreißig vierzehn achtundachtzig null drei dreiundvierzig vierundsechzig "
        "achtundsechzig",
        "caller: viertausendfünfhundertneununddreißig / agent: ja? / caller: äh eintausendvierhundertachtundachtzig, "
        "Moment, null dreihundertdreiundvierzig und dann sechstausend vierhundertachtundsechzig",
        "caller: vier fünf drei neun, eins vier doppel acht / agent: ja, weiter / caller: null drei vier drei, "
        "sechs vier sechs acht",
        "caller: quatre mille cinq cent trente-neuf, mille quatre cent quatre-vingt-huit / agent: oui ? / caller: euh "
        "zéro trois cent quarante-trois, six mille quatre cent soixante-huit",
        "caller: quarante-cinq trente-neuf quatorze huitante-huit zéro trois quarante-trois soixante-quatre "
        "soixante-huit",
        "caller: quatre cinq trois neuf un quatre deux fois le huit, attendez, zéro trois quatre trois / "
        "agent: je vous écoute / caller: six quatre six huit",
        "caller: cuatro mil quinientos treinta y nueve, mil cuatrocientos ochenta y ocho / agent: vale / caller: "
        "cero trescientos cuarenta y tres, seis mil cuatrocientos sesenta y ocho",
        "caller: cuarenta y cinco treinta y nueve catorce doble ocho / agent: ¿sí? / caller: cero tres cuarenta y tres "
        "sesenta y cuatro sesenta y ocho",
        "caller: quattromilacinquecentotrentanove, millequattrocentottantotto / agent: sì? / caller: allora, zero "
        "trecentoquarantatré, dunque seimila quattrocentosessantotto",
        "caller: quarantacinque trentanove quattordici doppio otto, un attimo, zero tre quarantatré sessantaquattro "
        "sessantotto",
        "caller: vijfenveertig negenendertig veertien achtentachtig nul drie drieënveertig vierenzestig achtenzestig",
        "caller: quatro mil quinhentos e trinta e nove, mil quatrocentos e oitenta e oito / agent: sim? / caller: zero "
        "trezentos e quarenta e três, seis mil quatrocentos e sessenta e oito",
    ],
)
def test_card_numbers_in_large_numbers_of_other_languages(lines: str) -> None:
    kept = [text for text, line in zip(keep(*lines.split(" / ")), lines.split(" / "), strict=True) if "caller" in line]
    assert all("[card]" in text for text in kept), kept
    assert not any(len(word) > 9 for text in kept for word in text.split()), "a number's word"


def test_what_the_agent_repeats_stays_masked_while_the_number_goes_on() -> None:
    lines = ["caller: it's four five three nine", "agent: 4539, wonderful", "agent: Marvellous", "agent: Fabulous"]
    assert list(steps(map(_line, lines)))[3][1] == "[digits], wonderful"


def test_a_telephone_number_of_nine_digits_that_is_repeated_is_no_card() -> None:
    lines = ["caller: 689085342", "agent: ¿Puede repetirlo?", "caller: 689085342"]
    assert keep(*lines) == [line.partition(": ")[2] for line in lines]


def test_what_may_become_a_card_number_is_masked_until_it_is_known() -> None:
    kept = list(steps(map(_line, ["caller: call me at 030 1234567", "agent: For how many people?", "caller: four"])))
    assert kept[0] == ["call me at [digits]"]
    assert kept[1] == ["call me at 030 1234567", "For how many people?"]
    assert kept[-1] == ["call me at 030 1234567", "For how many people?", "four"]
    kept = list(steps(map(_line, ["caller: it's 4539 1488", "agent: yes?", "caller: 0343 6468"])))
    assert kept[0] == ["it's [digits]"]
    assert kept[-1] == ["it's [card]", "yes?", "[card]"]


def test_a_number_that_does_not_go_on_is_told_after_two_utterances_of_other_words() -> None:
    lines = ["caller: my number is 030 1234567", "caller: I would like a table", "caller: outside if you can"]
    kept = list(steps(map(_line, lines)))
    assert [texts[0] for texts in kept[:3]] == 2 * ["my number is [digits]"] + ["my number is 030 1234567"]


def test_a_card_number_that_the_caller_breaks_off_stays_masked() -> None:
    assert keep("agent: Your card number?", "caller: 4539 1488 03", "caller: forget it") == [
        "Your card number?",
        "[digits]",
        "forget it",
    ]


def test_who_says_their_number_again_has_told_no_card() -> None:
    lines = [
        "caller: 555 867 5309",
        "agent: Sorry, could you repeat that?",
        "caller: five five five eight six seven five three oh nine",
    ]
    assert keep(*lines) == [line.partition(": ")[2] for line in lines]


def test_an_earlier_text_reads_differently_once_a_card_number_is_known() -> None:
    lines = [
        "caller: it starts with 45391488",
        "caller: where is my bag",
        "caller: ah it is over there",
        f"caller: so, {CARD}",
    ]
    kept = list(steps(map(_line, lines)))
    assert kept[2][0] == "it starts with 45391488"
    assert kept[3][0] == "it starts with [card]"


def test_behind_a_card_number_its_date_and_code_are_taken_out() -> None:
    assert keep(
        f"caller: {CARD}", "agent: And the date?", "caller: it is 12/27", "agent: The code?", "caller: one two three"
    ) == ["[card]", "And the date?", "it is [card]", "The code?", "[card]"]
    assert keep(f'tool: {{"number": {CARD}, "expiry": "12/27", "cvc": 123, "guests": 4}}') == [
        '{"number": "[card]", "expiry": "[card]", "cvc": "[card]", "guests": 4}'
    ]


def test_the_last_four_of_a_card_may_be_said() -> None:
    assert (
        keep(f"caller: {CARD}", "agent: Your card ending in 6467 is charged.")[1]
        == "Your card ending in 6467 is charged."
    )


def test_other_numbers_beside_a_card_number_stay() -> None:
    text = f"I pay with {CARD}, and my phone number is 030 1234567"
    assert keep(f"caller: {text}") == ["I pay with [card], and my phone number is 030 1234567"]
    text = json.dumps(
        {
            "at": 1764265907123,
            "phone": "+49301234567",
            "when": "2026-11-27T19:30:00",
            "lat": 52.520006600001,
            "id": "550e8400-e29b-41d4-a716-446655440000",
            "free": [1800, 1830, 1900, 1930, 2000],
        }
    )
    assert keep(f"tool: {text}") == [text]


def test_a_number_at_the_end_of_a_text_that_is_cut_stays_masked() -> None:
    assert keep("caller: " + "a " * (LONGEST // 2 - 4) + CARD)[0].endswith("a [digits]")
    assert keep("tool: " + "a " * 245 + CARD[:10])[0].endswith("a [digits]")


# --- keys, patterns, no words


def test_keys_are_taken_out_wherever_they_come_again() -> None:
    told = "The caller pressed the keys 4 7 1 1 on their telephone."
    kept = keep(f"caller: hello {told}", "agent: You typed four seven one one.", 'tool: {"pin": 4711, "of": "x4711y"}')
    assert kept == [
        "hello The caller pressed keys on their telephone: [keys].",
        "You typed [keys].",
        '{"pin": "[keys]", "of": "x[keys]y"}',
    ]
    assert keep(f"caller: {told}", config=RedactionConfig(keys=False)) == [told]
    pressed = [f"caller: The caller pressed the key {key} on their telephone." for key in "4711"]
    assert keep(*pressed, "agent: Is it 4711?")[-1] == "Is it [keys]?"


def test_keys_and_words_may_tell_one_card_number() -> None:
    told = "The caller pressed the keys 0 3 4 3 6 4 6 8 on their telephone."
    assert keep("caller: 4539 1488", f"caller: {told}")[0] == "[card]"


def test_patterns_of_ones_own() -> None:
    config = RedactionConfig(patterns=(r"DE\d{2}(?: ?\d{4}){4} ?\d{2}", r"\b[\w.]{1,30}@[\w.]{1,30}"))
    assert keep("caller: write to jo@example.com", 'tool: {"to": "jo@example.com"}', config=config) == [
        "write to [redacted]",
        '{"to": "[redacted]"}',
    ]


def test_patterns_fit_however_accents_are_written() -> None:
    config = RedactionConfig(patterns=("José",))
    assert keep(f"caller: {NFD('this is José')}", config=config) == ["this is [redacted]"]


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|b|ab)*c", "(?=(a+)+)b"])
def test_no_pattern_keeps_the_server_busy(pattern: str) -> None:
    config = RedactionConfig(patterns=(pattern,))
    began = time.process_time()
    assert keep("caller: " + "a" * LONGEST, "agent: hello", config=config)[-1] == "hello"
    assert time.process_time() - began < 2


def test_a_text_that_keeps_one_busy_is_taken_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.redaction.redactor.PATTERN_S", 1e-9)
    config = RedactionConfig(cards=False, patterns=(r"(\w+\s?)+\d$",))
    assert keep("caller: " + "word " * 300, config=config) == ["[redacted]"]


def test_without_transcripts_no_words_are_kept() -> None:
    config = RedactionConfig(transcripts=False)
    assert keep("caller: hello", "agent: hello", "tool: {}", config=config) == ["", "", ""]


# --- whatever is said

NUMBER_WORDS = st.lists(st.sampled_from([*WORDS, *ABROAD, *JOINS, *FOLDS, "4", ",", "viertausend"]), max_size=20)
PIECES = st.sampled_from(
    "four five oh double 4539 1488 12 7 and um people at , . - / : hundred sixty-four vier um once elf 19:30 phone "
    "card $ € the".split()
)
SAID = st.lists(PIECES, max_size=30).map(" ".join) | st.text(max_size=60)
SAID |= NUMBER_WORDS.map(" ".join)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 10**19)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.just(CARD),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8) | st.just(CARD), inner, max_size=5),
)


@given(st.lists(st.tuples(st.sampled_from(["heard", "said", "tool"]), SAID), max_size=8))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_it_fail_and_none_gains_words(said: list[tuple[Who, str]]) -> None:
    lines = [Line(who, text) for who, text in said]
    for kept in steps(lines):
        assert not any(len(readable(text)) > len(readable(line.text)) for line, text in zip(lines, kept, strict=False))


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
@settings(max_examples=300, deadline=None)
def test_json_stays_json(value: object, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assume(len(text) <= LONGEST)
    (kept,) = keep(f"tool: {text}")
    json.loads(kept)
    assert CARD not in kept


@given(st.lists(SAID, max_size=4), st.lists(SAID, max_size=4), st.integers(0, 19))
@settings(max_examples=300, deadline=None)
def test_a_card_number_in_one_piece_never_stays(before: list[str], after: list[str], offset: int) -> None:
    number = CARD[:4] + str(offset).zfill(4) + CARD[8:]
    words = [*before, f"it is {number}", *after]
    for kept in steps([Line("heard" if at % 2 else "said", text) for at, text in enumerate(words)]):
        assert number not in "".join(kept)
