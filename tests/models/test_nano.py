"""What is committed in nano-llm/ is whole: a tokenizer that knows every text, sizes that two ranks can share."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.models.dialogues import AGENT, INTENTS

FOLDER = Path(__file__).parent / "nano-llm"
TOKENIZER = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
ROLES = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]


@given(st.text(st.characters(codec="utf-8")))
def test_every_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("mark", [*ROLES, "<tool_call>", "</tool_call>"])
def test_marks_are_one_token(mark: str) -> None:
    assert len(TOKENIZER.encode(mark).ids) == 1


def test_tool_calls_are_seen_by_what_parses_them() -> None:
    ids = TOKENIZER.encode("<|assistant|><tool_call>\n{}\n</tool_call><|end|>").ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == "<tool_call>\n{}\n</tool_call>"


def test_replies_are_short_in_tokens() -> None:
    for reply in (intent["reply"] for intent in INTENTS.values() if "{" not in intent["reply"]):
        assert len(TOKENIZER.encode(reply).ids) < 3 * len(reply.split())


def test_instructions_leave_room_for_a_call() -> None:
    assert len(TOKENIZER.encode(AGENT["instructions"]).ids) < 400


def test_two_ranks_can_share_it() -> None:
    config = json.loads((FOLDER / "config.json").read_text())
    shared = ("num_attention_heads", "num_key_value_heads", "intermediate_size", "hidden_size", "vocab_size")
    assert all(config[name] % 2 == 0 for name in shared)
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["vocab_size"] == TOKENIZER.get_vocab_size()


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 8_000_000
