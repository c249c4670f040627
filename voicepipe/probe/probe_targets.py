"""Whom a probe calls: each target of its configuration by each door, and the PoPs that a directory knows."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from latency_probes import clips
from latency_probes.clips import Utterance
from latency_probes.realtime import origin, trusted
from latency_probes.sip import PORT
from voicepipe.base.errors import ConfigError
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig, ProbeDoor, operator_key, sip_password, target_key

Way = Literal["straight", "directory"]
"""To a PoP's own address, or to where a directory sends callers."""
LIST_S = 5.0
"""Seconds within which a directory lists its PoPs."""
NO_CALLS = ("draining",)
"""States in which a PoP refuses calls because its operator wants it to."""


class ProbeQuestion(NamedTuple):
    """What a probe asks, and what counts as the right answer."""

    utterance: Utterance
    expect: tuple[str, ...]
    """Regular expressions; empty: any answer will do."""


class ProbeSeries(NamedTuple):
    """One target by one door: what is called again and again. Compared by what metrics call it."""

    target: str
    way: Way
    pop: str
    """The PoP that is called; empty: a directory says which."""
    by: ProbeDoor
    url: str
    """Of the PoP, or of the directory."""
    phone: str
    its: ProbedConfig
    number: int
    """Of the target in the configuration."""

    def key(self) -> str:
        """The key that opens it. Raises ConfigError."""
        return target_key(self.its, self.number).value()

    def password(self) -> str:
        """The password of its SIP user. Raises ConfigError."""
        return sip_password(self.its, self.number).value()


class ListedPop(msgspec.Struct, frozen=True):
    """The part of a row of GET /v1/pops that a probe reads."""

    pop: str
    url: str
    status: str = ""


class ListedPops(msgspec.Struct, frozen=True):
    """Answer to GET /v1/pops."""

    pops: tuple[ListedPop, ...]
    lost: tuple[ListedPop, ...] = ()
    """Those that fell silent within a day without having said that they end."""


def configured(config: ProbeConfig) -> Iterator[ProbeSeries]:
    """The series that the configuration names itself."""
    for number, its in enumerate(config.targets):
        way: Way = "directory" if its.directory else "straight"
        url = its.directory or its.url
        for by in its.by:
            yield ProbeSeries(
                its.name, way, "" if its.directory else its.pop or its.name, by, url, phone(its.phone, url), its, number
            )


def straight(its: ProbedConfig, number: int, listed: ListedPops) -> Iterator[ProbeSeries]:
    """The series of the PoPs that a directory has named: a call to each at its own address."""
    for row in (*listed.pops, *listed.lost):
        if row.status not in NO_CALLS:
            for by in its.by:
                yield ProbeSeries(its.name, "straight", row.pop, by, row.url, phone("", row.url), its, number)


def phone(configured_phone: str, url: str) -> str:
    """Where telephones call."""
    return configured_phone or f"{urlsplit(url).hostname}:{PORT}"


async def listed(its: ProbedConfig, number: int) -> ListedPops:
    """The PoPs that a directory knows. Raises ConfigError: it does not say."""
    key = await asyncio.to_thread(operator_key(its, number).value)
    url = f"{origin(its.directory)}/v1/pops"
    try:
        async with httpx.AsyncClient(verify=trusted(), trust_env=False, timeout=LIST_S) as client:
            answer = await client.get(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    except httpx.HTTPError as error:
        raise ConfigError(f"targets[{number}].directory: {url} does not answer ({error!r})") from error
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise ConfigError(
            f"targets[{number}].straight: {url} wants the operator's key: name it by operator_key_env or "
            "operator_key_file"
        )
    try:
        return msgspec.json.decode(answer.content, type=ListedPops)
    except msgspec.DecodeError as error:
        raise ConfigError(f"targets[{number}].directory: the answer of {url} is no directory's: {error}") from error


def questions(config: ProbeConfig) -> list[ProbeQuestion]:
    """What each target is asked. Decodes nothing yet. Raises ConfigError: there is no such recording."""
    shipped = {utterance.id: utterance for utterance in clips.load()}
    return [_question(its, number, shipped.get(its.question)) for number, its in enumerate(config.targets)]


def _question(its: ProbedConfig, number: int, utterance: Utterance | None) -> ProbeQuestion:
    if utterance:
        expect: Sequence[str] = its.expect or clips.intents()[utterance.intent].expect
        return ProbeQuestion(utterance, tuple(expect))
    file = Path(its.question)
    if not file.is_file():
        raise ConfigError(
            f"targets[{number}].question: {its.question!r} is neither a recording of the package nor a file; give one "
            "such as finished-002-heart, or the path of a sound file"
        )
    if not its.words:
        raise ConfigError(f"targets[{number}].words: say which words are in {file.name}")
    # The intent of any answer: what is right is told apart here.
    own = Utterance(f"own-{number}", "finished", "a person", its.words, "prompt", "quiet", str(file.absolute()))
    return ProbeQuestion(own, its.expect)
