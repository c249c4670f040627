"""What words are, and how they are compared."""

import asyncio
import unicodedata
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stopwatch import spent
from voicepipe.agent import Agent
from voicepipe.base.words import joined, plain, written
from voicepipe.call.utterance import Utterance
from voicepipe.conversation.timing import TurnRecord
from voicepipe.turn.agreement import Agreement


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("At 7:30, Mr. O’Hara?", "at 7:30 mr o'hara"),
        ("It's $4.50 - or 555-0123...", "it's 4.50 or 555-0123"),
        ("7 p.m.", "7 p m"),
        ("Größe 5,", "größe 5"),
        ("♪ ... ?!", ""),
    ],
)
def test_case_and_punctuation_do_not_count(written: str, compared: str) -> None:
    assert plain(written) == compared == plain(compared)


def test_words_agree_however_they_are_written() -> None:
    agreement = Agreement()
    assert agreement.push(["okay.", "So"]) == []
    assert agreement.push(["Okay,", "so", "I"]) == ["Okay,", "so"]
    assert agreement.push(["Okay,", "so,", "I?"]) == ["I?"]


def test_a_reply_is_interrupted_by_words_however_they_are_written() -> None:
    agent = Agent("a", interrupt=("stop", "Excuse me!"))
    assert agent.is_interrupted("No. Stop.") and agent.is_interrupted("Well, excuse me, please.")
    assert not agent.is_interrupted("unstoppable") and not agent.is_interrupted("")


@pytest.mark.parametrize(
    ("written_", "compared"),
    [
        ("नमस्ते, आपका!", "नमस्ते आपका"),
        ("你好，世界。", "你 好 世 界"),
        ("我要订12点30分、iPhone", "我 要 订 12 点 30 分 iphone"),
        ("１２：３０に、トーキョー", "12:30 に トー キョー"),
        ("สวัสดีครับ เรา", "ส วั ส ดี ค รั บ เรา"),
        ("می‌خواهم", "میخواهم"),
        ("안녕하세요. 네!", "안녕하세요 네"),
        (unicodedata.normalize("NFD", "Café à l’eau"), "café à l'eau"),
        ("donʼt", "don't"),
        ("სალამი და صَباح", "სალამი და صَباح"),
    ],
)
def test_words_of_any_script_are_compared(written_: str, compared: str) -> None:
    assert plain(written_) == compared == plain(compared)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hi,  it is\n so. ", "Hi,  |it |is\n |so. "),
        ("（请说「你好」。）谢", "（请|说|「你|好」。）|谢"),
        ("我用iPhone手机，3.5元、１，０００人。", "我|用|iPhone|手|机，|3.5|元、|１，０００|人。"),
        ("キャーッ、人々。ｱｲ", "キャーッ、|人々。|ｱ|ｲ"),
        ("เราเก้าโมงน้ำ ครับ", "เรา|เก้า|โม|ง|น้ำ |ค|รั|บ"),
        ("ខ្ញុំស្តី។", "ខ្ញុំ|ស្តី។"),
        ("ျမန်မာ", "ျ|မ|န်|မာ"),
        ("བཀྲ་ཤིས།", "བཀྲ་|ཤིས།"),
        ("ሰላም፡እንዴት።ነህ", "ሰላም፡|እንዴት።|ነህ"),
        ("它很好👍🏽。再见", "它|很|好👍🏽。|再|见"),
        ("  a", "  a"),
        (" ", " "),
        ("", ""),
    ],
)
def test_words_as_they_are_written(text: str, words: str) -> None:
    assert "|".join(written(text)) == words


@given(st.text())
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(written(text)) == text
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize("unit", ["((", "「", "。", "，", "好", "เ", "́", "a。", "1，", "（a", "¿", "\u200d"])
def test_words_of_a_long_text_are_found_in_time(unit: str) -> None:
    def took(chars: int) -> float:
        text = (unit * chars)[:chars]
        return spent(lambda: (list(written(text)), plain(text)))

    few, many = took(2_000), took(16_000)
    assert many < 32 * max(few, 0.0005), "eight times as much would be 64 times as dear if the square were paid"


@pytest.mark.parametrize(
    ("before", "after", "both"),
    [
        ("I want", "a table", "I want a table"),
        ("我想要", "一个位子", "我想要一个位子"),
        ("好的。", "「明天」", "好的。「明天」"),
        ("我用", "iPhone", "我用 iPhone"),
        ("मैं", "हूँ", "मैं हूँ"),
        ("네", "알겠어요", "네 알겠어요"),
        ("", "はい", "はい"),
        ("はい ", "", "はい"),
    ],
)
def test_texts_are_joined_as_their_script_does(before: str, after: str, both: str) -> None:
    assert joined(before, after) == both


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        (["我想", "我想订", "我想订位"], ["", "我想", "订"]),
        (["मुझे", "मुझे टेबल", "मुझे टेबल चाहिए"], ["", "मुझे ", "टेबल "]),
        (["はい。", "はい、お願い", "はい、お願いします"], ["", "はい、", "お願い"]),
        (["i want", "i want a", "i want a table"], ["", "i want ", "a "]),
    ],
)
async def test_stable_words_are_told_as_their_script_writes_them(heard: list[str], told: list[str]) -> None:
    utterance = Utterance("item", 0, 0, 0.0, Mock(), TurnRecord("turn"), asyncio.create_task)
    assert [utterance.take_partial(text)[0] for text in heard] == told


@pytest.mark.parametrize(
    ("phrase", "said", "interrupts"),
    [
        ("停", "请停一下", True),
        ("等一下", "等一下，我", True),
        ("等一下", "等我一下", False),
        ("रुको", "अरे रुको!", True),
        ("रुक", "रुको", False),
        ("หยุด", "หยุดก่อนครับ", True),
        ("توقف", "لا، توقف", True),
        ("잠깐만", "네, 잠깐만.", True),
        ("待って", "ちょっと待ってください", True),
    ],
)
def test_a_reply_is_interrupted_in_any_script(phrase: str, said: str, interrupts: bool) -> None:
    assert Agent("a", interrupt=(phrase,)).is_interrupted(said) is interrupts
