"""Of a model's stream, only what it says: not thoughts, tool calls and what templates write around them."""

import logging
from collections.abc import Iterable

import pytest

from tests.engines.written import CALLS, THOUGHTS
from voicepipe.engines.base import StreamCorrection
from voicepipe.engines.llm.markup import ENDS
from voicepipe.engines.llm.spoken_text import Habits, SpokenFilter

CALL = '{"name": "weather", "arguments": {"city": "Rome", "note": "a } and a \\" in it"}}'
LONG = "We are open until ten."

STREAMS = [
    ("Hello.", "Hello."),
    ("\n\n Hello,  you.\n", "Hello,  you."),
    (" \n", ""),
    # Thoughts that are marked.
    ("<think>Hm.</think>\n\nHello.", "Hello."),
    ("\n<think>\nHm < 5.\n</think>Hello.", "Hello."),
    ("<think></think><think>Once more.</think> Hello.", "Hello."),
    ("<think>Hm, and no end", ""),
    (f"{LONG} <think>Was that right?</think>", LONG),
    ("We are open. <think>Until?</think> Until ten.", "We are open. Until ten."),
    ("We are open.<think>Until?</think>Until ten.", "We are open. Until ten."),
    *((f"{opens}Hm, {{x}} [y].{closes}{LONG}", LONG) for opens, closes in THOUGHTS.items()),
    # Thoughts that the template has opened.
    *((f"Okay, they greet me. I answer.\n{closes}\n\n{LONG}", LONG) for closes in THOUGHTS.values()),
    (f"</think>\n\n{LONG}", LONG),
    (f"<think>Hm.</think>{LONG}</think>", LONG),
    # A call that was thought of.
    (f"Hm, maybe {CALL} no.</think>{LONG}", LONG),
    (f"{CALL}</think>{LONG}", LONG),
    (f"Hm. <tool_call>weather</tool_call>\n</think>{LONG}", LONG),
    # Harmony.
    (f"<|channel|>analysis<|message|>They ask.<|end|><|start|>assistant<|channel|>final<|message|>{LONG}", LONG),
    (f"They ask.<|end|><|start|>assistant<|channel|>final<|message|>{LONG}<|return|>", LONG),
    (f"analysisThey ask.assistantfinal{LONG}", LONG),
    (f"<|start|>assistant<|message|>{LONG}", LONG),
    (f"<|channel|>final <|constrain|>text<|message|>{LONG}", LONG),
    (
        f"<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>final<|message|>{LONG}",
        f"Let me look. {LONG}",
    ),
    ("<|channel|>final<|message|>Hi.<|end|><|start|>assistant<|channel|>final<|message|>Ho.", "Hi. Ho."),
    # Ends of turns, and what a model makes up behind them.
    *((f"{LONG}{end}", LONG) for end in ENDS),
    (f"{LONG}<|im_end|>\n<|im_start|>user\nAnd on Sunday?", LONG),
    (f"{LONG}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd on Sunday?", LONG),
    (f"<|im_start|>assistant\n{LONG}", LONG),
    (f"<|start_header_id|>assistant<|end_header_id|>\n\n{LONG}", LONG),
    (f"<s>{LONG}</s>", LONG),
    (f"<start_of_turn>model\n{LONG}<end_of_turn>", LONG),
    (f"<|turn>model\n{LONG}<turn|>\n<|turn>user\nAnd on Sunday?", LONG),
    (f"[INST] Are you open? [/INST] {LONG}", LONG),
    ("We are open<|vision_pad|> until ten.", LONG),
    # What is none of it.
    ("<thin", "<thin"),
    ("<b>Hello</b>", "<b>Hello</b>"),
    *(
        (text, text)
        for text in (
            "I <3 you, and 1 < 2 <= 3",
            "x < t and y > 5",
            "a <thinker> and <toolshed>, <functional>",
            "It is < think of it",
            "<end of the story>",
            "f",
            "of func",
            "A functool, if",
            "the tools> here",
            "<think about it, and not of it or of anything else that comes to mind, as I said",
            "<p>Our <em>thoughts</em></p>",
        )
    ),
    ("Is x < 5, and [y] or {z}? [laughs] a `b`", "Is x < 5, and [y] or {z}? [laughs] a `b`"),
    ("An assistant will finally come. A", "An assistant will finally come. A"),
    *(
        (text, text)
        for text in (
            "We have [double(queen)] rooms at 90, and [single(twin)] at 70. Which?",
            "[Name(s)] of guests please",
            "It is [note(a) and then more. We open at ten.",
            "[f(",
            "[see(page 3)]",
            "The [total(a, b)] is 5",
        )
    ),
    ('{"name": "Ann", "arguments": "two guests"}', '{"name": "Ann", "arguments": "two guests"}'),
    ('{"answer": "yes"} {"name": "Ann"}', '{"answer": "yes"} {"name": "Ann"}'),
    ("```python\nprint()\n```", "```python\nprint()\n```"),
]
CALLED = [
    *(
        (f"{opens}weather>{CALL}{closes}{LONG if closes else ''}", LONG if closes else "")
        for opens, closes in CALLS.items()
    ),
    (CALL, ""),
    ('{"name": "weather", "parameters": {"city": "Rome"}}', ""),
    ('{"type": "function", "function": {"name": "weather", "arguments": "{}"}}', ""),
    ('{"tool_calls": [{"name": "weather"}]}', ""),
    (f"[{CALL}, {CALL}]", ""),
    (f"```json\n{CALL}\n```", ""),
    (f"```\n[\n  {CALL}\n]\n```", ""),
    (f"Let me look. {CALL} One moment.", "Let me look. One moment."),
    (f"<think>I need it.</think>\n{CALL}", ""),
    ('{"name": "weather", "arguments": {"ci', ""),
    ('[weather(city="Rome"), weather(city="Oslo")]', ""),
    *(
        (f"{call} {LONG}", LONG)
        for call in (
            '[my-tool(city="Rome")]',
            '[default_api.weather(city="Rome")]',
            "[end()]",
            "[end( ), end()]",
            "[w( a = 1 )]",
        )
    ),
    ('analysisHm assistantcommentary to=functions.weather json{"city": "Rome"}', ""),
    (f"analysisHm assistantcommentary to=functions.weather json{{}}assistantfinal{LONG}", LONG),
    ('<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Rome"}<|call|>', ""),
    ("<|start|>assistant<|channel|>commentary to=functions.weather<|message|>{}<|call|>", ""),
]


