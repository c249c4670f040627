"""The part of `voicepipe plan` about money: what a minute of call costs on the host, and when that is less than at a
hosted API."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from voicepipe.errors import ConfigError
from voicepipe.sizing.options import Option
from voicepipe.sizing.price import break_even_calls, minute_cost

USES = {"full": 1.0, "half": 0.5, "quarter": 0.25}
"""Shares of the host's calls that are in progress on average."""
LEAST, MOST = 1e-6, 1e9
"""Of a price."""
MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Prices:
    """As they are given, in one currency. Raises ConfigError: one of them is no price."""

    host_hour: float
    hosted_minute: float | None = None
    """Of a hosted API; None: nobody asked."""

    def __post_init__(self) -> None:
        for option, price, of in (
            ("--price", self.host_hour, "the host costs an hour"),
            ("--hosted", self.hosted_minute, "a minute costs at the hosted API"),
        ):
            if price is not None and not LEAST <= price <= MOST:
                raise ConfigError(f"{option}: {price:g}: give what {of}, from {LEAST:f} to {MOST:.0f}")

    @property
    def break_even(self) -> float | None:
        """Calls in progress on average with which the host costs as much as the hosted API."""
        return break_even_calls(self.host_hour, self.hosted_minute) if self.hosted_minute else None

    def break_even_use(self, option: Option) -> float | None:
        """The same as a share of the calls that the host answers in time. None: it does not answer so many, or nobody
        asked."""
        if self.break_even is None or self.break_even > option.host_calls:
            return None
        return self.break_even / option.host_calls

    def minute_costs(self, option: Option) -> dict[str, float] | None:
        """Of a minute of call, for each of `USES`. None: no call is answered in time."""
        if not option.calls:
            return None
        return {use: minute_cost(self.host_hour, share * option.host_calls) for use, share in USES.items()}


def given(price: float | None, hosted: float | None) -> Prices | None:
    """What the command line says; None: nothing. Raises ConfigError."""
    if price is not None:
        return Prices(price, hosted)
    if hosted is not None:
        raise ConfigError("--hosted: is compared with what the host costs an hour; give that as --price")
    return None


def title(prices: Prices) -> str:
    """Above the table."""
    hosted = " Above the break-even the host is cheaper than the hosted API; never: it is not."
    return (
        f"What a minute of call costs, at {prices.host_hour:.12g} an hour for the host. 50 % used: half of its calls "
        "in time are in progress on average. 2 x 9: two PoPs on the host, of 9 calls each. Without lines and people."
        + (hosted if prices.hosted_minute else "")
    )


def head(prices: Prices) -> list[str]:
    """Of the table."""
    uses = [f"{100 * share:.0f} % used" for share in USES.values()]
    return ["calls in time", *uses, *(["break-even"] if prices.hosted_minute else [])]


def cells(prices: Prices, option: Option) -> list[str]:
    """A row of the table."""
    costs, use = prices.minute_costs(option), prices.break_even_use(option)
    calls = f"{option.pops} x {option.calls}" if option.calls and option.pops > 1 else str(option.calls)
    minutes = [_money(cost) for cost in costs.values()] if costs else ["-"] * len(USES)
    even = "never" if use is None else f"{100 * use:.0f} %"
    return [calls, *minutes, *([even] if prices.hosted_minute else [])]


def advice(prices: Prices, chosen: Option | None, calls: int) -> Iterator[str]:
    """Sentences on what it costs with `chosen`, and on the hosted API. `calls`: that were asked for."""
    if chosen is None or not chosen.calls:
        yield "No call is answered in time on this host, so there is no cost of a minute to tell, and no break-even."
        return
    if chosen.host_calls < calls:
        hosts = math.ceil(calls / chosen.host_calls)
        yield f"{hosts} such hosts, for {calls} calls, cost {_money(hosts * prices.host_hour)} an hour."
    if chosen.calls > calls:
        few, many = (_money(minute_cost(prices.host_hour / chosen.pops, slots)) for slots in (calls, chosen.calls))
        yield (
            f"With pop.slots = {calls}, as --calls asks for, a minute of call costs at least {few}; with "
            f"{chosen.calls}, which would be answered in time, {many}."
        )
    if prices.break_even is None:
        return
    use = prices.break_even_use(chosen)
    yield (
        f"Break-even with a hosted API at {prices.hosted_minute:.12g} a minute: {_money(prices.break_even)} calls in "
        f"progress on average, which is {_money(prices.break_even * MINUTES_A_DAY)} minutes of call a day, and "
        + (
            f"{100 * use:.0f} % of what the host answers in time ({chosen.name}). With more calls this host is "
            "cheaper, with fewer the hosted API."
            if use is not None
            else f"more than the {chosen.host_calls} that the host answers in time ({chosen.name}): the hosted API is "
            "always cheaper."
        )
    )


def _money(amount: float) -> str:
    """With three digits that count, as 0.0104, 1.04 or 1,040."""
    digits = max(0, 2 - math.floor(math.log10(amount)))
    return f"{amount:,.{digits}f}"
