"""Who is none of the fleet: tokens that are no good, reports in another's name, ways that lead elsewhere."""

import asyncio
import base64
import json
import time
from typing import Any

import httpx
import msgspec
import nats
import websockets
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.errors import Error as NatsError

from tests.directory.reports import report
from tests.fleet import manifests
from tests.fleet.rig import Rig
from tests.fleet.scale import Outcome, Scale
from voicepipe.call_api import Grant
from voicepipe.directory.tokens import LEEWAY_S, VALID_S, Signer, key_id

WAIT_S = 20.0
GRANT = Grant(id="call_forged", tenant="acme")
ELSEWHERE = "http://evil.example"
UNKNOWN = "rtc_stranger.0c5e77aa91f2", "rtc_evil.example.0c5e77aa91f2", "rtc_127.0.0.1:9.0c5e77aa91f2"
"""Calls at PoPs that are none."""


async def strangers(rig: Rig, scale: Scale) -> Outcome:
    """All of them are turned away."""
    await rig.whole()
    tokens, broken = await _tokens(rig)
    denied, forged = await _reports(rig)
    asked, led = await _ways(rig)
    saw = (f"{tokens - len(broken)} of {tokens} tokens refused with 401; {denied} messages in another's name denied; "
           f"{asked - len(led)} of {asked} questions led to no stranger")  # fmt: skip
    what = "tokens forged, expired, replayed, for another PoP; reports in another's name; redirects to strangers"
    return Outcome(what, "all refused", saw, [*broken, *forged, *led])


# --- tokens


async def _tokens(rig: Rig) -> tuple[int, list[str]]:
    """How many are no good, and what was wrong with the answers."""
    pop, other = list(rig.pops)[:2]
    token = await _token(rig, pop)
    others = await _token(rig, other)
    run = _claims(token)["aud"].rpartition(".")
    epoch = int(run[2])
    real = Signer(key_id(rig.key.public_key()), rig.key)
    forger = Ed25519PrivateKey.generate()
    bad = {
        "forged": Signer(real.key_id, forger).sign(GRANT, pop, epoch, time.time()),
        "by an unknown key": Signer(key_id(forger.public_key()), forger).sign(GRANT, pop, epoch, time.time()),
        "expired": real.sign(GRANT, pop, epoch, time.time() - VALID_S - LEEWAY_S - 1),
        "for another PoP": others,
        "for an earlier run": real.sign(GRANT, pop, epoch - 1, time.time()),
        "unsigned": _unsigned(token),
        "altered": token[:-8] + ("A" * 8 if not token.endswith("A" * 8) else "B" * 8),
        "no token": "vp_nothing",
    }
    found = {name: await _status(rig, pop, made) for name, made in bad.items()}
    good = await _status(rig, pop, token)
    found["replayed"] = await _status(rig, pop, token)
    broken = [f"a token that is {name} was answered with {status}" for name, status in found.items() if status != 401]
    return len(found), broken + ([f"a good token was answered with {good}"] if good != 101 else [])


async def _token(rig: Rig, pop: str) -> str:
    """A good one for this PoP."""
    tried = [other for other in rig.pops if other != pop]
    answer = (await _asked(rig, next(iter(rig.directories)), {"tried": tried})).json()
    return str(answer["candidates"][0]["token"])


async def _asked(rig: Rig, directory: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    headers["Authorization"] = f"Bearer {manifests.ACME}"
    async with httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as client:
        return await client.post(f"{rig.url(directory)}/v1/calls", json=body, headers=headers)


async def _status(rig: Rig, pop: str, token: str) -> int:
    """What this PoP answers who brings it; 101: they are let in."""
    url = f"{rig.url(pop).replace('http', 'ws', 1)}/v1/realtime?token={token}"
    try:
        async with asyncio.timeout(WAIT_S), websockets.connect(url, proxy=None, open_timeout=None):
            return 101
    except websockets.InvalidStatus as error:
        return error.response.status_code


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))


def _unsigned(token: str) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).decode().rstrip("=")
    return f"vp_{header}.{token.split('.')[1]}."


# --- reports


