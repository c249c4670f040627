"""Phrases: lossless, the first one short, nothing torn apart that is spoken as one."""

import re
import time
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.conversation.phrases import SENTENCES, PhraseLengths, Phraser, ends_sentence

WORDS = (
    "we are open until ten, on Friday. Dr. Smith paid $4.50 e.g. for 3.5 kg at 7:30 p.m. No. 5 - item **bold text** "
    "(in brackets) +44 20 7946 0958 https://example.org/a.b, U.S. and What? Yes! \n\n \n end… 1. J. I."
)
PROSE = st.lists(st.sampled_from(WORDS.split(" ")), max_size=80).map(" ".join)


def cut(text: str, size: int = 3, *, hurry: bool = False) -> list[str]:
    """The phrases of `text`, pushed in tokens of `size` characters."""
    phraser = Phraser(hurry=hurry)
    pushed = [phrase for at in range(0, len(text), size) for phrase in phraser.push(text[at : at + size])]
    return pushed + phraser.flush()


@given(st.one_of(st.text(), PROSE), st.integers(1, 40), st.booleans())
def test_nothing_is_lost(text: str, size: int, hurry: bool) -> None:
    assert "".join(cut(text, size, hurry=hurry)) == text


@given(PROSE, st.integers(1, 40), st.integers(1, 40))
def test_where_tokens_part_numbers_and_signs_makes_no_difference(text: str, size: int, other: int) -> None:
    assert cut(text, size) == cut(text, other)


def test_a_sentence_does_not_wait_for_what_follows_a_bracket() -> None:
    assert list(Phraser().push("Yes. (")) == ["Yes. "]


@pytest.mark.parametrize("size", [1, 2, 40])
def test_a_phone_number_of_which_only_the_plus_is_there_belongs_to_what_is_before(size: int) -> None:
    assert cut("you can call us \n +44 20 7946", size) == ["you can call us \n +44 20 7946"]


@given(PROSE)
def test_no_phrase_is_longer_than_the_limit(text: str) -> None:
    assert all(len(phrase.split()) <= PhraseLengths().limit for phrase in cut(text)[:-1])


@given(st.one_of(st.text(), PROSE))
def test_a_phrase_ends_before_a_word(text: str) -> None:
    for phrase in cut(text)[:-1]:
        assert phrase[-1].isspace() or len(phrase) >= PhraseLengths().limit_chars


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Yes. We have parking behind the house.", "Yes. "),
        ("Of course, I will put you through to a colleague.", "Of course, I will put you through to a colleague."),
        ("We are open Tuesday to Sunday, from noon to ten.", "We are open Tuesday to Sunday, "),
        ("We are at 12 Harbour Street and the ferry is near.", "We are at 12 Harbour Street "),
        (
            "The kitchen buys its fish at the pier every morning before six o'clock.",
            "The kitchen buys its fish at the pier every morning ",
        ),
    ],
)
def test_the_first_phrase_is_short(text: str, first: str) -> None:
    assert cut(text)[0] == first


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Of course, I will put you through.", "Of course, "),
        ("The three course dinner is good today.", "The three course dinner is good "),
        ("Between 5:00 and 6:00 p.m. we have 3 tables by the window.", "Between 5:00 and 6:00 p.m. "),
        ("It opens at 5:00 because the kitchen is slow.", "It opens at 5:00 "),
        ("We close today at 9:30 p.m. but you may stay.", "We close today at 9:30 p.m. "),
    ],
)
def test_in_a_hurry_it_is_shorter(text: str, first: str) -> None:
    assert cut(text, hurry=True)[0] == first


def test_hurry_may_come_late() -> None:
    phraser = Phraser()
    assert list(phraser.push("Of course, I ")) == []
    phraser.hurry()
    assert list(phraser.push("will")) == ["Of course, "]


def test_later_phrases_are_sentences() -> None:
    phrases = cut("Yes. We do that, and gladly so, for you. And for your friends as well.")
    assert phrases == ["Yes. ", "We do that, and gladly so, for you. ", "And for your friends as well."]


