"""Where a redirected request goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.ingress.sip.addresses import Address, contact, placement_of

POP, ID = "203.0.113.5:5060", "call_0123456789abcdef"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("sip:+4930123@directory.example", "sip:+4930123@203.0.113.5:5060;vp-call="),
        ("sip:+4930123@directory.example:5080;user=phone", "sip:+4930123@203.0.113.5:5060;user=phone;vp-call="),
        ("sip:30;phone-context=+49@directory.example;tenant=acme?Subject=hi",
         "sip:30;phone-context=+49@203.0.113.5:5060;tenant=acme;vp-call="),
        ("sip:front@192.0.2.1;transport=tcp;lr;maddr=192.0.2.9", "sip:front@203.0.113.5:5060;vp-call="),
        ("sips:front@directory.example", "sip:front@203.0.113.5:5060;vp-call="),
        ("sip:directory.example", "sip:203.0.113.5:5060;vp-call="),
        ("sip:john@corp.example@directory.example", "sip:john@corp.example@203.0.113.5:5060;vp-call="),
        ("sip:front@[2001:db8::1]:5060", "sip:front@203.0.113.5:5060;vp-call="),
        ("tel:+49;x=[a:b]", "sip:+49;x=%5Ba%3Ab%5D@203.0.113.5:5060;user=phone;vp-call="),
        ("tel:+4930123", "sip:+4930123@203.0.113.5:5060;user=phone;vp-call="),
        ("TEL:7042;phone-context=a.example", "sip:7042;phone-context=a.example@203.0.113.5:5060;user=phone;vp-call="),
        ("tel:+1-212-555-0100;npdi", "sip:+1-212-555-0100;npdi@203.0.113.5:5060;user=phone;vp-call="),
        ("sip:front@directory.example;vp-call=call_00", "sip:front@203.0.113.5:5060;vp-call="),
    ],
)  # fmt: skip
def test_the_same_address_at_another_host(asked: str, told: str) -> None:
    made = contact(asked, POP, ID)
    assert made == told + ID
    assert placement_of(Address.of_uri(made)) == ID


def test_what_is_no_address() -> None:
    with pytest.raises(ValueError, match="no SIP URI"):
        contact("urn:service:sos", POP, ID)
    assert placement_of(Address.of_uri("tel:+4930123")) == ""
    assert placement_of(Address.of_uri("sip:front@directory.example")) == ""
    assert placement_of(Address.of_uri(f"sip:front@directory.example;vp-call={'a' * 5000}")) == ""


USER = st.text("abcXYZ019-_.!~*'()&=+$,;?/%", min_size=1, max_size=20)
PARAMS = st.lists(st.from_regex(r"(?!vp-call|maddr|ttl|transport|lr)[a-z]{2,8}(=[a-zA-Z0-9.+]{1,8})?", fullmatch=True))


@given(USER, PARAMS)
def test_user_and_parameters_stay(user: str, params: list[str]) -> None:
    behind = "".join(f";{param}" for param in params)
    assert contact(f"sip:{user}@h.example{behind}", POP, "c") == f"sip:{user}@{POP}{behind};vp-call=c"
