"""Interim version; see `Endpointer.judge(Evidence) -> Verdict`, which call.py uses."""

from dataclasses import dataclass

import msgspec

from voicepipe.ranges import Ms


class EndpointConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    sure_ms: Ms = 130
    unsure_ms: Ms = 400
    unfinished_ms: Ms = 1000


@dataclass(frozen=True, slots=True)
class Evidence:
    text: str
    end_logprob: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    required_ms: float
    confident: bool
    reason: str


class Endpointer:
    def __init__(self, config: EndpointConfig, eagerness: str = "auto") -> None:
        self.config = config

    def judge(self, evidence: Evidence) -> Verdict:
        last = evidence.text.split()[-1:]
        if last and last[0] in {"is", "a", "the", "for", "to", "um", "uh", "and", "my", "five"}:
            return Verdict(self.config.unfinished_ms, False, "unfinished")
        return Verdict(self.config.sure_ms, True, "sure")