@pytest.mark.parametrize(
    "whole",
    [
        "$4.50",
        "3.5 kg",
        "e.g. this",
        "Dr. Smith",
        "J. Smith",
        "No. 5",
        "Oct. 3",
        "+44 20 7946 0958",
        "(555) 555 0142",
        "https://example.org/a.b/c?d=e",
        "**bold words here**",
        "`code with. points`",
        "[a link. with points](https://example.org)",
        "7:30 p.m. on",
        "- entry",
        "1. entry",
    ],
)
@pytest.mark.parametrize("before", ["", "Well. ", "This is a long beginning of a sentence with ", "And so it goes: "])
def test_is_not_torn_apart(before: str, whole: str) -> None:
    phrases = cut(f"{before}{whole} and then the sentence goes on for a while. It ends.", 1)
    assert any(whole in phrase for phrase in phrases), phrases


def test_no_is_a_sentence() -> None:
    assert cut("No. We are closed on Monday.")[0] == "No. "


def test_a_model_that_writes_no_spaces_is_cut_all_the_same() -> None:
    phrases = cut("x" * 1000)
    assert len(phrases) == 4 and max(map(len, phrases)) == PhraseLengths().limit_chars


def test_a_bracket_that_is_never_closed_holds_up_to_the_limit() -> None:
    phrases = cut("(" + " word." * 100)
    assert {len(re.findall(r"word", phrase)) for phrase in phrases[1:-1]} == {PhraseLengths().limit}


def test_flush_is_empty_without_text() -> None:
    assert Phraser().flush() == []


HARD = ["a", "a ", " ", ". ", "(a ", "**", "\n", "a, ", "1 ", "x-", ".)", "Dr. "]


@pytest.mark.parametrize("unit", HARD)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_a_text_costs_its_length_however_it_comes(unit: str, size: int) -> None:
    def took(chars: int) -> float:
        text, phraser = (unit * chars)[:chars], Phraser(SENTENCES)
        begun = time.thread_time()
        for at in range(0, chars, size):
            for phrase in phraser.push(text[at : at + size]):
                assert len(phrase) <= 1100, "no step is long"
        return time.thread_time() - begun

    few, many = (min(took(chars) for _ in range(3)) for chars in (2_000, 16_000))
    assert many < 32 * max(few, 0.0005), "eight times as much would be 64 times as dear if the square were paid"


def test_phrases_are_cut_as_they_are_taken() -> None:
    class Text(str):
        taken = 0

        def __getitem__(self, key: Any) -> str:
            Text.taken += 1
            return super().__getitem__(key)

    phraser = Phraser()
    phrases = phraser.push("some words and more, " * 20_000)
    phraser._text = Text(phraser._text)
    next(phrases)
    assert Text.taken == 1


def test_a_text_that_is_there_as_a_whole_is_cut_into_sentences() -> None:
    long = (
        "This call may be recorded so that we can answer you better the next time that you call us about a table or "
        "anything else, and if you do not want that, "
    )
    cutter = Phraser(SENTENCES)
    cut = [*cutter.push(f"Good evening. {long}tell us now. How can I help you?"), *cutter.flush()]
    assert cut == ["Good evening. ", long, "tell us now. ", "How can I help you?"]


@pytest.mark.parametrize(
    ("word", "following", "ends"),
    [
        ("seven.", "Is", True),
        ('really?"', "", True),
        ("Dr.", "Miller", False),
        ("Dr.", "", False),
        ("p.m.", "on", False),
    ],
)
def test_where_a_sentence_ends(word: str, following: str, ends: bool) -> None:
    assert ends_sentence(word, following) is ends


# --- scripts that are not Latin: sentences end at their own marks, and words need no spaces

