"""vLLM's stream of one reply -> ours: words to speak, and whole tool calls."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from uuid import uuid4

from voicepipe.engines.base import Delta, ToolCall
from voicepipe.engines.spoken import Spoken
from voicepipe.errors import EngineError


class Output(Protocol):
    """What one or several steps of the model added: vLLM's CompletionOutput."""

    text: str
    token_ids: Sequence[int]
    finish_reason: str | None


Parse = Callable[[Output], Any]
"""How this model writes thoughts and tool calls: a parser of vLLM's, which makes a DeltaMessage of an output, or None.
Of a tool call in it the id and the name come once, the arguments in pieces."""


class Reading:
    """One reply. Without `parse` all of it is text."""

    def __init__(self, parse: Parse | None = None) -> None:
        self._parse = parse
        self._spoken = Spoken()
        self._calls: dict[int, ToolCall] = {}

    def take(self, output: Output) -> Iterator[Delta]:
        """What the output adds: a piece of text for each token, as replies count them by it, mostly empty where they
        come together; the tool calls at the end. Raises EngineError: it failed."""
        if output.finish_reason in ("error", "abort"):
            raise EngineError(f"vLLM gave a reply up ({output.finish_reason}): its log says why.")
        text = self._spoken.push(self._content(output))
        if output.finish_reason is not None:
            text += self._spoken.rest()
        if output.token_ids or text:
            yield text
        yield from [""] * (len(output.token_ids) - 1)
        if output.finish_reason is not None:
            yield from self._calls.values()

    def _content(self, output: Output) -> str:
        if self._parse is None:
            return output.text
        parsed = self._parse(output)
        if parsed is None:
            return ""
        for fragment in parsed.tool_calls:
            self._add(fragment)
        return parsed.content or ""

    def _add(self, fragment: Any) -> None:
        known = self._calls.get(fragment.index) or ToolCall(fragment.id or f"call_{uuid4().hex}", "", "")
        if fragment.function:
            name = known.name or fragment.function.name or ""
            known = ToolCall(known.call_id, name, known.arguments + (fragment.function.arguments or ""))
        self._calls[fragment.index] = known
