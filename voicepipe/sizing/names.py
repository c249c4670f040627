"""Models by the names under which people know them: ours, the hub's, and those of quantised copies. Pure."""

import re
from difflib import get_close_matches
from typing import NamedTuple

from voicepipe.sizing.shapes import HUB, LLMS

NARROW = {
    "fp8": r"fp8|int8|w8a8|w8a16|8bit",
    "awq4": r"awq|gptq|int4|w4a16|nvfp4|mxfp4|4bit|bnb",
}
"""How names of quantised copies say their weights' bits; those of methods mean 4 where nothing else is said. 8-bit
integers take what fp8 does."""
MANNER = re.compile(
    rf"instruct|chat|it|hf|base|dynamic|quantized|bf16|fp16|v\d+(\.\d+)?|\d{{4}}|{'|'.join(NARROW.values())}"
)
"""Parts of a name that change nothing of a model's shape: how it was trained or stored, and when."""

TOOL_CALLS = {"qwen": "hermes", "llama-3.": "llama3_json"}
"""How models whose names begin so write tool calls, by vLLM's names of parsers. Llama 3.0 was not trained to."""


class NamedModel(NamedTuple):
    name: str
    """Of `shapes.LLMS`."""
    source: str
    """What `vllm.model` is to be."""
    dtype: str
    """In which its weights are stored, if they are quantised; empty: 16-bit."""


def known(text: str) -> NamedModel | None:
    """None: no such model is known."""
    owner, _, last = text.rpartition("/")
    parts = [part for part in re.split(r"[-_]|\.(?!\d)", last.lower()) if part]
    kept = [part for part in parts if not MANNER.fullmatch(part)]
    name = "-".join(kept).removeprefix("meta-")
    if name not in LLMS:
        return None
    dtype = next((dtype for dtype, bits in NARROW.items() if any(re.fullmatch(bits, part) for part in parts)), "")
    return NamedModel(name, text if owner else (HUB[name] if not dtype else last), dtype)


def near(text: str) -> str:
    """The known name that is most like it; empty: none is."""
    return next(iter(get_close_matches(text.rpartition("/")[2].lower(), LLMS, n=1)), "")


def tool_call_parser(text: str) -> str:
    """What `vllm.tool_call_parser` is to be for the model of this name; empty: we do not know."""
    name = found.name if (found := known(text)) else ""
    return next((parser for begins, parser in TOOL_CALLS.items() if name.startswith(begins)), "")
