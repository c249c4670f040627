"""Models by the names under which people know them: ours, the hub's, and those of quantised copies. Pure."""

import re
from difflib import get_close_matches
from typing import NamedTuple

from voicepipe.sizing.shapes import HUB, LLMS

NARROW = {
    "fp8": r"fp8|int8|w8a8|w8a16|8bit",
    "awq4": r"awq|gptq|int4|w4a16|nvfp4|mxfp4|4bit|bnb",
}
"""Parts of names of quantised copies that give their weights' bits; those of methods mean 4 where nothing else is
given. 8-bit integers count as fp8."""
MANNER = re.compile(
    rf"instruct|chat|it|hf|base|dynamic|quantized|bf16|fp16|v\d+(\.\d+)?|\d{{4}}|{'|'.join(NARROW.values())}"
)
"""Parts of a name that change nothing of a model's shape: how it was trained or stored, and when."""

TOOL_CALLS = {"qwen": "hermes", "llama-3.": "llama3_json"}
"""Formats of tool calls, by the beginnings of models' names, as vLLM names their parsers. Llama 3.0 was not trained to
make any."""


class NamedModel(NamedTuple):
    """A model that is known by its name."""

    name: str
    """Its name in `shapes.LLMS`."""
    source: str
    """The value for `vllm.model`."""
    dtype: str
    """The type of its weights, if they are quantised; empty: 16-bit."""


def known_model(text: str) -> NamedModel | None:
    """The model of this name. None: it is not known."""
    owner, _, last = text.rpartition("/")
    parts = [part for part in re.split(r"[-_]|\.(?!\d)", last.lower()) if part]
    kept = [part for part in parts if not MANNER.fullmatch(part)]
    name = "-".join(kept).removeprefix("meta-")
    if name not in LLMS:
        return None
    dtype = next((dtype for dtype, bits in NARROW.items() if any(re.fullmatch(bits, part) for part in parts)), "")
    return NamedModel(name, text if owner else (HUB[name] if not dtype else last), dtype)


def nearest_name(text: str) -> str:
    """The known name that is most similar; empty: none is."""
    return next(iter(get_close_matches(text.rpartition("/")[2].lower(), LLMS, n=1)), "")


def tool_call_parser(text: str) -> str:
    """The value for `vllm.tool_call_parser` for the model of this name; empty: unknown."""
    name = found.name if (found := known_model(text)) else ""
    return next((parser for begins, parser in TOOL_CALLS.items() if name.startswith(begins)), "")
