"""Who may upgrade a PoP over HTTP, and what it answers."""

import httpx
import pytest

from tests.ingress.fake_pop import OPERATOR_KEY, FakePop, serving
from voicepipe.base.errors import UpgradeFailed
from voicepipe.base.takeover import HttpFront, PhoneFront, Takeover
from voicepipe.call_api import Tenant


class FakeSuccessor:
    """Takes over at once, or fails with this reason."""

    def __init__(self, why: str = "") -> None:
        self.why = why
        self.asked = 0

    def fronts(self, http: HttpFront, phones: PhoneFront | None) -> None:
        """Nobody asks for them."""

    async def take_over(self) -> Takeover:
        self.asked += 1
        if self.why:
            raise UpgradeFailed(self.why)
        return Takeover(4711, "0.2.0")


async def asked(pop: FakePop, successor: FakeSuccessor, key: str = "") -> httpx.Response:
    pop.successor = successor
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with serving(pop) as address, httpx.AsyncClient() as client:
        return await client.post(f"http://{address}/v1/upgrade", headers=headers)


async def test_it_says_which_process_takes_the_calls_and_how_many_go_on() -> None:
    answer = await asked(FakePop(), FakeSuccessor())
    assert answer.status_code == 200 and answer.json() == {"pid": 4711, "version": "0.2.0", "calls": 0}


async def test_a_process_that_does_not_start_is_a_conflict_with_its_reason() -> None:
    answer = await asked(FakePop(), FakeSuccessor("engines.llm is misspelt"))
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "upgrade_failed"
    assert "engines.llm is misspelt" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("key", "status"), [("", 401), ("sk-acme", 401), ("sk-wrong", 401), (OPERATOR_KEY, 200)])
async def test_only_the_operator_may_upgrade(key: str, status: int) -> None:
    successor = FakeSuccessor()
    answer = await asked(FakePop(keys={"sk-acme": Tenant("acme")}), successor, key)
    assert answer.status_code == status and successor.asked == (status == 200)
