"""Variables in an agent's texts: what is filled in where, and that no value of a stranger's becomes more than data."""

import re
from datetime import datetime
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from tests.support.hostile_values import HOSTILE
from voicepipe.agent import Agent, HandOver, Intent, Tool, Webhook
from voicepipe.call_settings import Origin
from voicepipe.conversation.prompt import LONGEST as LONGEST_QUOTED
from voicepipe.conversation.variables import (
    LONGEST,
    LONGEST_NUMBER,
    MARK,
    UNKNOWN,
    before_variables,
    date_of,
    filled,
    moment_of,
    secret_names,
    time_of,
    values_of,
    variables_in,
    zone,
)
from voicepipe.languages.speakable import pieces
from voicepipe.languages.spoken_pieces import together

NOW = datetime(2026, 11, 30, 14, 5, tzinfo=zone("Europe/Berlin"))
EVERYWHERE = Agent(
    "desk", instructions="Be kind. Caller: {{caller}}; dialled: {{called}}; plan {{plan}}.",
    greeting="You call from {{caller}}, plan {{ plan }}.", acknowledgement="{{plan}} 1", fallback="{{plan}} 2",
    no_input=("{{plan}} 3", "Bye."), goodbye="{{plan}} 4", not_understood=("{{plan}} 5",),
    transfer_failed="{{plan}} 6", cannot_transfer="{{plan}} 7", keys={"1": "I have {{plan}}."},
    transfer={"ann": "sip:{{plan}}@example.com"}, hand_over={"sales": HandOver("Has {{plan}}.")},
    tools=(
        Tool("book", "For {{caller}} of {{plan}}.", while_running=("{{plan}} 8",),
             webhook=Webhook("https://h.example/{{plan}}/{{caller}}?to={{called}}", {"x-plan": "{{plan}} {{caller}}"})),
        Tool("look", function="m:f"),
    ),
    intents=(
        Intent("a", ("one",), "{{plan}} for {people}.", {"people": "{{plan}} how many?"}, confirm="{{plan}} {people}?",
               denied="{{plan}} no?"),
        Intent("b", ("two",), "Two."),
    ),
    variables={"plan": "basic"},
)  # fmt: skip
CALL = Origin("+4930123456", "100")


def of(agent: Agent, origin: Origin = CALL, now: datetime = NOW, **given: str) -> Agent:
    return filled(agent, values_of(agent, given), origin, now)


def test_every_text_is_filled() -> None:
    its = of(EVERYWHERE, plan="gold")
    assert its.instructions == f'Be kind. Caller: "+4930123456" {MARK}; dialled: "100" {MARK}; plan gold.'
    assert its.greeting == "You call from +4930123456, plan gold."
    assert (its.acknowledgement, its.fallback, its.no_input) == ("gold 1", "gold 2", ("gold 3", "Bye."))
    assert (its.goodbye, its.not_understood, its.transfer_failed) == ("gold 4", ("gold 5",), "gold 6")
    assert (its.cannot_transfer, its.keys, its.transfer) == (
        "gold 7", {"1": "I have gold."}, {"ann": "sip:gold@example.com"})  # fmt: skip
    assert its.hand_over == {"sales": HandOver("Has gold.")}
    book, look = its.tools
    assert (book.description, book.while_running) == (f'For "+4930123456" {MARK} of gold.', ("gold 8",))
    assert book.webhook == Webhook("https://h.example/gold/%2B4930123456?to=100", {"x-plan": "gold +4930123456"})
    first, second = its.intents
    assert (first.reply, first.slots) == ("gold for {people}.", {"people": "gold how many?"})
    assert (first.confirm, first.denied) == ("gold {people}?", "gold no?")
    assert look is EVERYWHERE.tools[1] and second is EVERYWHERE.intents[1]
    assert first.examples is EVERYWHERE.intents[0].examples
    assert not [*variables_in(its)]


def test_an_agent_without_variables_stays_the_same_object() -> None:
    agent = Agent("desk", instructions='Answer as {"a": {"b": {caller}}}.', greeting="Hello.", variables={"plan": "x"})
    assert of(agent) is agent


def test_the_file_s_value_holds_where_nothing_else_is_given_and_other_names_do_not_count() -> None:
    assert of(EVERYWHERE).goodbye == "basic 4"
    assert values_of(EVERYWHERE, {"plan": "gold", "caller": "1", "admin": "yes"}) == {"plan": "gold"}


def test_what_nobody_sent_is_empty_or_unknown() -> None:
    its = of(EVERYWHERE, Origin())
    assert f"Caller: {UNKNOWN}; dialled: {UNKNOWN}" in its.instructions
    assert its.greeting.startswith("You call from ,")


@pytest.mark.parametrize(
    ("language", "date", "time"),
    [
        ("en", "Monday, 30 November 2026", "2:05 pm"),
        ("en-GB", "Monday, 30 November 2026", "2:05 pm"),
        ("de", "Montag, 30. November 2026", "14:05"),
        ("fr-CA", "lundi, 30 novembre 2026", "14:05"),
        ("es-MX", "lunes, 30 de noviembre de 2026", "14:05"),
        ("ja", "2026年11月30日月曜日", "14:05"),
        ("xx", "2026-11-30", "14:05"),
    ],
)
def test_date_and_time_are_in_the_agent_s_language(language: str, date: str, time: str) -> None:
    assert (date_of(NOW, language), time_of(NOW, language)) == (date, time)
    agent = Agent("desk", greeting="{{date}}, {{time}}", language=language)
    assert of(agent).greeting == f"{date}, {time}"


