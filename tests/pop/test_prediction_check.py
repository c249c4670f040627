"""What was predicted for a call, and what came of it."""

from voicepipe.conversation.events import CallEnded, ReplyDone
from voicepipe.conversation.timing import TurnSummary
from voicepipe.pop.prediction_check import FIRST_S, PredictionCheck


class FollowerLog:
    def __init__(self) -> None:
        self.ratios: list[float] = []

    def prediction_check(self, ratio: float) -> None:
        self.ratios.append(ratio)


def answered(**record: object) -> ReplyDone:
    return ReplyDone("resp_1", "completed", record=TurnSummary(**({"at_words": 90.0} | record)))  # type: ignore[arg-type]


def test_the_engines_part_of_first_turns_is_held_against_the_prediction() -> None:
    told, now = FollowerLog(), [100.0]
    call = PredictionCheck(told, 200.0, 5000.0, lambda: now[0])
    call.note(answered(compute=40.0, turn_latency=850.0))  # they were quick; the caller hesitated
    call.note(answered(compute=200.0))
    call.note(ReplyDone("resp_1", "failed", record=TurnSummary(at_words=90.0)))
    assert told.ratios == [160 / 200, (80 + 200) / 200, 5080 / 200]
    now[0] += FIRST_S
    call.note(answered(compute=900.0))
    assert len(told.ratios) == 3, "by then it is another prediction's"


def test_what_says_nothing_of_the_engines_is_left_out() -> None:
    told = FollowerLog()
    call = PredictionCheck(told, 200.0, 5000.0)
    for event in (answered(compute=900.0, tool=True), answered(refused=True), ReplyDone("greeting", "completed"),
                  CallEnded("caller")):  # fmt: skip
        call.note(event)
    assert not told.ratios
