"""What models write beside their words, by how their templates have it: thoughts, channels, tool calls, ends of turns.
A server that parses what its model writes leaves none of it in the text. Many do not, or for some models not.

The tables name what is looked for; `spoken.py` decides what becomes of the text around it.
"""

import json
import re
from typing import Any

import regex

THOUGHTS = {
    "<think>": "</think>",  # Qwen, DeepSeek, GLM, MiniMax and most others
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",  # EXAONE, Gemini
    "<thoughts>": "</thoughts>",
    "<reasoning>": "</reasoning>",
    "<reflection>": "</reflection>",
    "<scratchpad>": "</scratchpad>",
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "◁think▷": "◁/think▷",  # Kimi-VL
    "[THINK]": "[/THINK]",  # Magistral
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A
}
"""What begins thoughts, and what ends them."""
CALLS = {
    "<tool_call>": "</tool_call>",  # Qwen, Hermes, GLM
    "<tool_calls>": "</tool_calls>",
    "<toolcall>": "</toolcall>",  # Nemotron
    "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>",
    "<functioncall>": "</functioncall>",
    "<function=": "</function>",  # Llama 3.1, Qwen3-Coder
    "<invoke ": "</invoke>",
    "<minimax:tool_call>": "</minimax:tool_call>",
    "<seed:tool_call>": "</seed:tool_call>",
    "<tool_response>": "</tool_response>",  # a result that the model made up
    "<|tool_call|>": "<|/tool_call|>",  # Phi-4-mini, Granite
    "<|tool_call_start|>": "<|tool_call_end|>",  # LFM2
    "<|tool_call_begin|>": "<|tool_call_end|>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi K2
    "<|action_start|>": "<|action_end|>",  # InternLM
    "<|START_ACTION|>": "<|END_ACTION|>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # DeepSeek
    "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",
    "[TOOL_CALL]": "[/TOOL_CALL]",
    "```tool_call": "```",
    "```tool_code": "```",  # Gemma
    "<|python_tag|>": "",  # Llama 3
    "[TOOL_CALLS]": "",  # Mistral
}
"""What begins a tool call, and what ends it; empty: the end of the reply."""
ENDS = (
    "</s>", "<eos>", "<end_of_turn>", "<start_of_turn>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>",
    "<|endoftext|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|return|>", "<|call|>", "<|user|>", "<｜User｜>",
    "<｜end▁of▁sentence｜>", "[INST]", "[/INST]",
)  # fmt: skip
"""What ends the model's turn: it may go on and make up the caller's next one."""
HEADERS = {"<|im_start|>": "\n", "<|start_header_id|>": "<|end_header_id|>"}
"""What begins a turn, and where its text begins."""
NOTHING = ("<answer>", "</answer>", "<response>", "</response>", "<s>", "<bos>", "</tool_call>", "</function>")
"""Marks around what is said."""

CHANNEL, MESSAGE, START, END = "<|channel|>", "<|message|>", "<|start|>", "<|end|>"
"""Of gpt-oss's harmony: <|start|>assistant<|channel|>final<|message|>words<|return|>. Only what stands in the channel
"final" is meant for the user. https://cookbook.openai.com/articles/openai-harmony"""


def _any(words: Any) -> str:
    return "|".join(regex.escape(word) for word in sorted(words, key=len, reverse=True))


FINAL = r"<\|channel\|>\s{0,4}final\s{0,4}<\|message\|>|assistantfinal"
"""Where the answer begins, in harmony; "assistantfinal" where a server left the special tokens out."""
CLOSED = rf"(?P<closed>{_any(THOUGHTS.values())}|{FINAL})"
PYTHONIC = r"\[[A-Za-z_][\w.-]{0,63}\((?=\s{0,8}(?:\w{1,64}\s{0,4}=|\)\s{0,4}[\],]))"
"""Llama 4: [weather(city="Rome")]. Who says [double(queen)] names no argument."""
SPECIAL = r"<[|｜][^<>|｜\s]{1,40}[|｜]>"
"""A special token that no table knows."""
JSON = r"(?P<json>(?:```\w{0,20}\s{0,8})?(?:\{\s{0,40}\"|\[\s{0,40}\{\s{0,40}\"))"
"""JSON begins. Nobody says that; it may be an answer all the same."""

ANY_CASE = regex.IGNORECASE | regex.ASCII
THOUGHT_SIGNS = regex.compile(f"{CLOSED}|{_any((*THOUGHTS, CHANNEL))}", ANY_CASE)
"""What ends thoughts, or opens them."""
MARKS = regex.compile(
    "|".join(
        (
            CLOSED,
            f"(?P<thought>{_any(THOUGHTS)})",
            f"(?P<call>{_any(CALLS)}|{PYTHONIC})",
            f"(?P<end>{_any(ENDS)})",
            f"(?P<header>{_any(HEADERS)})",
            f"(?P<channel>{_any((CHANNEL, START))})",
            f"(?P<between>{_any((END,))})",
            f"(?P<nothing>{_any(NOTHING)}|{SPECIAL})",
            JSON,
        )
    ),
    ANY_CASE,
)
PLAIN = "assistantfinal"
_BEGUN = "".join(f"(?:{sign}" for sign in PLAIN[1:]) + ")?" * (len(PLAIN) - 1)
MAY_BEGIN = re.compile(rf"<(?=[a-zA-Z/|｜]|\Z)|\[(?=[a-zA-Z_/{{\s]|\Z)|[{{`◁]|(?i:{PLAIN}|{PLAIN[0]}{_BEGUN}\Z)")
"""Where one of MARKS may begin: quick, since most text has none."""
CHANNEL_TEXT = regex.compile(_any((MESSAGE,)))
CHANNEL_ENDS = regex.compile(_any((CHANNEL, START)))
"""Where the next message of harmony begins."""
CLOSING = {
    opens.lower(): regex.compile(regex.escape(closes) if closes else r"(?!)", ANY_CASE)
    for opens, closes in (THOUGHTS | CALLS | HEADERS).items()
}
PYTHONIC_ENDS, FENCE_ENDS = regex.compile(r"\)\s{0,8}\]"), regex.compile("```")
_STRUCTURE = re.compile(r'["\\{}\[\]]')


class JsonText:
    """JSON that comes in pieces: where it ends. Looks at each character once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._depth = 0
        self._quoted = False
        self._escaped = -1
        """The character at this place follows a backslash."""

    def push(self, piece: str) -> str | None:
        """What stands behind its end; None: it has not ended."""
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
        """It is a tool call, or several; of one that has not ended, it looks like one."""
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
    """An object, or one as text: {"name": "Ann", "arguments": "two guests"} is an answer."""
    if not isinstance(said, str):
        return isinstance(said, dict)
    try:
        return isinstance(json.loads(said or "{}"), dict)
    except (ValueError, RecursionError):
        return False