@pytest.mark.parametrize(
    ("hour", "said"),
    [(0, "twelve oh five a m"), (9, "nine oh five a m"), (12, "twelve oh five p m"), (14, "two oh five p m")],
)
def test_they_are_read_out_well(hour: int, said: str) -> None:
    greeting = of(Agent("desk", greeting="It is {{date}}, {{time}}."), now=NOW.replace(hour=hour)).greeting
    spoken = together(pieces(greeting, "en"))
    assert spoken == f"It is Monday, November thirtieth, twenty twenty six, {said}."


def test_the_model_is_told_the_moment_with_its_zone() -> None:
    assert moment_of(NOW) == "Monday, 30 November 2026, at 14:05 (Europe/Berlin)"
    assert moment_of(NOW.astimezone(zone("America/New_York"))).endswith("at 08:05 (America/New_York)")
    assert re.fullmatch(r"Monday, 30 November 2026, at [0-9:]+ \(.+\)", moment_of(NOW.astimezone(zone(""))))


def test_what_calls_share_is_what_stands_before_the_first_variable() -> None:
    assert before_variables(EVERYWHERE.instructions) == "Be kind. Caller:"
    assert before_variables("Be {kind}.") == "Be {kind}."


def test_variables_in_headers_may_be_keys() -> None:
    assert secret_names(EVERYWHERE) == {"plan", "caller"}
    assert secret_names(Agent("desk", greeting="{{plan}}", variables={"plan": ""})) == frozenset()


# --- values of the operator's own


@pytest.mark.parametrize(
    ("value", "read", "spoken", "url", "header"),
    [
        ("Ann Müller", "Ann Müller", "Ann Müller", "Ann%20M%C3%BCller", "Ann M%C3%BCller"),
        ("a\r\nb: c\x00", "a \nb: c ", "a b: c", "a%20b%3A%20c", "a b: c"),
        ("{{caller}} {x}", "{{caller}} {x}", "caller x", "%7B%7Bcaller%7D%7D%20%7Bx%7D", "{{caller}} {x}"),
        ("..", "..", "..", "", ".."),
        ("a/b?c#d", "a/b?c#d", "a/b?c#d", "a%2Fb%3Fc%23d", "a/b?c#d"),
        ("क्\u200dष", "क्\u200dष", "क्\u200dष", "%E0%A4%95%E0%A5%8D%E2%80%8D%E0%A4%B7", None),
    ],
)
def test_a_value_is_as_its_text_needs_it(value: str, read: str, spoken: str, url: str, header: str | None) -> None:
    webhook = Webhook("https://h.example/{{plan}}", {"x-plan": "{{plan}}"})
    agent = Agent(
        "desk",
        instructions="{{plan}}",
        greeting="{{plan}}",
        variables={"plan": ""},
        tools=(Tool("t", webhook=webhook),),
    )
    its = of(agent, plan=value)
    assert (its.instructions, its.greeting) == (read, spoken)
    assert its.tools[0].webhook
    assert its.tools[0].webhook.url == f"https://h.example/{url}"
    assert header is None or its.tools[0].webhook.headers == {"x-plan": header}
    assert its.tools[0].webhook.headers["x-plan"].isascii()


def test_a_value_is_bounded() -> None:
    assert len(values_of(EVERYWHERE, {"plan": "x" * 10_000})["plan"]) == LONGEST


def test_a_target_that_is_none_with_this_value_is_left_out() -> None:
    assert of(EVERYWHERE, plan="a b\r\nX: y").transfer == {}
    agent = replace(EVERYWHERE, transfer={"ann": "{{plan}}", "desk": "+4930"})
    assert of(agent, plan="+49 30 99").transfer == {"ann": "+49 30 99", "desk": "+4930"}
    assert of(agent, plan="").transfer == {"desk": "+4930"}


# --- values of strangers


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_a_hostile_value_stays_data(value: str) -> None:
    plain, hostile = of(EVERYWHERE, Origin("1", "2")), of(EVERYWHERE, Origin(value, value))
    quotation = rf'"[^"\n]{{0,{LONGEST_QUOTED}}}" {re.escape(MARK)}'
    pattern = rf"Be kind\. Caller: {quotation}; dialled: {quotation}; plan basic\."
    assert re.fullmatch(pattern, hostile.instructions) and hostile.instructions.isprintable()
    assert re.fullmatch(rf"For {quotation} of basic\.", hostile.tools[0].description)
    number = rf"[0-9A-Za-z+*#._-]{{0,{LONGEST_NUMBER}}}"
    assert re.fullmatch(rf"You call from {number}, plan basic\.", hostile.greeting)
    webhook = hostile.tools[0].webhook
    assert webhook and re.fullmatch(rf"basic {number}", webhook.headers["x-plan"])
    url = urlsplit(webhook.url)
    assert (url.scheme, url.netloc, url.fragment) == ("https", "h.example", "")
    assert re.fullmatch(r"/basic/[\w%.*~-]*", url.path) and not url.path.endswith("/..")
    assert re.fullmatch(r"to=[\w%.*~-]*", url.query)
    # Nothing else of the agent is another than in any other call.
    same = {"instructions": "", "greeting": "", "tools": hostile.tools[1:]}
    assert replace(hostile, **same) == replace(plain, **same)


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_a_value_is_not_read_for_variables(value: str) -> None:
    """Also one of the operator's that a stranger has chosen, such as a name that a hook looked up."""
    agent = Agent("desk", greeting="{{plan}}{{caller}}", keys={"1": "{{plan}}"}, variables={"plan": "SECRET"})
    its = of(agent, Origin(value), plan=value)
    assert "SECRET" not in its.greeting and "{" not in its.greeting and "{" not in its.keys["1"]
    assert of(its, Origin("+49"), plan="other") is its, "filled once"
