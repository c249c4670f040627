"""The part of `voicepipe plan` about money: what a minute of call costs on the host, and when that is less than at a
hosted API."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from voicepipe.base.errors import ConfigError
from voicepipe.sizing.options import Option
from voicepipe.sizing.price import break_even_calls, minute_cost

USES = {"full": 1.0, "half": 0.5, "quarter": 0.25}
"""Parts of the host's calls that are in progress on average."""
LEAST, MOST = 1e-6, 1e9
"""Bounds of a price."""
MINUTES_A_DAY = 24 * 60
TITLE = """\
What a minute of call costs, at {:.12g} an hour for the host. 50 % used: half of its calls in time are in progress on \
average. 2 x 9: two PoPs on the host, of 9 calls each. Without lines and people."""
BREAK_EVEN = " Above the break-even the host is cheaper than the hosted API; never: it is not."


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the host and of a hosted API, in one currency. Raises ConfigError: one of them is no price."""

    host_hour: float
    hosted_minute: float | None = None
    """Price of a minute at a hosted API; None: not given."""

    def __post_init__(self) -> None:
        for option, price, of in (
            ("--price", self.host_hour, "the host costs an hour"),
            ("--hosted", self.hosted_minute, "a minute costs at the hosted API"),
        ):
            if price is not None and not LEAST <= price <= MOST:
                raise ConfigError(f"{option}: {price:g}: give what {of}, from {LEAST:f} to {MOST:.0f}")

    @property
    def break_even(self) -> float | None:
        """Calls in progress on average at which the host costs as much as the hosted API."""
        return break_even_calls(self.host_hour, self.hosted_minute) if self.hosted_minute else None

    def facts(self) -> dict[str, Any]:
        """The prices for other programs; what was not asked for is null."""
        even = self.break_even
        return {
            "price_per_hour": self.host_hour, "hosted_per_minute": self.hosted_minute, "break_even_calls": even,
            "break_even_minutes_a_day": even and even * MINUTES_A_DAY,
        }  # fmt: skip

    def facts_of(self, option: Option) -> dict[str, Any]:
        """Cost of a minute of a call for each of `USES`, and the part of the option's calls at which the host is as
        cheap as the hosted API. Null: no call is answered in time; the host is never as cheap."""
        calls, even = option.host_calls, self.break_even
        costs = {use: minute_cost(self.host_hour, share * calls) for use, share in USES.items()} if calls else None
        return {"minute_cost": costs, "break_even_use": even / calls if even and even <= calls else None}

    def title(self) -> str:
        """Title of the table."""
        return TITLE.format(self.host_hour) + (BREAK_EVEN if self.hosted_minute else "")

    def head(self) -> list[str]:
        """Head of the table."""
        uses = [f"{100 * share:.0f} % used" for share in USES.values()]
        return ["calls in time", *uses, *(["break-even"] if self.hosted_minute else [])]

    def cells(self, option: Option) -> list[str]:
        """Row of an option in the table."""
        costs, use = self.facts_of(option).values()
        calls = f"{option.pops} x {option.calls}" if option.calls and option.pops > 1 else str(option.calls)
        minutes = [_money(cost) for cost in costs.values()] if costs else ["-"] * len(USES)
        even = f"{100 * use:.0f} %" if use else "never"
        return [calls, *minutes, *([even] if self.hosted_minute else [])]

    def advice(self, chosen: Option | None, calls: int) -> Iterator[str]:
        """Sentences on the cost of `chosen`, and on the hosted API. `calls`: the number that was asked for."""
        if chosen is None:
            yield "No call is answered in time on this host, so there is neither a cost of a minute nor a break-even."
            return
        if chosen.host_calls < calls:
            hosts = math.ceil(calls / chosen.host_calls)
            yield f"{hosts} such hosts, for {calls} calls, cost {_money(hosts * self.host_hour)} an hour."
        if chosen.calls > calls:
            few, many = (_money(minute_cost(self.host_hour / chosen.pops, slots)) for slots in (calls, chosen.calls))
            yield (
                f"With pop.slots = {calls}, as --calls asks for, a minute of call costs at least {few}; with "
                f"{chosen.calls}, which would be answered in time, {many}."
            )
        if self.break_even:
            use, answers = self.facts_of(chosen)["break_even_use"], f"what the host answers in time ({chosen.name})"
            never = f"more than {answers}: the hosted API is always cheaper"
            yield (
                f"Break-even with a hosted API at {self.hosted_minute:.12g} a minute: {_money(self.break_even)} calls "
                f"in progress on average, or {_money(self.break_even * MINUTES_A_DAY)} minutes of call a day: "
                f"{f'{100 * use:.0f} % of {answers}' if use else never}."
            )


def given(price: float | None, hosted: float | None) -> Prices | None:
    """The prices of the command line; None: none. Raises ConfigError."""
    if price is not None:
        return Prices(price, hosted)
    if hosted is not None:
        raise ConfigError("--hosted: is compared with what the host costs an hour; give that as --price")
    return None


def _money(amount: float) -> str:
    """An amount with three significant digits, as 0.0104, 1.04 or 1,040."""
    digits = max(0, 2 - math.floor(math.log10(amount)))
    return f"{amount:,.{digits}f}"
