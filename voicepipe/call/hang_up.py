"""The model ends the call: when its last words have been heard, unless the caller has something more to say."""

import asyncio
from collections.abc import Awaitable, Callable

from voicepipe.call.conversation import Conversation
from voicepipe.call.hearing import Hearing
from voicepipe.call.owed import Owed
from voicepipe.call.speaking import Speaking

LOOK_S = 0.1


async def when_heard(
    hearing: Hearing,
    speaking: Speaking,
    owed: Owed,
    conversation: Conversation,
    hang_up: Callable[[str], Awaitable[None]],
) -> None:
    """The reply in which the model asked for it has been heard to its end."""
    last = _last_id(conversation)
    # A voice over the last words becomes a turn, which is answered, or it was nothing. What comes of a tool that runs
    # is told.
    while hearing.utterance or owed.works:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)
    if not (speaking.reply or owed.waiting) and _last_id(conversation) == last:
        await hang_up("agent")


def _last_id(conversation: Conversation) -> str | None:
    last = conversation.last()
    return last.id if last else None
