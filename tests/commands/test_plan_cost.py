"""The part of `voicepipe plan` about money."""

import json

import pytest

from tests.commands.planning import PRICED, SHORT, said, unwrapped


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_what_a_minute_of_call_costs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED)
    assert "What a minute of call costs, at 2.5 an hour for the host. 50 % used: half of its calls in time" in out
    assert "awq4, one GPU             8    0.00521    0.0104    0.0208 \n" in out, "2.5 / 60 / 8, / 4, / 2"
    assert "\nprice_per_hour = 2.5\n" in out
    assert "break-even" not in out and "hosted" not in out, "nobody asked"
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100")
    assert "cost" not in out.lower() and "price_per_hour" not in out


def test_from_how_many_calls_on_the_host_is_cheaper(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED, "--hosted", "0.06")
    assert "awq4, one GPU             8    0.00521    0.0104    0.0208        9 % \n" in out
    assert (
        "- Break-even with a hosted API at 0.06 a minute: 0.694 calls in progress on average, or 1,000 minutes of "
        "call a day: 9 % of what the host answers in time (awq4, one GPU)."
    ) in unwrapped(out)


def test_a_hosted_api_that_is_always_cheaper(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED, "--hosted", "0.002")
    assert out.count(" never \n") == 3 and "is cheaper than the hosted API; never: it is not." in unwrapped(out)
    assert (
        "- Break-even with a hosted API at 0.002 a minute: 20.8 calls in progress on average, or 30,000 minutes of "
        "call a day: more than what the host answers in time (awq4, one GPU): the hosted API is always cheaper."
    ) in unwrapped(out)


@pytest.mark.parametrize("model", ["qwen3-8b", "llama-3.1-70b"], ids=["too late", "does not fit"])
def test_a_host_that_answers_no_call_in_time_has_no_cost_a_minute(
    capsys: pytest.CaptureFixture[str], model: str
) -> None:
    argv = ("--model", model, "--gpus", "L4", "--price", "0.8", "--hosted", "0.06")
    _, out, _ = said(capsys, *argv)
    assert (
        "- No call is answered in time on this host, so there is neither a cost of a minute nor a break-even."
        in unwrapped(out)
    )
    assert "% used" not in out
    _, out, _ = said(capsys, *argv, "--json")
    costs = [option["cost"] for option in json.loads(out)["options"]]
    assert costs and all(cost == {"minute_cost": None, "break_even_use": None} for cost in costs)


def test_a_host_with_gpus_for_several_pops(capsys: pytest.CaptureFixture[str]) -> None:
    """Its price is shared among them: 10 an hour for 2 PoPs of 19 calls."""
    argv = ("--model", "llama-3.2-1b", "--gpus", "H100:4", "--price", "10", "--hosted", "0.06")
    _, out, _ = said(capsys, *argv, "--calls", "4")
    assert "2 x 9: two PoPs on the host, of 9 calls each." in unwrapped(out)
    assert "bf16, one GPU        2 x 19    0.00439   0.00877    0.0175        7 % \n" in out
    assert "\nprice_per_hour = 5.0\n" in out
    assert (
        "- With pop.slots = 4, as --calls asks for, a minute of call costs at least 0.0208; with 19, which would be "
        "answered in time, 0.00439."
    ) in unwrapped(out)
    _, out, _ = said(capsys, *argv, "--calls", "19")
    assert "slots = 19  #" in out and "--calls asks for" not in unwrapped(out)


def test_how_many_hosts_and_what_they_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """With a way out: what else would answer more."""
    argv = ("--model", "qwen3-8b", "--gpus", "H100", "--asr", "large-v3-turbo", *SHORT, "--calls", "36")
    _, out, _ = said(capsys, *argv, "--price", "2.5")
    assert "36 calls are too many for one such PoP (awq4, one GPU): it answers 5 within 300 ms" in unwrapped(out)
    assert "That would be 8 such hosts with 8 GPUs." in unwrapped(out)
    assert "- 8 such hosts, for 36 calls, cost 20.0 an hour." in unwrapped(out)
    assert "- Calls in time with one change from awq4, one GPU: Nemotron 16" in unwrapped(out)
    _, out, _ = said(capsys, *argv)
    assert "an hour" not in out, "nobody asked"


def test_costs_for_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, *PRICED, "--hosted", "0.06", "--json")
    facts = json.loads(out)
    assert facts["cost"]["price_per_hour"] == 2.5 and facts["cost"]["hosted_per_minute"] == 0.06
    assert facts["cost"]["break_even_calls"] == pytest.approx(0.694, abs=0.001)
    assert facts["cost"]["break_even_minutes_a_day"] == pytest.approx(1000)
    one = facts["options"][0]
    calls = one["calls_in_time"] * one["pops_a_host"]
    assert one["cost"]["minute_cost"]["full"] == pytest.approx(2.5 / 60 / calls)
    assert one["cost"]["minute_cost"]["quarter"] == pytest.approx(4 * 2.5 / 60 / calls)
    assert one["cost"]["break_even_use"] == pytest.approx(facts["cost"]["break_even_calls"] / calls)
    assert "Break-even with a hosted API" in facts["advice"][-1]
    _, out, _ = said(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--json")
    assert json.loads(out)["cost"] is None
