"""The language model that answers is asked whether the caller's turn ends."""

import logging

from voicepipe.agent import CallSettings, SemanticVad
from voicepipe.call.studio import Studio
from voicepipe.errors import EngineError

log = logging.getLogger(__name__)


async def turn_ends(studio: Studio, settings: CallSettings, words: str) -> float | None:
    """Probability that it ends after `words`, which are not part of the conversation yet. None: the model is not asked,
    since it has no say or there is none to ask, or it failed."""
    reader = studio.engines.reader
    if not reader or not words or not isinstance(settings.turn_detection, SemanticVad):
        return None
    try:
        return await reader.ends(studio.order(settings, words).prompt)
    except EngineError as error:
        # Its words alone: its traceback would keep the call where a log keeps records.
        log.error("the language model does not tell where turns end: %s", str(error))
        return None
