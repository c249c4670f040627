"""What Twilio is told to do with a call."""

from xml.etree.ElementTree import Element, fromstring

import pytest

from voicepipe.ingress.telephony.twiml import TransferTarget, dial, hang_up, reject, stream


def verb(document: str) -> Element:
    root = fromstring(document)
    assert root.tag == "Response" and len(root) == 1 and document.startswith('<?xml version="1.0" encoding="UTF-8"?>')
    return root[0]


@pytest.mark.parametrize("reason", ["busy", "rejected"])
def test_a_call_that_is_not_answered(reason: str) -> None:
    said = verb(reject(reason))  # type: ignore[arg-type]
    assert (said.tag, said.attrib) == ("Reject", {"reason": reason})


def test_a_call_is_streamed_with_what_its_stream_is_to_say() -> None:
    given = {"voicepipe": 'a"b<c>&d', "from": "+4930", "empty": ""}
    said = verb(stream("wss://pop.example/twilio/stream?a=1&b=2", given, "https://pop.example/after?x=1&y=2"))
    assert (said.tag, said.get("action")) == ("Connect", "https://pop.example/after?x=1&y=2")
    [streamed] = said
    assert (streamed.tag, streamed.get("url")) == ("Stream", "wss://pop.example/twilio/stream?a=1&b=2")
    assert {one.get("name"): one.get("value") for one in streamed} == {"voicepipe": 'a"b<c>&d', "from": "+4930"}


@pytest.mark.parametrize(
    ("target", "tag", "text"),
    [
        ("+49 (30) 12-34", "Number", "+49301234"),
        ("tel:+1-415-555-0123", "Number", "+14155550123"),
        ("sip:a@b.example?x=1&y=<2>", "Sip", "sip:a@b.example?x=1&y=<2>"),
        ("sips:a@b.example", "Sip", "sips:a@b.example"),
    ],
)
def test_whom_a_caller_is_put_through_to(target: str, tag: str, text: str) -> None:
    said = verb(dial(TransferTarget(target, 25), "https://pop.example/after"))
    assert (said.tag, said.attrib) == ("Dial", {"timeout": "25", "action": "https://pop.example/after"})
    assert (said[0].tag, said[0].text) == (tag, text)


def test_a_call_is_ended() -> None:
    assert verb(hang_up()).tag == "Hangup"
