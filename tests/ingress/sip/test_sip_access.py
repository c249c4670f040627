"""Who may call by SIP, and how those are refused who may not: each gets an answer, and the log says why."""

import asyncio
import hashlib
import re
from typing import Any

import pytest
from msgspec.structs import replace

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, calling, phone, sip
from voicepipe.base.errors import ConfigError
from voicepipe.base.token_bucket import Rate
from voicepipe.config.phone_config import SipTrunk, SipUser
from voicepipe.ingress.loopback_only import check_phones
from voicepipe.ingress.sip.sip_access import SipAccess

TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.0/8",))
ELSEWHERE = SipTrunk(name="carrier", addresses=("192.0.2.1",))
DESK = SipUser(name="desk", password_env="DESK_PASSWORD")


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")


def digest(challenge: str, method: str, uri: str, user: str = "desk", password: str = "s3cret") -> str:
    """The answer to a challenge (RFC 2617)."""
    said = dict(re.findall(r'(\w+)="?([^",]+)', challenge))

    def hashed(*parts: str) -> str:
        return hashlib.md5(":".join(parts).encode()).hexdigest()

    first, second = hashed(user, said["realm"], password), hashed(method, uri)
    response = hashed(first, said["nonce"], "00000001", "c0ffee", "auth", second)
    return (
        f'Digest username="{user}", realm="{said["realm"]}", nonce="{said["nonce"]}", uri="{uri}", '
        f'response="{response}", algorithm={said["algorithm"]}, qop=auth, nc=00000001, cnonce="c0ffee"'
    )


async def logged_in(ann: Phone, method: str, **more: Any) -> Any:
    """Ask, and ask again with an answer to the challenge."""
    ann.request(method, body=ann.sdp() if method == "INVITE" else "")
    refused = await ann.final(method)
    assert refused.code == 401
    if method == "INVITE":
        ann.took(refused)
        ann.request("ACK", seq=ann.seq, branch=ann.branch)
        ann.to_tag = ""
    answer = digest(refused.header("www-authenticate"), method, "sip:front@127.0.0.1", **more)
    after = len(ann.said)
    ann.request(method, [("Authorization", answer)], ann.sdp() if method == "INVITE" else "")
    final = await ann.final(method, after)
    if method == "INVITE":
        ann.took(final)
        if final.code == 200:
            ann.ack()
        else:
            ann.request("ACK", seq=ann.seq, branch=ann.branch)
    return final


async def test_a_user_calls_with_a_password() -> None:
    async with calling(FakePop(sip(users=(DESK,)))) as ann:
        assert (await logged_in(ann, "INVITE")).code == 200
        await ann.hang_up()


async def test_users_trunks_and_passwords_change_while_a_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = FakePop(sip(users=(DESK,)))
    async with calling(pop) as ann, phone(pop) as bob:
        assert (await logged_in(ann, "INVITE")).code == 200
        monkeypatch.setenv("DESK_PASSWORD", "other")
        (await asyncio.to_thread(pop.rereads.read, pop.config))()
        assert (await logged_in(bob, "INVITE")).code == 403
        async with phone(pop) as desk:
            assert (await logged_in(desk, "INVITE", password="other")).code == 200
            await desk.hang_up()
        others = replace(pop.config, sip=replace(pop.config.sip, users=(), trunks=(TRUNK,)))
        (await asyncio.to_thread(pop.rereads.read, others))()
        async with phone(pop) as carl:
            assert (await carl.dial()).code == 200
            await carl.hang_up()
        await ann.hang_up()


@pytest.mark.parametrize("uri", ["sip:front,desk;a=b@127.0.0.1", "tel:+49-30-1234;npdi", "sip:fr%6Fnt@127.0.0.1;lr"])
async def test_an_answer_to_a_challenge_names_any_address(uri: str) -> None:
    pop = FakePop(sip(users=(DESK,)))
    async with calling(pop) as ann:
        ann.request("INVITE", body=ann.sdp(), uri=uri)
        refused = await ann.final("INVITE")
        ann.request("ACK", seq=ann.seq, branch=ann.branch)
        answer = digest(refused.header("www-authenticate"), "INVITE", uri)
        assert (await ann.dial(headers=[("Authorization", answer)], uri=uri)).code == 200
        assert (await ann.hang_up()).code == 200


