"""Errors, their kinds and their causes."""

import pytest

from voicepipe.base.errors import (
    CallFull,
    EngineError,
    EngineStalled,
    NoPop,
    OutcomeUnknown,
    PopFull,
    Refused,
    TenantFull,
    VoicepipeError,
    cause,
)


def test_the_first_thing_that_went_wrong_is_found_in_groups_of_groups() -> None:
    stalled = EngineStalled("it hangs")
    group = BaseExceptionGroup("tasks", [ExceptionGroup("inner", [stalled]), KeyboardInterrupt()])
    assert cause(group) is stalled is cause(stalled)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(TenantFull("full"), PopFull), (CallFull("full"), Refused), (EngineStalled("late"), EngineError)],
)
def test_who_catches_a_kind_catches_its_own_kinds(error: VoicepipeError, kind: type[VoicepipeError]) -> None:
    with pytest.raises(kind, match=str(error)):
        raise error


def test_why_no_pop_was_found_is_told_with_it() -> None:
    assert NoPop("there is none").why == "none_answers"
    assert OutcomeUnknown("nobody knows").later is None