SCRIPTS = {
    "zh": ["您好，欢迎致电港湾餐厅。", "我们每天早上九点到晚上十点营业！", "请问您想预订座位吗？"],
    "zh, quoted": ["他说：「请稍等。」", "“好的。”", "（我们在二楼。）", "再见。"],
    "zh, numbers": ["一共是１，０００．５元。", "从12：30到3.5点。", "电话是555-0142。"],
    "ja": ["お電話ありがとうございます。", "「本日は定休日です。」", "ご予約は何名様でしょうか？", "はい｡"],
    "hi": ["नमस्ते, आपका स्वागत है।", " हम रोज़ खुले हैं।", " क्या आप टेबल चाहेंगे? ", "धन्यवाद॥"],
    "ar": ["مرحبا، أهلا بك في المطعم. ", "هل تريد حجز طاولة؟", " نعم!"],
    "ur": ["السلام علیکم، خوش آمدید۔", " کیا آپ میز بک کریں گے؟", " شکریہ۔"],
    "ko": ["안녕하세요, 하버 식당입니다. ", "예약하시겠어요? ", "네."],
    "my": ["မင်္ဂလာပါ။", " နေ့တိုင်း ဖွင့်ပါတယ်။", " ကြိုတင်မှာလိုပါသလား။"],
    "km": ["សួស្តី។", " តើអ្នកចង់កក់តុទេ? ", "អរគុណ។"],
    "am": ["ሰላም፣ እንደምን ነዎት።", " ጠረጴዛ ይፈልጋሉ፧"],
    "hy": ["Բարև ձեզ։", " Մենք բաց ենք։"],
}

CLUSTER = regex.compile(r"\X")


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("language", SCRIPTS)
def test_a_sentence_is_a_phrase(language: str, size: int) -> None:
    expected = SCRIPTS[language]
    assert cut("".join(expected), size) == expected


@pytest.mark.parametrize("language", ["zh", "ja", "hi", "ur", "my", "km", "am"])
def test_it_is_spoken_before_anything_follows_its_mark(language: str) -> None:
    first = SCRIPTS[language][0]
    phraser = Phraser()
    assert [*phraser.push(first[:-1])] == [] and [*phraser.push(first[-1])] == [first]


@pytest.mark.parametrize("text", ["他说：「请稍等。", "（我们在二楼。", "“好的。", '她说:"好。', "１，"])
def test_a_mark_that_may_go_on_is_waited_for(text: str) -> None:
    assert [*Phraser().push(text)] == []


def test_a_first_phrase_ends_at_a_clause_that_lasts_long_enough() -> None:
    assert cut("您好，我们的营业时间是每天早上，从九点开始", 2)[0] == "您好，我们的营业时间是每天早上，"
    assert cut("好的没问题，我马上帮您查询一下", 2, hurry=True)[0] == "好的没问题，"


def test_a_space_in_thai_is_the_end_of_a_clause() -> None:
    text = "สวัสดีครับ ยินดีต้อนรับสู่ร้านอาหาร เราเปิดทุกวันตั้งแต่เก้าโมงเช้าถึงสี่ทุ่ม"
    assert cut(text, 3)[0] == "สวัสดีครับ ยินดีต้อนรับสู่ร้านอาหาร "


@pytest.mark.parametrize("letters", ["好", "かな", "ยินดีต้อนรับเข้าน้ำ", "ကျွန်တော်", "ខ្ញុំស្តី", "क्ष्म्य", "👩‍👩‍👧", "é̂̃"])
@pytest.mark.parametrize("size", [1, 7])
def test_what_has_no_marks_is_cut_between_letters(letters: str, size: int) -> None:
    text = letters * 300
    phrases, ends = cut(text, size), {found.end() for found in CLUSTER.finditer(text)}
    at = 0
    for phrase in phrases:
        at += len(phrase)
        assert at in ends and len(phrase) <= PhraseLengths().most_chars
    assert len(phrases) > 1


def test_a_phrase_of_chinese_lasts_about_as_long_as_one_of_english() -> None:
    lengths = [len(phrase) for phrase in cut("好" * 200, 2)]
    assert lengths == [20, 60, 60, 60]


@given(
    st.lists(st.sampled_from([*"".join(sum(SCRIPTS.values(), [])), "3", ",", '"', "\n"])).map("".join),
    st.integers(1, 9),
)
def test_nothing_of_any_script_is_lost(text: str, size: int) -> None:
    assert "".join(cut(text, size)) == text
