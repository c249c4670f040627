"""Keys in the bodies of INFOs, as phones and gateways write them, and keys that come by RTP as well."""

import logging
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingress.fake_pop import FakeCall, FakePop
from tests.ingress.sip.peer import Phone, calling, sip
from tests.support.waiting import until
from voicepipe.ingress.sip.info_keys import LONGEST_HELD_S, TOGETHER_S, TYPES, KeyPaths, held_s, key_of
from voicepipe.ingress.sip.sip_access import SipRefusal
from voicepipe.rtp.telephone_events import KEYS, TelephoneEvent

RELAY, DTMF, EVENT, NORTEL = TYPES


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that calls are told of."""
    keys: list[str] = []
    monkeypatch.setattr(FakeCall, "press", lambda call, key: keys.append(key))
    return keys


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("number", range(16))
def test_numbers_are_those_of_events_in_every_type(kind: str, number: int) -> None:
    """siphon-sip#347, SEMS: 10 is the star, 11 the hash."""
    for body in (f"Signal={number}\r\nDuration=160\r\n", f"{number}\r\n", f"Event={number}", f"d={number}\n"):
        assert key_of(kind, body) == KEYS[number]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("key", KEYS + "abcd")
def test_keys_are_written_as_they_are_too(kind: str, key: str) -> None:
    for body in (
        f"Signal={key}\r\nDuration=160\r\n",
        key,
        f" {key} \r\n",
        f"p=Digit-Collection\r\ny=Digits\r\nd={key}",
    ):
        assert key_of(kind, body) == key.upper()


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("Signal= 5\r\nDuration= 160\r\n", "5"),
        ("signal =\t5", "5"),
        ("SIGNAL=5\r\nDURATION=250\r\n", "5"),
        ("Duration=160\r\nSignal=9\r\n", "9"),
        ("Signal=6\nDuration=250\n", "6"),
        ("Signal=6\rDuration=250\r", "6"),
        ("Signal: 7\r\nDuration: 160", "7"),
        ('Signal="*"\r\n', "*"),
        ("Signal='11'\r\n", "#"),
        ("Signal=05\r\n", "5"),
        ("\r\n\r\n  Signal=3  \r\n\r\n", "3"),
        ("Signal=\r\n*", "*"),
        ("5\0", "5"),
        ("5\r\nDuration=100\r\n", "5"),
        ("Duration=160\r\n8\r\n", "8"),
        ("Event=12\r\nVolume=10\r\nDuration=160\r\n", "A"),
        ("Signal=4\r\nEvent=DTMF\r\n", "4"),
        ("Signal=*\r\nSignal=10\r\n", "*"),
        ("p=Digit-Collection\ny=Digits\ns=success\nd=#\n", "#"),
    ],
)
def test_how_gateways_write_them(body: str, key: str) -> None:
    assert key_of(RELAY, body) == key


@pytest.mark.parametrize("body", ["", "\r\n", " \r\n\t\r\n"])
@pytest.mark.parametrize("kind", [*TYPES, "", "application/sdp", "text/plain"])
def test_an_empty_body_asks_whether_the_call_goes_on(kind: str, body: str) -> None:
    assert key_of(kind, body) == ""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("Signal=F\r\nDuration=100\r\n", "'F', which is no key: keys are 0 1 2"),
        ("Signal=17", "'17', which is no key"),
        ("Signal=160", "'160', which is no key"),
        ("Signal=-1", "'-1', which is no key"),
        ("Signal=55", "'55', which is no key"),
        ("Signal=5x", "'5x', which is no key"),
        ("Signal=23", "'23', which is no key"),
        ("Signal=ABC", "'ABC', which is no key"),
        ("Signal=*#", "'*#', which is no key"),
        ("Signal=789", "'789', which is no key"),
        ("Signal=\u0665", "which is no key"),
        ("Signal=5\r\nSignal=6", "several keys: send an INFO for each"),
        ("5\r\n6", "several keys"),
        ("Duration=160\r\n", 'it names no key: write "Signal=5"'),
        ("Signal=\r\nDuration=160\r\n", "it names no key"),
        ("Signal=16", "a hook flash, which is no key"),
        ("Signal=!", "a hook flash"),
        ("16", "a hook flash"),
        ("hello", "'hello', which is no key"),
        ("\n" * 7000 + "x", "7001 characters, and at most 1000 are read"),
        ("\x00\x01\x02", "which is no key"),
    ],
)
@pytest.mark.parametrize("kind", TYPES)
def test_what_names_no_key_is_refused_and_says_why(kind: str, body: str, why: str) -> None:
    with pytest.raises(SipRefusal) as refused:
        key_of(kind, body)
    assert refused.value.code == 400 and why in refused.value.why
    ((name, warning),) = refused.value.headers
    assert name == "Warning" and warning.startswith('399 voicepipe "it') and warning.isascii()
    assert warning.count('"') == 2 and "\n" not in warning


