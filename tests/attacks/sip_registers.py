"""Requests that need a password, without one and with a wrong one that answers no challenge of the PoP's."""

from tests.attacks.sip_messages import STRANGERS, message, pour
from tests.attacks.target import Attack, Target

PER_S = 1000
GUESS = (
    'Authorization: Digest username="desk", realm="voicepipe", nonce="0102030405", uri="sip:front@127.0.0.1", '
    f'response="{"ab" * 16}", algorithm=MD5'
)


def made(host: str, number: int) -> bytes:
    """In turn."""
    method = ("REGISTER", "OPTIONS", "SUBSCRIBE", "CANCEL", "ACK")[number % 5]
    return message(method, host, [GUESS] if number % 2 else [])


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await pour(target, seconds, STRANGERS, PER_S, made)


ATTACK = Attack("sip_registers", f"{PER_S} REGISTERs and the like a second from 200 addresses", run, by_stranger=True)
