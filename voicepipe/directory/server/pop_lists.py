"""The answers of PoPs to the same question, merged. Where many of them list a thousand calls each, that takes tens of
milliseconds: a thread's work, never the event loop's. Pure."""

from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from voicepipe.ingress.access import UNKNOWN_RECORD
from voicepipe.operator_api.records_http import cursor

T = TypeVar("T")


class PopList(msgspec.Struct):
    """The calls of one PoP."""

    data: list[dict[str, Any]]


class PopCosts(PopList):
    """The cost of the calls of one PoP, and for the operator that of its host."""

    host_cost: float | None = None
    idle_cost: float | None = None


class PopRecords(msgspec.Struct):
    """The records of one PoP, the newest first, as raw JSON."""

    data: Sequence[msgspec.Raw] = ()
    next: str | None = None


class _ListPosition(msgspec.Struct):
    """The fields of a record by which lists are sorted."""

    began: float
    id: str


class _Code(msgspec.Struct):
    code: str


class _Error(msgspec.Struct):
    error: _Code


_position = msgspec.json.Decoder(_ListPosition).decode


def read(answer: Response | None, shape: type[T], none: T | None = None) -> T | None:
    """A PoP's answer; `none`: the value if it keeps no records. None: it has not answered, or not with that."""
    if answer is None or answer.status_code not in (200, 404):
        return None
    if answer.status_code == 404:
        return none if says_unknown(answer) else None
    return _decoded(answer, shape)


def says_unknown(answer: Response) -> bool:
    """Whether a PoP's answer means that it keeps no such record; a proxy before it may give a 404, too."""
    said = _decoded(answer, _Error)
    return said is not None and said.error.code == UNKNOWN_RECORD


def _decoded(answer: Response, shape: type[T]) -> T | None:
    """A decoded answer; None: it cannot be decoded."""
    try:
        return msgspec.json.decode(bytes(answer.body), type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def not_answered(answers: Mapping[str, object]) -> list[str]:
    """The PoPs without an answer."""
    return [pop for pop, answer in answers.items() if answer is None]


def merged(lists: Mapping[str, PopRecords | None], limit: int, missing: Sequence[str]) -> bytes:
    """The body of GET /v1/records at a directory: the lists merged, the newest first, at most `limit` records; no more
    rows of a list are read than are needed."""
    answered = [its for its in lists.values() if its]
    shown = list(islice(merge(*(its.data for its in answered), key=_when, reverse=True), limit))
    more = sum(len(its.data) for its in answered) > limit or any(its.next for its in answered)
    following = cursor(*_when(shown[-1])) if shown and more else None
    return msgspec.json.encode({"object": "list", "data": shown, "next": following, "missing": missing})


def _when(row: msgspec.Raw) -> tuple[float, str]:
    """The sort key, as PoPs use it."""
    position = _position(row)
    return position.began, position.id
