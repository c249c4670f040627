"""Utterances of the probes for tests that speak to a whole PoP."""

from latency_probes import clips


def spoken(*intents: str) -> list[clips.Utterance]:
    """One quiet, finished utterance of each intent."""
    finished = [item for item in clips.load(["finished"]) if item.noise == "quiet" and item.voice == "heart"]
    return [next(item for item in finished if item.intent == intent) for intent in intents]
