"""Reads what a server of the OpenAI kind sends, as data: no socket, no clock.

https://platform.openai.com/docs/api-reference/chat-streaming, as vLLM, SGLang, llama.cpp, Ollama, Mistral, OpenRouter
and others speak it: everybody writes a little differently. What has the shape of a reply is taken, and what has not is
passed over. It is no failure unless it may have been words.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from voicepipe.base.errors import EngineError
from voicepipe.base.foreign_json import decode
from voicepipe.engines.base import Delta
from voicepipe.engines.llm.event_stream import DONE
from voicepipe.engines.llm.spoken_text import Habits, SpokenFilter
from voicepipe.engines.llm.tool_call_fragments import ToolCallFragments, index_of, text_of

LONGEST_ANSWER = 1 << 16
"""Bytes of a refusal that are read."""
LONGEST_TEXT = 1 << 18
"""Characters of one reply, thoughts too: hours of speech."""
MOST_SILENT = 10_000
"""Events in a row that say nothing: thoughts, or a server that went wild."""
SHOWN = 300
"""Characters of a server's own words in our message."""
NO_WORDS = re.compile("think|thought|reason|image|audio|video|file|tool|function|code", re.IGNORECASE)
"""In the types of those parts of a content that are none: "thinking", "reasoning_text", "image_url"."""
NO_REASON = ("", "null", "none")
"""Reasons to finish that are none: the reply goes on."""
CUT_SHORT = ("length", "max_tokens", "model_length")
"""Reasons to finish of a reply that reached its limit."""
FAILURES = ("error", "abort")
BESIDE = {"choices", "usage", "timings", "x_groq", "prompt_filter_results"}
"""Fields of events that are none of a reply's words, and nothing went wrong."""
PINGS = {b"ping", b"keep-alive", b"keepalive", b"heartbeat", b"[ping]", b"[end]"}
PARTS_DEEP = 8
"""Contents in contents are read no deeper."""


@dataclass(frozen=True, slots=True)
class _StreamedChoice:
    """What one event adds to the reply."""

    text: str
    calls: list[Any]
    reason: str
    """Why the reply ends; empty: it does not."""
    whole: bool
    """A message in place of a delta: of a server that does not stream, or that says all once more at the end."""


class StreamedReply:
    """Puts one reply of at most `max_tokens`, thoughts included, together from its stream's events."""

    def __init__(self, max_tokens: int = 0, habits: Habits | None = None, names: Collection[str] = ()) -> None:
        """`names`: the names of the tools that the model may call."""
        self._most_silent = max(MOST_SILENT, max_tokens)
        self.over = False
        """The server said that it is complete."""
        self.done = False
        """No more comes."""
        self.began = False
        """Words have come, or a tool call."""
        self._spoken = SpokenFilter(habits)
        self._called = ToolCallFragments(names)
        self._length = 0
        self._silent = 0
        self._cut = False
        """The reply reached its limit."""
        self._index: Any = None
        """Index of the choice that is read, where a server writes several."""
        self._streamed: list[str] = []
        self._by_delta = self._calls_by_delta = False
        """Words came in pieces, and so did calls: messages say them once more."""
        self._passed_over = b""
        """The first event since the last words that has nothing of a reply: the server may have failed there."""

    def take(self, event: bytes) -> list[Delta]:
        """The deltas that the event adds, perhaps none: words and corrections. Calls of tools are collected: `rest` has
        them once the stream has ended. Raises EngineError: the event reports an error, the server babbles, or does not
        end."""
        self._silent += 1
        if self._silent > self._most_silent:
            raise EngineError(f"The language model's server sent {self._silent} events that say nothing: see its log.")
        if event.upper() == DONE:
            if self._passed_over and not self.over:
                raise EngineError(f"The language model's server broke off a reply: {self.strange}")
            self.over = self.done = True
            return []
        read = _read(event)
        if self.over and (not isinstance(read, dict) or _failure(read)):
            return []  # The reply is there: what goes wrong behind it is nobody's concern.
        if isinstance(read, dict):
            if failure := _failure(read):
                raise EngineError(f"The language model's server failed: {failure}")
            if choice := self._choice(read):
                return self._add(choice)
        elif read is _Unreadable and event.startswith(b"{"):  # It may have been words.
            said = event[:SHOWN].decode("utf-8", "replace")
            raise EngineError(f"The language model's server sent what is no chat completion: {said}")
        if not _harmless(read, event):
            self._passed_over = self._passed_over or event[:SHOWN]
        return []

    def rest(self) -> Iterator[Delta]:
        """Once the stream has ended: text that was held back, and the tools that it calls, whole, in order."""
        yield from self._spoken.rest(cut=self._cut)
        yield from self._called

    @property
    def strange(self) -> str:
        """An event behind the last words that was none of a reply, for people; empty: there was none."""
        return " ".join(self._passed_over.decode("utf-8", "replace").split())

    def _choice(self, read: dict[str, Any]) -> _StreamedChoice | None:
        """The event's piece of the reply. `openai.body` may ask for several replies: only the first counts."""
        choices = read.get("choices")
        for choice in choices if isinstance(choices, list) else [choices]:
            if isinstance(choice, dict):
                index = index_of(choice.get("index"))
                self._index = index if self._index is None else self._index
                if index in (None, self._index):
                    return _of(choice)
        return None

    def _add(self, choice: _StreamedChoice) -> list[Delta]:
        if choice.whole:
            text, calls = self._new(choice.text), [] if self._calls_by_delta else choice.calls
        else:
            text, calls = choice.text, choice.calls
            self._by_delta |= bool(text.strip())
            self._calls_by_delta |= bool(calls)
        for fragment in calls:
            self._fragment(fragment)
        if choice.reason in FAILURES and not self.over:
            raise EngineError(f"The language model's server gave a reply up ({choice.reason}): see its log.")
        self.over |= bool(choice.reason)
        self._cut |= choice.reason in CUT_SHORT
        self.began |= bool(text or self._called)
        if text or calls:
            self._passed_over = b""
        self._length += len(text)
        if self._length > LONGEST_TEXT:
            raise EngineError(f"A reply of the language model has more than {LONGEST_TEXT} characters: see its log.")
        self._streamed.append(text)
        said = self._spoken.push(text) if text else []
        if said:
            self._silent = 0
        return list(said)

    def _new(self, text: str) -> str:
        """What a message says that has not been said before. Behind pieces it says the whole reply once more, perhaps
        without thoughts or with other spaces; messages in place of pieces may say the next one, or all up to there."""
        before = "".join(self._streamed)
        if before and text.startswith(before):
            return text[len(before) :]
        return "" if self._by_delta or (before.strip() and text.strip() == before.strip()) else text

    def _fragment(self, fragment: Any) -> None:
        if not isinstance(fragment, dict):
            return
        function = fragment.get("function")
        named = function if isinstance(function, dict) else fragment
        arguments = text_of(named.get("parameters") if named.get("arguments") is None else named["arguments"])
        name = named.get("name")
        self._called.add(
            index_of(fragment.get("index")),
            text_of(fragment.get("id")),
            name if isinstance(name, str) else "",
            arguments,
        )
        if arguments:
            self._silent = 0


