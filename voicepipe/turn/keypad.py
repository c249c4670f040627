"""Keys of the caller's telephone, collected until they are a turn. Pure: the caller of `press` waits for the pause."""

import re
from collections.abc import Mapping

MOST = 40
"""Keys of one turn; nobody's number is longer."""

PRESSED = re.compile(r"The caller pressed the keys? ([0-9A-D*#](?: [0-9A-D*#])*) on their telephone\.")
"""The text that the model reads for keys that are not in the agent's table: one by one, as a person would say them."""


class Keypad:
    """Collects the keys that the caller of one call presses, until they are a turn.

    A turn ends at "#", when the keys are an entry of the agent's table, or with a pause.
    """

    def __init__(self) -> None:
        self.keys = ""
        """The keys pressed so far."""

    def press(self, key: str, table: Mapping[str, str]) -> bool:
        """Collect a key. Returns False if it says nothing: a "#" behind keys that already were a turn."""
        if key == "#" and not self.keys and not any(entry.startswith(key) for entry in table):
            return False
        self.keys += key
        return True

    def complete(self, table: Mapping[str, str]) -> bool:
        """Whether the turn is complete. An entry that another one begins with waits for the pause."""
        if any(entry.startswith(self.keys) and entry != self.keys for entry in table):
            return False
        return self.keys in table or self.keys.endswith("#") or len(self.keys) >= MOST

    def take(self, table: Mapping[str, str]) -> str:
        """End the turn. Returns it as the model reads it; the next key begins another."""
        keys, self.keys = self.keys, ""
        return table.get(keys) or _as_text(keys.removesuffix("#") or keys)


def _as_text(keys: str) -> str:
    return f"The caller pressed the key{'s'[: len(keys) > 1]} {' '.join(keys)} on their telephone."


def as_digits(text: str) -> str:
    """`text` with the keys in it as one number, for what reads numbers: "... the keys 1 2 on ..." -> "12"."""
    return PRESSED.sub(lambda pressed: pressed[1].replace(" ", ""), text)
