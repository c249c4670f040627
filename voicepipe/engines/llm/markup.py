"""What models write beside their words, by how their templates have it: thoughts, channels, tool calls, ends of turns.
A server that parses what its model writes leaves none of it in the text. Many do not, or for some models not.

The tables name what is looked for; `spoken_text.py` decides what becomes of the text around it.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import regex

THOUGHT_NAMES = ("thinking", "think", "thoughts", "thought", "reasoning", "reflection", "scratchpad", "analysis")
"""Of thoughts, and of tool calls and their results, as tags and special tokens have them: <think>, <mm:think>,
<|begin_of_thought|>, <|/think|>, ◁think▷, <｜tool▁calls▁begin｜>, <tool_call|>. "_" stands for what parts the words."""
CALL_NAMES = (
    "tool_calls", "tool_call", "tool_use", "tool_code", "tool_results", "tool_result", "tool_responses",
    "tool_response", "tool_outputs", "tool_output", "tools", "function_calls", "function_call", "function", "invoke",
)  # fmt: skip
THOUGHTS = {
    "[THINK]": "[/THINK]",  # Magistral
    "<|channel>": "<channel|>",  # Gemma 4
}
"""Other things that begin thoughts, and what ends them."""
CALLS = {
    "<function=": "</function>",  # Llama 3.1, Qwen3-Coder
    "<|action_start|>": "<|action_end|>",  # InternLM
    "<|START_ACTION|>": "<|END_ACTION|>",  # Command A
    "[TOOL_CALL]": "[/TOOL_CALL]",
    "```tool_call": "```",
    "```tool_code": "```",  # Gemma
    "✿FUNCTION✿": "✿RETURN✿",  # Qwen 2
    "<|python_tag|>": "",  # Llama 3
    "[TOOL_CALLS]": "",  # Mistral
    "[ARGS]": "",
    "functools[": "",  # Phi-4-mini
}
"""Other things that begin a tool call, and what ends it; empty: the end of the reply."""
ENDS = (
    "</s>", "<eos>", "<end_of_turn>", "<turn|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>",
    "<|endoftext|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|return|>", "<|call|>", "<|user|>", "<｜User｜>",
    "<｜end▁of▁sentence｜>", "[/INST]",
)  # fmt: skip
"""Marks that end the model's turn: it may go on and make up the caller's next one."""
HEADERS = {
    "<|im_start|>": "\n",
    "<start_of_turn>": "\n",
    "<|turn>": "\n",  # Gemma 4
    "<|start_header_id|>": "<|end_header_id|>",
    "[INST]": "[/INST]",
}
"""Marks that begin a turn, and the mark at which its text begins."""
NOTHING = ("<answer>", "</answer>", "<response>", "</response>", "<s>", "<bos>")
"""Marks around what is said."""

CHANNEL, MESSAGE, START, END = "<|channel|>", "<|message|>", "<|start|>", "<|end|>"
"""Of gpt-oss's harmony: <|start|>assistant<|channel|>final<|message|>words<|return|>. What stands in the channel
"final" is meant for the user, and so is "commentary" that is no call. https://cookbook.openai.com/articles/openai-harmony"""


def _any(words: Any) -> str:
    return "|".join(regex.escape(word) for word in sorted(words, key=len, reverse=True))


_BAR, _PREFIX, _SUFFIX = "[|｜]", "(?:[a-z]{1,16}[:_|｜]){0,2}", "(?:[_▁](?:section|argument|start|begin)){0,2}"


def _names(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(name.replace('_', '[-_▁ ]?') for name in names)})"


def _opens(names: Iterable[str]) -> str:
    """A pattern of the marks that open what has one of these names."""
    begins = rf"(?:<(?!\w{{1,40}}{_BAR}>)\s?{_BAR}?\s?|◁)(?!end)"
    return rf"{begins}{_PREFIX}{_names(names)}{_SUFFIX}(?=[\s=|｜>▷])[^<>▷]{{0,60}}[>▷]"


def _closes(names: Iterable[str]) -> str:
    """A pattern of the marks that close what has one of these names."""
    name = _names(names)
    inner = rf"/\s?{_BAR}?{_PREFIX}{name}|end_(?:of_)?{name}|{_PREFIX}{name}(?:[_▁]section)?[_▁]end"
    return rf"(?:<\s?{_BAR}?\s?|◁)(?:{inner})\s?{_BAR}?\s?[>▷]|<{name}{_BAR}>"


FINAL = r"<\|channel\|>\s{0,4}final\s{0,4}<\|message\|>|assistantfinal"
COMMENTARY = r"assistantcommentary\s{0,4}to="
"""In harmony, where the answer begins, or a call; without "<|" where a server left the special tokens out."""
CLOSED = f"(?P<closed>{_closes(THOUGHT_NAMES)}|{_any(THOUGHTS.values())}|{FINAL}|{COMMENTARY})"
THOUGHT = f"{_opens(THOUGHT_NAMES)}|{_any(THOUGHTS)}"
PYTHONIC = r"\[[A-Za-z_][\w.-]{0,63}\((?=\s{0,8}(?:\w{1,64}\s{0,4}=|\)\s{0,4}[\],]))"
"""Llama 4: [weather(city="Rome")]. Who says [double(queen)] names no argument."""
SPECIAL = r"<[|｜][^<>|｜\s]{1,40}[|｜]>|<[|｜]\w{1,40}>|<\w{1,40}[|｜]>"
"""A special token that no table knows."""
JSON = r"(?P<json>(?:```\w{0,20}\s{0,8})?(?:\{\s{0,40}\"|\[\s{0,40}\{\s{0,40}\"))"
"""JSON begins. Nobody says that; it may be an answer all the same."""