@pytest.mark.parametrize(
    ("how", "why"),
    [({"password": "guess"}, "the password of user 'desk' is wrong"), ({"user": "eve"}, "no user 'eve'")],
)
async def test_a_wrong_password_is_refused(how: dict[str, str], why: str, caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(sip(users=(DESK,)))
    async with calling(pop) as ann:
        assert (await logged_in(ann, "INVITE", **how)).code == 403
    assert why in caplog.text and "s3cret" not in caplog.text and not pop.calls


async def test_an_answer_to_a_challenge_opens_one_number_once() -> None:
    pop = FakePop(sip(users=(DESK,)))
    async with calling(pop) as ann:
        ann.request("INVITE", body=ann.sdp())
        refused = await ann.final("INVITE")
        answer = ("Authorization", digest(refused.header("www-authenticate"), "INVITE", "sip:front@127.0.0.1"))
        ann.took(refused)
        ann.request("ACK", seq=ann.seq, branch=ann.branch)
        ann.to_tag = ""
        assert (await ann.dial(headers=[answer], uri="sip:+99900@127.0.0.1")).code == 403
        ann.to_tag = ""
        again = await ann.dial(headers=[answer])
        assert again.code == 401 and "stale=true" in again.header("www-authenticate")
        assert not pop.calls


async def test_a_user_passes_for_nobody_else() -> None:
    pop = FakePop(sip(users=(DESK,)))
    async with calling(pop) as ann:
        assert (await logged_in(ann, "INVITE")).code == 200
        assert pop.calls[0].settings.origin.caller == "desk"
        await ann.hang_up()


async def test_guessing_passwords_is_slow(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("voicepipe.ingress.sip.sip_access.GUESSES", (Rate(2, 0), Rate(100, 1)))
    pop = FakePop(sip(users=(DESK,)))
    async with serving(pop):
        for guess, code in (("first", 403), ("second", 403), ("s3cret", 503)):
            async with phone(pop) as ann:
                assert (await logged_in(ann, "REGISTER", password=guess)).code == code
    assert "too many wrong passwords" in caplog.text


async def test_right_passwords_are_not_counted_nor_kept_out_by_wrong_ones_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("voicepipe.ingress.sip.sip_access.GUESSES", (Rate(2, 0), Rate(3, 0)))
    caplog.set_level("INFO")
    pop = FakePop(sip(users=(DESK,)))
    async with serving(pop):
        for _ in range(5):
            async with phone(pop) as ann:
                assert (await logged_in(ann, "REGISTER")).code == 200
        told = [record for record in caplog.records if record.name.startswith("voicepipe")]
        assert not told, "being asked for a password is no news"
        for source in ("127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"):
            async with phone(pop, source) as eve:
                await logged_in(eve, "REGISTER", password="guess")
        async with phone(pop, "127.0.0.4") as ben:
            assert (await logged_in(ben, "REGISTER")).code == 503, "guesses from everywhere"
        async with phone(pop) as ann:
            assert (await logged_in(ann, "REGISTER")).code == 200


async def test_one_telephone_with_an_old_password_keeps_no_other_of_its_building_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have one address, behind a NAT."""
    monkeypatch.setattr("voicepipe.ingress.sip.sip_access.GUESSES", (Rate(2, 0), Rate(100, 1)))
    monkeypatch.setenv("HALL_PASSWORD", "other")
    pop = FakePop(sip(users=(DESK, SipUser(name="hall", password_env="HALL_PASSWORD"))))
    async with serving(pop):
        async with phone(pop) as ann:
            assert (await logged_in(ann, "REGISTER")).code == 200
        for code in (403, 403, 503):
            async with phone(pop) as old:
                assert (await logged_in(old, "REGISTER", user="hall", password="old")).code == code
        async with phone(pop) as ann:
            assert (await logged_in(ann, "REGISTER")).code == 200


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("twice", ['username="decoy"', "Username=decoy", 'nonce="x"', "uri=x"])
async def test_who_is_named_twice_is_nobody(known: bool, twice: str) -> None:
    """The throttle counted one user, and another one's password was checked."""
    async with calling(FakePop(sip(users=(DESK,)))) as eve:
        if known:
            assert (await logged_in(eve, "REGISTER")).code == 200
        before = len(eve.said)
        eve.request("REGISTER")
        refused = await eve.final("REGISTER", before)
        answer = digest(refused.header("www-authenticate"), "REGISTER", "sip:front@127.0.0.1")
        before = len(eve.said)
        eve.request("REGISTER", [("Authorization", answer.replace("Digest ", f"Digest {twice},"))])
        refused = await eve.final("REGISTER", before)
        name = twice.partition("=")[0].lower()
        assert refused.code == 400 and f"two '{name}'" in refused.header("warning")


async def test_guesses_are_counted_for_the_user_whose_password_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the name is written."""
    monkeypatch.setattr("voicepipe.ingress.sip.sip_access.GUESSES", (Rate(2, 0), Rate(100, 1)))
    async with calling(FakePop(sip(users=(DESK,)))) as eve:
        assert (await logged_in(eve, "REGISTER")).code == 200
        for code in (403, 403, 503):
            before = len(eve.said)
            eve.request("REGISTER")
            refused = await eve.final("REGISTER", before)
            answer = digest(refused.header("www-authenticate"), "REGISTER", "sip:front@127.0.0.1", password="x")
            before = len(eve.said)
            eve.request("REGISTER", [("Authorization", answer.replace('username="desk"', "username = desk"))])
            assert (await eve.final("REGISTER", before)).code == code


@pytest.mark.parametrize("access", [{"users": (DESK,)}, {"trunks": (ELSEWHERE,)}])
async def test_a_stranger_gets_one_answer_to_one_invite(access: dict[str, Any]) -> None:
    """Or who writes another's address on it would have seven sent there."""
    async with calling(FakePop(sip(**access))) as eve:
        eve.invite()
        refused = await eve.final("INVITE")
        await asyncio.sleep(1.2)
        assert refused.code in (401, 403) and len(eve.said) == 1


async def test_a_phone_that_registers_is_told_that_all_is_well() -> None:
    async with calling(FakePop(sip(users=(DESK,)))) as ann:
        answer = await logged_in(ann, "REGISTER")
        assert answer.code == 200 and "expires=" in answer.header("contact")


async def test_a_nonce_of_another_day_is_asked_for_anew() -> None:
    async with calling(FakePop(sip(users=(DESK,)))) as ann:
        stale = digest('Digest realm="voicepipe",nonce="AAAA",algorithm=MD5', "INVITE", "sip:front@127.0.0.1")
        refused = await ann.dial(headers=[("Authorization", stale)])
        assert refused.code == 401 and "stale=true" in refused.header("www-authenticate")


async def test_a_trunk_is_known_by_its_address(caplog: pytest.LogCaptureFixture) -> None:
    async with calling(FakePop(sip(trunks=(TRUNK,)))) as ann:
        assert (await ann.dial()).code == 200
        await ann.hang_up()
    async with calling(FakePop(sip(trunks=(ELSEWHERE,)))) as ann:
        assert (await ann.dial()).code == 403
        ann.to_tag = ""
        ann.request("OPTIONS")
        assert (await ann.final("OPTIONS")).code == 403
    assert "INVITE from 127.0.0.1 refused with 403: 127.0.0.1 is none of the sip.trunks" in caplog.text


def test_an_open_door_to_strangers_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"sip\.host = '192\.0\.2\.7' lets other machines call"):
        check_phones(sip(host="192.0.2.7"))


def test_a_user_without_a_password_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESK_PASSWORD")
    with pytest.raises(ConfigError, match="the environment variable DESK_PASSWORD is not set here"):
        SipAccess(sip(users=(DESK,)).sip)
