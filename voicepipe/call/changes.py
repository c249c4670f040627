"""What the outside changes in the conversation while a reply may be about to read it."""

from voicepipe.call.conversation import Conversation
from voicepipe.call.speaking import Speaking
from voicepipe.turn.events import Item


class Changes:
    """Of one call's conversation."""

    def __init__(self, conversation: Conversation, speaking: Speaking) -> None:
        self._conversation = conversation
        self._speaking = speaking

    def add(self, item: Item, after: str | None = None, *, spoken: bool = False) -> None:
        """Raises ItemExists, ItemUnknown."""
        self._speaking.freeze_prompt()
        self._conversation.add(item, after, spoken=spoken)

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        self._speaking.freeze_prompt()
        self._conversation.delete(item_id)

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        """The client knows exactly how much of an item its caller heard. Raises ItemUnknown, ItemMismatch."""
        self._conversation.item(item_id)
        self._speaking.silence_item(item_id)
        spoken = self._conversation.spoken(item_id, audio_end_ms)
        self._speaking.freeze_prompt()
        if self._conversation.truncate(item_id, spoken, audio_end_ms):
            self._speaking.discard()  # It answers words that nobody has heard.
