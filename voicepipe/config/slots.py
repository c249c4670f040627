"""How many calls a PoP takes at a time where its operator has not said (D30)."""

import msgspec

from voicepipe.config import Config
from voicepipe.environment import cores

ONE_PROCESS = 60
"""Calls that one process was measured to hold, where it only moves sound."""
HEARD_BY_A_CORE = 2
"""Calls that a core can hear by Whisper tiny.en, and answer. With a larger model it can hear fewer."""


def with_slots(config: Config) -> Config:
    """`config` with a number in `pop.slots`, where that is 0."""
    if config.pop.slots:
        return config
    whisper = config.whisper
    hears_here = config.engines.asr == "whisper" and not whisper.device.startswith("cuda")
    hearing = min(whisper.threads or cores(), cores())
    slots = HEARD_BY_A_CORE * hearing if hears_here else ONE_PROCESS
    return msgspec.structs.replace(config, pop=msgspec.structs.replace(config.pop, slots=slots))
