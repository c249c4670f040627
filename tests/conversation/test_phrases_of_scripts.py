"""Phrases of scripts that are not Latin: sentences end at their own marks, and words need no spaces."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.conversation.phrases import PhraseConfig, Phraser

SENTENCES = {
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


def cut(text: str, size: int, *, hurry: bool = False) -> list[str]:
    phraser = Phraser(hurry=hurry)
    pushed = [phrase for at in range(0, len(text), size) for phrase in phraser.push(text[at : at + size])]
    return pushed + phraser.flush()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_a_phrase(language: str, size: int) -> None:
    expected = SENTENCES[language]
    assert cut("".join(expected), size) == expected


@pytest.mark.parametrize("language", ["zh", "ja", "hi", "ur", "my", "km", "am"])
def test_it_is_spoken_before_anything_follows_its_mark(language: str) -> None:
    first = SENTENCES[language][0]
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
        assert at in ends and len(phrase) <= PhraseConfig().most_chars
    assert len(phrases) > 1


def test_a_phrase_of_chinese_lasts_about_as_long_as_one_of_english() -> None:
    lengths = [len(phrase) for phrase in cut("好" * 200, 2)]
    assert lengths == [20, 60, 60, 60]


@given(
    st.lists(st.sampled_from([*"".join(sum(SENTENCES.values(), [])), "3", ",", '"', "\n"])).map("".join),
    st.integers(1, 9),
)
def test_nothing_is_lost(text: str, size: int) -> None:
    assert "".join(cut(text, size)) == text
