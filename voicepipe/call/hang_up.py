"""The model ends the call: when its last words have been heard, unless the caller has something more to say."""

import asyncio

from voicepipe.call.call import Call

LOOK_S = 0.1


class HangUp:
    """One call's."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def by_model(self) -> None:
        """Its reply has been heard to its end."""
        self._call.spawn(self._run())

    async def _run(self) -> None:
        call, dialogue = self._call, self._call.dialogue
        last = dialogue.studio.history.last_visible()
        # A voice over the last words becomes a turn, which is answered, or it was nothing. What comes of a tool that
        # runs is told.
        while call.utterance or dialogue.works:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        if not (dialogue.reply or dialogue.waiting) and dialogue.studio.history.last_visible() == last:
            await call.hang_up("agent")
