"""Conversations that are too long lose their oldest turns first, and the system's message never."""

from voicepipe.engines.llm.chat import Chat, shorter

SYSTEM = {"role": "system", "content": "Be brief."}


def talk(turns: int) -> list[Chat]:
    return [{"role": role, "content": f"{role} {turn}"} for turn in range(turns) for role in ("user", "assistant")][:-1]


def beginnings(messages: list[Chat]) -> list[str]:
    """The first message after the system's, of each attempt."""
    return [attempt[attempt[0] == SYSTEM]["content"] for attempt in shorter(messages)]


def test_the_oldest_turns_go_first() -> None:
    assert beginnings([SYSTEM, *talk(12)])[:5] == ["user 0", "user 2", "user 4", "user 8", "user 11"]


def test_one_more_turn_is_cut_at_the_same_places() -> None:
    assert beginnings(talk(12))[:4] == beginnings(talk(13))[:4]


def test_the_system_and_the_callers_last_words_stay() -> None:
    for attempt in shorter([SYSTEM, *talk(12)]):
        assert attempt[0] == SYSTEM
        assert attempt[-1]["role"] == "user"


def test_at_last_the_longest_text_loses_its_middle() -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1"}]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "first" + 1000 * "x" + "last"}
    _, _, halved, quartered, *_ = shorter([SYSTEM, {"role": "user", "content": "What is it?"}, called, result])
    assert [message["content"] for message in quartered[:3]] == ["Be brief.", "What is it?", ""]
    text = halved[-1]["content"]
    assert text.startswith("first") and text.endswith("last") and len(text) < 600


def test_it_ends() -> None:
    attempts = list(shorter([SYSTEM, {"role": "user", "content": "x" * 100_000}]))
    assert len(attempts) < 30
    assert attempts[-1][-1]["content"] == ""
