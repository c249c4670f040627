"""vLLM's stream of one reply -> ours: words to speak, and whole tool calls."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from voicepipe.base.errors import EngineError
from voicepipe.engines.base import Delta, StreamCorrection
from voicepipe.engines.llm.spoken_text import Habits, SpokenFilter
from voicepipe.engines.llm.tool_call_fragments import ToolCallFragments


class CompletionOutput(Protocol):
    """vLLM's CompletionOutput: what one or several steps of the model added."""

    text: str
    token_ids: Sequence[int]
    finish_reason: str | None


Parse = Callable[[CompletionOutput], Any]
"""How this model writes thoughts and tool calls: a parser of vLLM's, which makes a DeltaMessage of an output, or None.
Tool calls in it: see `ToolCallFragments`."""


def check(output: CompletionOutput) -> None:
    """Raises EngineError: vLLM failed."""
    if output.finish_reason in ("error", "abort"):
        raise EngineError(f"vLLM gave a reply up ({output.finish_reason}): its log says why.")


class ReplyReading:
    """Reads vLLM's stream of one reply, of a model that was offered the tools `names`. Without `parse` all of it is
    text."""

    def __init__(self, names: Collection[str], parse: Parse | None = None, habits: Habits | None = None) -> None:
        self._parse = parse
        self._spoken = SpokenFilter(habits)
        self._called = ToolCallFragments(names)

    def take(self, output: CompletionOutput) -> Iterator[Delta]:
        """The deltas that the output adds: a piece of text for each token, as replies count them by it, mostly empty
        where they come together; the tool calls at the end. Raises EngineError: it failed."""
        check(output)
        said = self._spoken.push(self._content(output))
        if output.finish_reason is not None:
            said += self._spoken.rest(cut=output.finish_reason == "length")
        yield from (each for each in said if isinstance(each, StreamCorrection))
        text = "".join(each for each in said if isinstance(each, str))
        if output.token_ids or text:
            yield text
        yield from [""] * (len(output.token_ids) - 1)
        if output.finish_reason is not None:
            yield from self._called

    def _content(self, output: CompletionOutput) -> str:
        if self._parse is None:
            return output.text
        parsed = self._parse(output)
        if parsed is None:
            return ""
        for fragment in parsed.tool_calls:
            function = fragment.function
            self._called.add(fragment.index, fragment.id, function and function.name, function and function.arguments)
        return parsed.content or ""