@pytest.mark.parametrize("kind", ["text/plain", "application/media_control+xml", "application/sdp"])
def test_a_type_that_nobody_knows_is_refused_with_those_that_are_read(kind: str) -> None:
    with pytest.raises(SipRefusal) as refused:
        key_of(kind, "Signal=5")
    assert refused.value.code == 415 and refused.value.headers == (("Accept", ", ".join(TYPES)),)


def test_a_body_without_a_type_is_read() -> None:
    assert key_of("", "Signal=5\r\nDuration=160\r\n") == "5"
    with pytest.raises(SipRefusal, match="no key"):
        key_of("", "hello")


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ("Signal=0\r\nDuration=3000\r\n", 3.0),
        ("Duration = 250\nSignal=0", 0.25),
        ('DURATION: "1500"\0\r\nSignal=0', 1.5),
        ("Signal=0\r\nDuration=99999\r\n", LONGEST_HELD_S),
        ("Signal=0\r\nDuration=" + "9" * 900, 0.0),
        ("Signal=0\r\nDuration=-5", 0.0),
        ("Signal=0\r\nDuration=long", 0.0),
        ("Signal=0", 0.0),
        ("", 0.0),
    ],
)
def test_for_how_long_the_key_was_down(body: str, seconds: float) -> None:
    assert held_s(body) == seconds


@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(st.sampled_from(["Signal", "=", "5", "10", "\r\n", " ", "d", '"', "!", "A", "#"])),
    )
)
def test_any_body_is_a_key_or_a_refusal(body: str | list[str]) -> None:
    text = body if isinstance(body, str) else "".join(body)
    try:
        key = key_of(RELAY, text)
    except SipRefusal as refused:
        assert refused.code == 400 and refused.why
        return
    assert key in set(KEYS) if text.strip() else key == ""


# --- in a call


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (RELAY, "Signal=10\r\nDuration=160\r\n"),
        (DTMF, "10"),
        ("Application/DTMF;charset=UTF-8", "*"),
        (EVENT, "Event=10"),
        ("audio/Telephone-Event; rate=8000", "d=10"),
        ("", "Signal=10"),
    ],
)
async def test_a_key_reaches_the_call(pressed: list[str], kind: str, body: str) -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        ann.request("INFO", body=body, kind=kind)
        assert (await ann.final("INFO")).code == 200
        await until(lambda: pressed)
        assert pressed == ["*"]
        await ann.hang_up()


@pytest.mark.parametrize(
    ("kind", "body", "code", "said"),
    [(RELAY, "Signal=16\r\n", 400, "hook flash"), (DTMF, "star", 400, "'star', which is no key"),
     ("text/plain", "Signal=5", 415, "an INFO of text/plain")],
)  # fmt: skip
async def test_what_is_refused_is_said_in_the_log_and_the_call_goes_on(
    pressed: list[str], caplog: pytest.LogCaptureFixture, kind: str, body: str, code: int, said: str
) -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        ann.request("INFO", body=body, kind=kind)
        refused = await ann.final("INFO")
        assert refused.code == code and refused.header("accept" if code == 415 else "warning")
        before = len(ann.said)
        ann.request("INFO")
        assert (await ann.final("INFO", before)).code == 200
        assert (await ann.hang_up()).code == 200
    assert not pressed
    assert [record for record in caplog.records if record.levelno >= logging.WARNING and said in record.getMessage()]


