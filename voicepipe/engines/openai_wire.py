"""What is said to a server of the OpenAI kind and what it says back, as data: no socket, no clock.

https://platform.openai.com/docs/api-reference/chat-streaming, as vLLM, SGLang, llama.cpp and TensorRT-LLM speak it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines import chat
from voicepipe.engines.base import Delta, Prompt
from voicepipe.engines.called import Called
from voicepipe.engines.spoken import SpokenFilter
from voicepipe.errors import EngineError
from voicepipe.foreign_json import decode

LONGEST_EVENT = 1 << 20
"""Bytes; no token is as long."""
LONGEST_ANSWER = 1 << 16
"""Bytes of a refusal that are read."""
LONGEST_TEXT = 1 << 18
"""Characters of one reply, thoughts too: hours of speech."""
MOST_SILENT = 10_000
"""Events in a row that say nothing: thoughts, or a server that went wild."""
SHOWN = 300
"""Characters of a server's own words in our message."""


# --- the request --------------------------------------------------------------------------------------------------


def request(config: OpenAiConfig, model: str, prompt: Prompt) -> dict[str, Any]:
    """The body of POST /chat/completions. What the configuration adds wins over ours."""
    body: dict[str, Any] = {
        "model": model,
        "messages": chat.messages(prompt),
        "temperature": config.temperature,
        "max_tokens": prompt.max_tokens or config.max_tokens,
    }
    if tools := chat.tools(prompt):
        body |= {"tools": tools, "tool_choice": chat.choice(prompt)}
    body |= config.body
    if isinstance(priority := config.body.get("priority"), int):
        body["priority"] = priority + prompt.speculative  # vLLM: the lower is served first.
    return body | {"stream": True}


# --- the answer ---------------------------------------------------------------------------------------------------


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Fragment(msgspec.Struct):
    """Of a tool call: see `called`."""

    index: int = 0
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    error: Any = None
    object: str = ""


class Lines:
    """Bytes as they come -> the data of server-sent events. Not by `aiter_lines`, which also breaks at U+2028."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events that are complete. Raises EngineError: this is no stream of events."""
        # Only the new piece is searched, and what came before is copied once: a line may come a byte at a time.
        lines: list[bytes] = []
        if (end := piece.rfind(b"\n")) >= 0:
            lines = bytes(self._rest + piece[:end]).split(b"\n")
            self._rest = bytearray()
        self._rest += piece[end + 1 :]
        if len(self._rest) > LONGEST_EVENT:
            raise EngineError("The language model's server sends no events: look whether openai.base_url is right.")
        for line in lines:
            if line.startswith(b"data:"):
                yield line.removeprefix(b"data:").strip()


class StreamedReply:
    """One reply of at most `max_tokens`, thoughts too, put together from its events."""

    def __init__(self, max_tokens: int = 0) -> None:
        self._most_silent = max(MOST_SILENT, max_tokens)
        self.over = False
        """The server said that it is complete."""
        self._spoken = SpokenFilter()
        self._called = Called()
        self._length = 0
        self._silent = 0

    def take(self, event: bytes) -> str:
        """What the event adds to what is said, perhaps nothing. Raises EngineError: it reports one, babbles, or does
        not end."""
        self._silent += 1
        if self._silent > self._most_silent:
            raise EngineError(f"The language model's server sent {self._silent} events that say nothing: see its log.")
        if event == b"[DONE]":
            self.over = True
            return ""
        try:
            chunk = decode(event, _Chunk)
        except msgspec.DecodeError as error:
            raise EngineError(f"The language model's server sent what is no chat completion: {error}.") from None
        if chunk.error or chunk.object == "error":
            raise EngineError(f"The language model's server failed: {complaint(event)}")
        text = ""
        for choice in chunk.choices[:1]:
            text = choice.delta.content or ""
            for fragment in choice.delta.tool_calls or ():
                function = fragment.function
                self._called.add(fragment.index, fragment.id, function.name, function.arguments)
                if function.arguments:
                    self._silent = 0
            self.over |= choice.finish_reason is not None
        self._length += len(text)
        if self._length > LONGEST_TEXT:
            raise EngineError(f"A reply of the language model has more than {LONGEST_TEXT} characters: see its log.")
        said = self._spoken.push(text)
        if said:
            self._silent = 0
        return said

    def rest(self) -> Iterator[Delta]:
        """Once the stream has ended: text that was held back, and the tools that it calls, whole, in order."""
        if text := self._spoken.rest():
            yield text
        yield from self._called


def complaint(body: bytes) -> str:
    """A server's own words about what went wrong, on one line."""
    body = body[:LONGEST_ANSWER]
    try:
        found = decode(body)
    except msgspec.DecodeError:
        found = body.decode("utf-8", "replace")
    while isinstance(found, dict):
        inner = next((found[key] for key in ("error", "message", "detail") if found.get(key)), None)
        found = str(found) if inner is None else inner  # The text of each level would be the square of the depth.
    return " ".join(str(found).split())[:SHOWN]


def names(body: bytes) -> list[str]:
    """The models of an answer to GET /models; none if it is not one. A PoP lists its agents so, which are no models."""
    try:
        return [model.id for model in decode(body, _Models).data if model.owned_by != "voicepipe"]
    except msgspec.DecodeError:
        return []


class _ListedModel(msgspec.Struct):
    id: str
    owned_by: Any = None


class _Models(msgspec.Struct):
    data: list[_ListedModel] = []
