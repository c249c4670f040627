"""What a model's call of `hand_over` or of `set_language` asks for: with which settings the reply goes on."""

from voicepipe.agent import Agent
from voicepipe.base.errors import ToolError
from voicepipe.call.call_context import CallContext, ReplyOrder, settings_in
from voicepipe.call.reply_context import HandedOver
from voicepipe.conversation.hand_over import MOST, told, wanted
from voicepipe.conversation.own_tools import SET_LANGUAGE, language_set, language_wanted
from voicepipe.conversation.prompt import ToolCall


def change_wanted(call: ToolCall, order: ReplyOrder, context: CallContext, so_far: int) -> HandedOver:
    """Who goes on with a reply. `so_far`: such changes in this reply. Raises ToolError, whose text says what the model
    can do instead."""
    return (_other_language if call.name == SET_LANGUAGE else _other_agent)(call, order, context, so_far)


def _other_agent(call: ToolCall, order: ReplyOrder, context: CallContext, so_far: int) -> HandedOver:
    settings, name = order.settings, wanted(call)
    entry = settings.agent.hand_over.get(name)
    other = context.colleague(name, settings.agent.language) if entry and so_far < MOST else None
    if entry is None or other is None or not order.remembered:
        raise ToolError(_not_handed(settings.agent, name, so_far))
    return HandedOver(call, told(name, last=so_far + 1 == MOST), entry.keep, settings.handed_to(other))


def _other_language(call: ToolCall, order: ReplyOrder, context: CallContext, so_far: int) -> HandedOver:
    settings = order.settings
    tag = language_wanted(call.arguments, settings.agent.languages)
    if so_far >= MOST or not order.remembered:
        raise ToolError("the language cannot be changed again in this reply; go on")
    return HandedOver(call, language_set(tag), "all", settings_in(settings, tag))


def _not_handed(agent: Agent, name: str, so_far: int) -> str:
    """Why the caller stays with this agent, as the model reads it."""
    if so_far >= MOST:
        return "the caller has to say something before they are handed over again; help them yourself"
    if name not in agent.hand_over:
        return f"`to` must be one of: {', '.join(agent.hand_over)}"
    return f"{name} cannot take over at the moment; help the caller yourself"