async def _reports(rig: Rig) -> tuple[int, list[str]]:
    """How many messages were denied, and what was not."""
    speaker, victim = list(rig.pops)[:2]
    before = await _known(rig)
    forged = msgspec.json.encode(report(seq=10**9, epoch=10**15, url=ELSEWHERE))
    told = [
        (speaker, f"vp.pop.{victim}.report", forged),
        (speaker, f"vp.pop.{victim}.bye", b'{"epoch": 0}'),
        (speaker, "vp.pop.stranger.report", forged),
        (speaker, f"vp.cmd.{victim}", b'{"do": "drain"}'),
        (speaker, f"vp.asg.{victim}", b'{"call": "x"}'),
        ("directory", f"vp.pop.{victim}.report", forged),
    ]
    denied = [await _is_denied(rig, user, subject, data) for user, subject, data in told]
    broken = [f"{user} may say {subject}" for (user, subject, _), was in zip(told, denied, strict=True) if not was]
    if await _lets_in(rig, "stranger", "guess"):
        broken.append("the bus lets a stranger in")
    if await _lets_in(rig, speaker, "guess"):
        broken.append("the bus lets a PoP in that does not know its password")
    if not await _lets_in(rig, speaker, manifests.password(speaker)):
        broken.append("the bus does not let a PoP in")
    await asyncio.sleep(1)
    if (after := await _known(rig)) != before:
        broken.append(f"forged reports changed what directories know: {before} became {after}")
    return sum(denied), broken


async def _is_denied(rig: Rig, user: str, subject: str, data: bytes) -> bool:
    denied = asyncio.Event()

    async def troubled(error: Exception) -> None:
        if "permissions violation" in str(error).lower():
            denied.set()

    bus = await nats.connect(rig.bus(next(iter(rig.nats))), user=user, password=manifests.password(user),
                             error_cb=troubled, connect_timeout=20)  # fmt: skip
    try:
        await bus.publish(subject, data)
        await bus.flush()
        async with asyncio.timeout(WAIT_S / 4):
            await denied.wait()
    except TimeoutError:
        pass
    finally:
        await bus.close()
    return denied.is_set()


async def _lets_in(rig: Rig, user: str, password: str) -> bool:
    async def troubled(error: Exception) -> None:
        pass

    try:
        bus = await nats.connect(rig.bus(next(iter(rig.nats))), user=user, password=password, allow_reconnect=False,
                                 max_reconnect_attempts=1, error_cb=troubled, connect_timeout=20)  # fmt: skip
    except NatsError:
        return False
    await bus.close()
    return True


async def _known(rig: Rig) -> dict[str, dict[str, str]]:
    """The addresses of PoPs, by directory."""
    return {name: {row["pop"]: row["url"] for row in await rig.rows(name)} for name in rig.directories}


# --- ways


async def _ways(rig: Rig) -> tuple[int, list[str]]:
    """How many questions were asked that invite a directory to lead elsewhere, and where it did."""
    urls = {rig.url(pop).replace("http", "ws", 1) + "/v1/realtime" for pop in rig.pops}
    questions: list[tuple[dict[str, Any], int]] = [
        ({"rtt_ms": {"evil.example": 0.1, "stranger": 0.1}}, 200),
        ({"tried": [ELSEWHERE, *list(rig.pops)[:-1]]}, 200),
        ({"require": {"model": ELSEWHERE}}, 503),
        ({"url": ELSEWHERE}, 400),
        ({"candidates": [{"pop": "stranger", "url": ELSEWHERE}]}, 400),
    ]
    """And the status of the answer."""
    broken = []
    for directory in rig.directories:
        for question, status in questions:
            answer = await _asked(rig, directory, question, Host="evil.example", **{"X-Forwarded-Host": "evil.example"})
            named = {row["url"] for row in answer.json().get("candidates", ())}
            if answer.status_code != status or bool(named) != (status == 200):
                broken.append(f"{directory} answers {answer.status_code}, not {status}, when asked {question}")
            elif not named <= urls or "location" in answer.headers:
                broken.append(f"{directory} leads to {named - urls} when asked {question}")
        broken += await _about_calls(rig, directory)
    return (len(questions) + len(UNKNOWN)) * len(rig.directories), broken


async def _about_calls(rig: Rig, directory: str) -> list[str]:
    """A call's id names its PoP: one that nobody has is nowhere."""
    broken = []
    headers = {"Authorization": f"Bearer {manifests.ACME}"}
    url = rig.url(directory)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=WAIT_S, trust_env=False) as client:
        for call in UNKNOWN:
            answer = await client.post(f"/v1/realtime/calls/{call}/hangup")
            if answer.status_code != 404:
                broken.append(f"{directory} answers {answer.status_code} about {call}")
    return broken
