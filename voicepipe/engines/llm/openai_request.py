"""The request for one reply, as servers of the OpenAI kind take it, and the fields that this server does not take.

https://platform.openai.com/docs/api-reference/chat/create. Servers differ in what they refuse: OpenAI's own models from
o1 on take `max_completion_tokens` in place of `max_tokens`, and no temperature but 1.
"""

import logging
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from voicepipe.base.foreign_json import decode
from voicepipe.config.engine_config import OMITTED, OpenAiConfig
from voicepipe.engines.base import Prompt
from voicepipe.engines.llm import chat

log = logging.getLogger(__name__)
LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the most tokens that a reply may have; the first one that a server takes is sent."""
NEEDED = frozenset({"model", "messages", "tools", "stream"})
"""Without these a reply would be none, or another."""
READ = 4000
"""Characters of a refusal that are looked through."""
REFUSES = re.compile(
    r"unsupported|not support|n't support|unknown|unrecogni[sz]ed|unexpected|extra (?:fields|inputs)|forbidden"
    r"|not (?:permitted|allowed|available)|cannot find field|deprecated|cannot (?:both|specify)",
    re.IGNORECASE,
)
"""How servers say that they do not know a field, or this value of it: OpenAI, Azure, Mistral, Groq, Google, xAI, vLLM,
llama.cpp, LiteLLM and whatever checks its requests by pydantic."""
DISLIKES = re.compile(r"\binvalid\b|must be|only (?:.{1,40} )?allowed|not enabled|can only", re.IGNORECASE)
"""How they say that they do not take this value: Kimi, vLLM. Said of the limit, it is about this one number."""
LENGTHY = re.compile(
    r"context (?:length|window)|too (?:large|long)|maximum context|exceed|below minimum|invalid schema", re.IGNORECASE
)
"""This one prompt, limit or tool is wrong: nothing is wrong with a field."""


def request(config: OpenAiConfig, model: str, prompt: Prompt, refused: Collection[str] = ()) -> dict[str, Any]:
    """The body of POST /chat/completions, for `model` unless the prompt's agent names another. What `config.body` adds
    wins over ours, but for a shorter reply that the prompt asks for, and for what the agent's file says; without
    `config.omit`, and without what this server has `refused`."""
    agent = prompt.agent
    own = {} if agent is None or agent.temperature is None else {"temperature": agent.temperature}
    ours: dict[str, Any] = {
        "model": (agent and agent.model) or model,
        "messages": chat.messages(prompt),
        "temperature": config.temperature,
        **own,
    }
    if tools := chat.tools(prompt):
        ours |= {"tools": tools, "tool_choice": chat.choice(prompt)}
    added = {name: value for name, value in config.body.items() if name not in (*refused, *own)}
    body = {name: value for name, value in ours.items() if name not in (*config.omit, *refused)} | added
    limits = [name for name in LIMITS if name in added] or [
        name for name in LIMITS if name not in (*config.omit, *refused)
    ]
    configured = [config.body[name] for name in LIMITS if name in config.body]
    body = {name: value for name, value in body.items() if name not in LIMITS}
    most = prompt.max_tokens or next(iter(configured), config.max_tokens)
    if limits and most:
        body[limits[0]] = most
    if isinstance(priority := config.body.get("priority"), int) and "priority" in body:
        body["priority"] = priority + prompt.speculative  # vLLM: the lower is served first.
    return body | {"stream": True}


class RefusedFields:
    """The request fields that one server has refused. They are kept as long as its engine runs, so no second reply pays
    for that."""

    def __init__(self, server: str, added: Collection[str] = ()) -> None:
        """`server`: for the log. `added`: the fields of `openai.body`."""
        self._server = server
        self._added = added
        self.fields: set[str] = set()

    def learn(self, sent: Mapping[str, Any], answer: bytes) -> bool:
        """The server has refused the body `sent`, and says why in `answer`. Returns whether to try again without a
        field. Each field is left out once, so there is an end to it."""
        field = refused_field(sent, answer)
        if field and field not in self.fields:
            self.fields.add(field)
            other = next((name for name in LIMITS if name not in self.fields), "")
            instead = f"{other} is sent in its place" if field in LIMITS and other else "it is left out"
            if field in self._added:
                advice = "take it out of openai.body"
            elif field in OMITTED:
                advice = f'add "{field}" to openai.omit, and it is never sent'
            else:
                advice = "see its log"
            log.warning("%s refuses %s: %s from now on; %s", self._server, field, instead, advice)
        return bool(field)


def refused_field(sent: Mapping[str, Any], answer: bytes) -> str:
    """The field of `sent` that a refusal is about; empty: it is about something else."""
    text = answer[: 2 * READ].decode("utf-8", "replace")[:READ]
    fields = [field for field in sent if field not in NEEDED]
    if named := _param(answer):
        fields = [named] if named in fields else []
        if fields and named not in LIMITS:
            return named
    if LENGTHY.search(text) or not (REFUSES.search(text) or DISLIKES.search(text)):
        return ""
    positions = {field: at for field in fields if (at := _position(field, text)) >= 0}
    field = named or min(positions, key=positions.__getitem__, default="")
    return field if field in fields and (field not in LIMITS or REFUSES.search(text)) else ""


def _position(field: str, text: str) -> int:
    """Where a text is about a field; -1: nowhere. Some write it in words: "Stream options can only be ..."."""
    found = re.search(rf"(?<!\w){re.escape(field).replace('_', '[_ ]')}(?!\w)", text, re.IGNORECASE)
    return found.start() if found else -1


def _param(answer: bytes) -> str:
    """The field that a refusal names, as OpenAI does: {"error": {"param": "temperature"}}; of
    "tools[0].function.parameters" the head."""
    try:
        found = decode(answer)
    except msgspec.DecodeError:
        return ""
    error = found.get("error") if isinstance(found, dict) else None
    param = error.get("param") if isinstance(error, dict) else None
    return re.split(r"[\[.]", param)[0] if isinstance(param, str) and param not in ("None", "null") else ""
