"""The texts of an agent in which variables may stand, and what each of them is for."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from msgspec.structs import replace

from voicepipe.agent import Agent, Intent, Tool

TextUse = Literal["read", "spoken", "dialled", "url", "header"]
"""Read by a model; spoken, or read as what the caller means by a key; dialled when a caller is transferred; the URL of
a webhook; a header of its request."""
Change = Callable[[str, str, TextUse], str]
"""Gives the new text by its key in the agent's file, the text, and its use."""
T = TypeVar("T", Agent, Intent, Tool)


def changed(agent: Agent, change: Change) -> Agent:
    """`agent` with each text that may hold variables as `change` has it; the same object where none is different."""
    spoken = ("greeting", "acknowledgement", "fallback", "transfer_failed", "cannot_transfer", "goodbye")
    texts = {key: change(key, getattr(agent, key), "spoken") for key in spoken}
    when = {name: change(f"hand_over.{name}.when", its.when, "read") for name, its in agent.hand_over.items()}
    return _with(
        agent,
        **texts,
        instructions=change("instructions", agent.instructions, "read"),
        no_input=_listed("no_input", agent.no_input, change),
        not_understood=_listed("not_understood", agent.not_understood, change),
        keys=_table("keys", agent.keys, "spoken", change),
        transfer=_table("transfer", agent.transfer, "dialled", change),
        hand_over={name: replace(its, when=when[name]) for name, its in agent.hand_over.items()},
        tools=tuple(_tool(f"tools[{n}]", tool, change) for n, tool in enumerate(agent.tools)),
        intents=tuple(_intent(f"intents[{n}]", intent, change) for n, intent in enumerate(agent.intents)),
    )


def _tool(at: str, tool: Tool, change: Change) -> Tool:
    webhook = tool.webhook
    if webhook:
        url = change(f"{at}.webhook.url", webhook.url, "url")
        webhook = replace(webhook, url=url, headers=_table(f"{at}.webhook.headers", webhook.headers, "header", change))
    return _with(
        tool,
        description=change(f"{at}.description", tool.description, "read"),
        while_running=_listed(f"{at}.while_running", tool.while_running, change),
        webhook=webhook,
    )


def _intent(at: str, intent: Intent, change: Change) -> Intent:
    texts = {key: change(f"{at}.{key}", getattr(intent, key), "spoken") for key in ("reply", "confirm", "denied")}
    return _with(intent, **texts, slots=_table(f"{at}.slots", intent.slots, "spoken", change))


def _listed(key: str, texts: tuple[str, ...], change: Change) -> tuple[str, ...]:
    return tuple(change(f"{key}[{n}]", text, "spoken") for n, text in enumerate(texts))


def _table(key: str, texts: Mapping[str, str], use: TextUse, change: Change) -> dict[str, str]:
    return {name: change(f"{key}.{name}", text, use) for name, text in texts.items()}


def _with(whole: T, **parts: object) -> T:
    """`whole` with these parts; itself where they are equal to its own."""
    different = {key: part for key, part in parts.items() if part != getattr(whole, key)}
    return replace(whole, **different) if different else whole