ANY_CASE = regex.IGNORECASE | regex.ASCII
THOUGHT_SIGNS = regex.compile(f"{CLOSED}|{THOUGHT}|{_any((CHANNEL,))}", ANY_CASE)
"""Marks that end thoughts, or open them."""
MARKS = regex.compile(
    "|".join(
        (
            CLOSED,
            f"(?P<thought>{THOUGHT})",
            f"(?P<call>{_opens(CALL_NAMES)}|{_any(CALLS)}|{PYTHONIC})",
            f"(?P<end>{_any(ENDS)})",
            f"(?P<header>{_any(HEADERS)})",
            f"(?P<channel>{_any((CHANNEL, START))})",
            f"(?P<between>{_any((END,))})",
            f"(?P<nothing>{_any(NOTHING)}|{_closes(CALL_NAMES)}|{SPECIAL})",
            JSON,
        )
    ),
    ANY_CASE,
)


def _begun(word: str) -> str:
    """A pattern of the word, or of its beginning at the end of a piece."""
    return f"{word}|{word[0]}" + "".join(f"(?:{sign}" for sign in word[1:]) + ")?" * (len(word) - 1) + r"\Z"


MAY_BEGIN = re.compile(
    rf"<(?=[a-zA-Z/|｜\s]|\Z)|\[(?=[a-zA-Z_/{{\s]|\Z)|[{{`◁✿]|(?i:{_begun('assistant')}|\b(?:{_begun('functools')}))"
)
"""Where one of MARKS may begin: quick, since most text has none."""
CHANNEL_TEXT = regex.compile(_any((MESSAGE,)))
CHANNEL_ENDS = regex.compile(_any((CHANNEL, START)))
"""The mark at which the next message of harmony begins."""
ANSWER = regex.compile(FINAL, ANY_CASE)
PYTHONIC_ENDS, FENCE_ENDS = regex.compile(r"\)\s{0,8}\]"), regex.compile("```")
_CLOSING = {
    opens.lower(): regex.compile(regex.escape(closes) if closes else r"(?!)", ANY_CASE)
    for opens, closes in (THOUGHTS | CALLS | HEADERS).items()
}
_CLOSING_NAMES = [
    (regex.compile(rf"{_names((name,))}{_SUFFIX}(?=[\s=|｜>▷])", ANY_CASE), regex.compile(_closes((name,)), ANY_CASE))
    for name in (*THOUGHT_NAMES, *CALL_NAMES)
]


def closing(mark: str) -> Any:
    """The pattern of what closes the thoughts, the call or the header that `mark` opens: its name once more."""
    if known := _CLOSING.get(mark.lower()):
        return known
    named = (closes for name, closes in _CLOSING_NAMES if name.search(mark))
    return next(named, PYTHONIC_ENDS) if mark[0] in "<◁" else PYTHONIC_ENDS


_STRUCTURE = re.compile(r'["\\{}\[\]]')


class JsonText:
    """Finds the end of JSON that comes in pieces. Looks at each character once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._depth = 0
        self._quoted = False
        self._escaped = -1
        """Index of a character that follows a backslash."""

    def push(self, piece: str) -> str | None:
        """Take a piece. Returns the text behind the JSON's end; None: it has not ended."""
        for found in _STRUCTURE.finditer(piece):
            sign, at = found.group(), found.start()
            if at == self._escaped:
                self._escaped = -1
            elif self._quoted:
                if sign == '"':
                    self._quoted = False
                elif sign == "\\":
                    self._escaped = at + 1
            elif sign == '"':
                self._quoted = True
            elif sign != "\\":
                self._depth += 1 if sign in "{[" else -1
                if self._depth <= 0:
                    self._pieces.append(piece[: at + 1])
                    return piece[at + 1 :]
        self._escaped = 0 if self._escaped == len(piece) else -1
        self._pieces.append(piece)
        return None

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def calls(self) -> bool:
        """Whether it is a tool call, or several; of JSON that has not ended, whether it looks like one."""
        text = self.text
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return '"name"' in text and ('"parameters"' in text or '"arguments"' in text)
        return _calls(read)


def _calls(read: Any) -> bool:
    if isinstance(read, list):
        return bool(read) and all(_calls(each) for each in read)
    if not isinstance(read, dict):
        return False
    if any(isinstance(read.get(key), dict | list) for key in ("tool_calls", "function_call", "tool_call")):
        return True
    inner = read.get("function")
    about = inner if isinstance(inner, dict) else read
    name = next(
        (about[key] for key in ("name", "tool", "tool_name", "function") if isinstance(about.get(key), str)), ""
    )
    return bool(name) and any(_arguments(about.get(key)) for key in ("arguments", "parameters", "args"))


def _arguments(said: Any) -> bool:
    """Whether it is an object, or one as text: {"name": "Ann", "arguments": "two guests"} is an answer."""
    if not isinstance(said, str):
        return isinstance(said, dict)
    try:
        return isinstance(json.loads(said or "{}"), dict)
    except (ValueError, RecursionError):
        return False