# --- shapes -----------------------------------------------------------------------------------------------------


class _Unreadable:
    """A marker in place of JSON that cannot be read."""


def _read(event: bytes) -> Any:
    """The event as JSON: read strictly first, then leniently (NaN, half a surrogate pair, half a character, a tab in a
    text)."""
    try:
        return decode(event)
    except msgspec.DecodeError:
        pass
    try:
        return json.loads(event.decode("utf-8", "ignore"), strict=False)
    except (ValueError, RecursionError):
        return _Unreadable


def _failure(read: dict[str, Any]) -> str:
    """The failure that a server reports in place of a piece of the reply; empty: none."""
    if read.get("error") or read.get("object") == "error" or (read.get("type") == "error" and not read.get("choices")):
        return _words(read)
    return ""


def _harmless(read: Any, event: bytes) -> bool:
    """What servers send beside a reply: how much it took, what their filters say, a sign that they live."""
    if isinstance(read, dict):
        return not read or (not BESIDE.isdisjoint(read) and isinstance(read.get("choices"), list | dict | None))
    return read is None or event.strip(b'"').lower() in PINGS


def _of(choice: dict[str, Any]) -> _StreamedChoice:
    reason = choice.get("finish_reason")
    reason = reason.strip().lower() if isinstance(reason, str) else ""
    delta, message = choice.get("delta"), choice.get("message")
    if isinstance(delta, str):
        delta = {"content": delta}
    said = delta if isinstance(delta, dict) else message if isinstance(message, dict) else {}
    if not (said.get("content") or said.get("tool_calls")) and isinstance(message, dict):
        said = message
    text = _text(said.get("content")) or _text(said.get("refusal"))
    if not said and isinstance(choice.get("text"), str):
        text = _text(choice["text"])
    calls = said.get("tool_calls")
    calls = calls if isinstance(calls, list) else [calls] if isinstance(calls, dict) else []
    if isinstance(legacy := said.get("function_call"), dict):
        calls = [*calls, legacy]
    return _StreamedChoice(text, calls, "" if reason in NO_REASON else reason, whole=said is message)


def _text(content: Any, depth: int = 0) -> str:
    """The words of a content: text, parts of which some are text, or whatever else somebody put there."""
    if isinstance(content, str):
        # Halves of characters are in no file and on no wire. They are of emoji, which nobody says.
        return (
            content.replace("\0", "")
            if content.isascii()
            else content.replace("\0", "").encode("utf-8", "ignore").decode()
        )
    if isinstance(content, bool) or depth == PARTS_DEEP:
        return ""
    if isinstance(content, int | float):
        return str(content)
    if isinstance(content, list):
        return "".join(_text(part, depth + 1) for part in content)
    if not isinstance(content, dict) or content.get("thought") is True:  # Google's name for thinking.
        return ""
    kind = str(content.get("type") or "")
    if NO_WORDS.search(kind):
        return ""
    keys = ("text", "value", "content", "parts", kind.lower())
    return _text(next((content[key] for key in keys if key in content and key != "type"), ""), depth + 1)


# --- refusals and models ----------------------------------------------------------------------------------------


def complaint(body: bytes) -> str:
    """A server's own words about what went wrong, on one line."""
    body = body[:LONGEST_ANSWER]
    try:
        found = decode(body)
    except msgspec.DecodeError:
        found = body.decode("utf-8", "replace")
    return _words(found)


def _words(found: Any) -> str:
    while isinstance(found, dict) or (isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict)):
        if isinstance(found, list):
            found = found[0]
        inner = next((found[key] for key in ("error", "message", "detail") if found.get(key)), None)
        found = str(found) if inner is None else inner  # The text of each level would be the square of the depth.
    return " ".join(str(found).split())[:SHOWN]


def model_names(body: bytes) -> list[str]:
    """The models of an answer to GET /models; none if it is not one. A PoP lists its agents so, which are no models."""
    try:
        found = decode(body)
    except msgspec.DecodeError:
        return []
    listed = found.get("data") if isinstance(found, dict) else found
    models = [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []
    return [
        model["id"] for model in models if isinstance(model.get("id"), str) and model.get("owned_by") != "voicepipe"
    ]