def read(pieces: Iterable[str], habits: Habits | None = None, *, cut: bool = False) -> tuple[str, bool]:
    """What is said of them in the end, and whether a tool was called in words."""
    spoken, said, called = SpokenFilter(habits), "", False
    steps = [*map(spoken.push, pieces), spoken.rest(cut=cut)]
    for each in [each for step in steps for each in step]:
        if isinstance(each, str):
            assert each
            said += each
        elif each is StreamCorrection.WITHDRAWN:
            assert said or called, "there was something"
            said, called = "", False
        else:
            called = True
    return said, called


def sizes(stream: str) -> list[list[str]]:
    """Cut into pieces of each size, and in two at each place."""
    equal = [[stream[at : at + size] for at in range(0, len(stream), size)] for size in (1, 2, 3, 5, 8, 1000)]
    return equal + [[stream[:at], stream[at:]] for at in range(len(stream))]


@pytest.mark.parametrize(("stream", "said"), STREAMS)
def test_what_is_said_however_it_is_cut(stream: str, said: str) -> None:
    assert {read(pieces) for pieces in sizes(stream)} == {(said, False)}


@pytest.mark.parametrize(("stream", "said"), CALLED)
def test_calls_of_tools_in_words_are_not_said(stream: str, said: str) -> None:
    assert {read(pieces) for pieces in sizes(stream)} == {(said, True)}


@pytest.mark.parametrize("tokens", [
    ["Hello", ",", " you", ". ", "Bye"], ["if", " x", " <", " 5", ","], ["[", "laughs", "] ", "Yes"], ["{", "x", "}"],
])  # fmt: skip
def test_words_wait_for_no_more_than_the_sign_that_may_begin_a_mark(tokens: list[str]) -> None:
    spoken = SpokenFilter()
    behind, so_far = "", ""
    for token in tokens:
        so_far += token
        behind += "".join(each for each in spoken.push(token) if isinstance(each, str))
        assert len(so_far.rstrip()) - len(behind) <= len("[laughs"), "an open bracket at most"
    spoken.rest()
    assert [SpokenFilter().push(token) for token in ("Hello", "Yes.")] == [["Hello"], ["Yes."]]


def habits(*, thinks_first: bool = False) -> Habits:
    return Habits("The server", "set the reasoning parser", "set the tool parser", thinks_first=thinks_first)


def test_who_thought_first_is_held_from_then_on_until_an_answer_was_none_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    known = habits()
    first = SpokenFilter(known)
    assert first.push("They greet me, so I greet") == ["They greet me, so I greet"]
    assert first.push(" them.</think>Hello.") == [StreamCorrection.WITHDRAWN, "Hello."]
    second = SpokenFilter(known)
    assert second.push("Now they ask.") == [] and second.push(" I answer.") == []
    assert second.push("</thi") == [] and second.push("nk>\nYes") == ["Yes"], "nothing has to be withdrawn"
    third = SpokenFilter(known)
    assert third.push(LONG) == [] and third.rest() == [LONG], "nothing is lost"
    assert SpokenFilter(known).push(LONG) == [LONG], "a caller can have a model say </think>"
    [line] = caplog.messages
    assert line.startswith("The server leaves thoughts") and "</think>" in line and "set the reasoning parser" in line


def test_a_server_whose_template_opens_thoughts_can_be_said_to() -> None:
    known = habits(thinks_first=True)
    for _ in range(2):
        assert read(["They greet me.", "</think>", "Hello."], known) == ("Hello.", False)
        assert read([LONG], known) == (LONG, False)
        assert read(["They greet"], known, cut=True) == ("", False), "it ended in the middle of its thoughts"
        assert read(["<think>They greet me.</think>Hello."], known) == ("Hello.", False)
    spoken = SpokenFilter(known)
    assert spoken.push("They greet me.") == []


def test_each_kind_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    known = habits()
    for _ in range(3):
        read([f"<think>Hm.</think>{CALL}"], known)
    thoughts, calls = caplog.messages
    assert "leaves thoughts" in thoughts and "leaves tool calls" in calls and "set the tool parser" in calls
    assert "Rome" not in calls, "no words of callers"