# --- by two ways


def event(ann: Phone, key: str) -> None:
    """One packet, with a timestamp of its own."""
    ann.say(payload_type=101, payload=bytes(TelephoneEvent(KEYS.index(key), True, 160)))


async def info(ann: Phone, key: str) -> None:
    before = len(ann.said)
    ann.request("INFO", body=f"Signal={key}\r\n", kind=RELAY)
    assert (await ann.final("INFO", before)).code == 200


def _are(pressed: list[str], keys: str) -> bool:
    return "".join(pressed) == keys


async def test_a_key_that_is_held_for_long_is_one_press(pressed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.ingress.sip.info_keys.TOGETHER_S", -1.0)
    async with calling(FakePop(sip())) as ann:
        ann.media_of(await ann.dial())
        event(ann, "0")
        await until(partial(_are, pressed, "0"))
        ann.request("INFO", body="Signal=0\r\nDuration=30000\r\n", kind=RELAY)
        assert (await ann.final("INFO")).code == 200
        await info(ann, "7")
        assert "".join(pressed) == "07"
        await ann.hang_up()


async def test_a_press_by_rtp_and_by_info_is_one_and_two_are_two(pressed: list[str]) -> None:
    async with calling(FakePop(sip())) as ann:
        ann.media_of(await ann.dial())
        for keys in ("5", "55", "556", "5566"):
            event(ann, keys[-1])
            await until(partial(_are, pressed, keys))
            await info(ann, keys[-1])
        assert "".join(pressed) == "5566"
        await info(ann, "7")
        event(ann, "7")
        event(ann, "#")
        await until(lambda: pressed[-1:] == ["#"])
        assert "".join(pressed) == "55667#"
        await ann.hang_up()


def told(*presses: tuple[str, str, float] | tuple[str, str, float, float]) -> str:
    paths = KeyPaths()
    return "".join(key for key, *more in presses if paths.is_new_press(key, *more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("presses", "keys"),
    [
        ([("1", "rtp", 0.0), ("1", "info", 0.2)], "1"),
        ([("1", "info", 0.0), ("1", "rtp", 0.2)], "1"),
        ([("1", "rtp", 0.0), ("1", "rtp", 0.2), ("1", "info", 0.3), ("1", "info", 0.5)], "11"),
        ([("1", "rtp", 0.0), ("1", "info", 0.1), ("1", "rtp", 0.2), ("1", "info", 0.3)], "11"),
        ([("1", "rtp", 0.0), ("2", "rtp", 0.2), ("1", "info", 0.5), ("2", "info", 0.7)], "12"),
        ([("1", "rtp", 0.0), ("1", "rtp", 0.2), ("1", "rtp", 0.4)], "111"),
        ([("1", "info", 0.0), ("1", "info", 0.1)], "11"),
        ([("1", "rtp", 0.0), ("2", "info", 0.1)], "12"),
        ([("1", "rtp", 0.0), ("1", "info", TOGETHER_S + 0.1)], "11"),
        ([("1", "rtp", 0.0), ("1", "info", 1.5), ("1", "rtp", 1.6), ("1", "info", 1.7)], "11"),
        ([("0", "rtp", 0.0), ("0", "info", 3.0, 3.0)], "0"),
        ([("0", "rtp", 0.0), ("2", "rtp", 2.5), ("0", "info", 5.0, 4.8)], "02"),
        ([("0", "rtp", 0.0), ("0", "info", 3.0, 0.25)], "00"),
        ([("0", "rtp", 0.0), ("0", "info", 3.0, 3.0), ("0", "info", 3.1, 0.1)], "00"),
        ([("0", "info", 0.2, 5.0), ("0", "rtp", 0.3)], "0"),
    ],
)
def test_which_messages_are_one_press(presses: list[tuple[str, str, float]], keys: str) -> None:
    assert told(*presses) == keys
