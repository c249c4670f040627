"""A conversation that is too long for the model, made shorter until it fits."""

from collections.abc import Iterator

from voicepipe.engines.chat import Chat

FIRST_CUT = 4
"""Messages."""
LEFT_OUT = " ... "


def shorter(messages: list[Chat]) -> Iterator[list[Chat]]:
    """The conversation, then ever less of it: oldest turns go first, the system's message stays.

    At last only what the caller said last and what followed is left, with the middle of its longest message taken out;
    ends when no text is left to take. Cuts are at 4, 8, 16 ... messages, so that one turn is cut where the one before
    it was and finds the rest in the prefix cache.
    """
    system = [message for message in messages[:1] if message["role"] == "system"]
    turns = messages[len(system) :]
    yield messages
    users = [index for index, message in enumerate(turns) if message["role"] == "user"]
    cut = FIRST_CUT
    while any(cut <= index < users[-1] for index in users):
        yield system + turns[next(index for index in users if index >= cut) :]
        cut *= 2
    turns = turns[users[-1] :]
    yield system + turns
    while len(longest := max((message["content"] for message in turns), key=len)) > len(LEFT_OUT):
        keep = len(longest) // 4
        halved = longest[:keep] + LEFT_OUT + longest[len(longest) - keep :] if keep > len(LEFT_OUT) else ""
        turns = [message | {"content": halved} if message["content"] is longest else message for message in turns]
        yield system + turns
