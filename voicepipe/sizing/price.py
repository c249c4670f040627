"""What calls cost, by the price of their host.

A host costs its price whether or not anyone calls. While a call lasts it pays for its slot, one of `slots`, so that
what it costs does not depend on who else calls. Slots that stand empty are idle cost: no call pays it, and it is
told apart. The calls' costs and the idle cost add up to the host's.

`price_per_hour` is the host's, in the operator's currency; every cost is in the same. `slots` are the calls that the
PoP may have at a time (`pop.slots`), at least 1.
"""


def host_cost(price_per_hour: float, seconds: float) -> float:
    """Cost of the host for so long."""
    return price_per_hour * seconds / 3600


def call_cost(price_per_hour: float, slots: int, seconds: float) -> float:
    """Cost of one call that lasted so long, or of several: `seconds` is then the sum of theirs."""
    return host_cost(price_per_hour, seconds) / slots


def idle_cost(price_per_hour: float, slots: int, seconds: float, call_seconds: float) -> float:
    """The part of the host's cost for `seconds` that no call paid. `call_seconds`: the sum of what calls lasted in this
    time, without what they lasted before and after."""
    return max(0.0, host_cost(price_per_hour, seconds) - call_cost(price_per_hour, slots, call_seconds))


def minute_cost(price_per_hour: float, calls: float) -> float:
    """Cost of a minute of one call. With all slots as `calls` it is what each call pays. With the average of the calls
    in progress, above 0, it includes the idle cost."""
    return host_cost(price_per_hour, 60) / calls


def thousand_tokens_cost(cost: float, tokens: int) -> float | None:
    """Cost of 1,000 tokens that the language model generated in calls of this `cost`. None: it generated none."""
    return cost * 1000 / tokens if tokens else None


def break_even_calls(price_per_hour: float, hosted_per_minute: float) -> float:
    """Calls in progress on average that cost as much on the host as at a hosted API, which asks this price, above 0,
    for a minute of each. With more of them the host is cheaper."""
    return host_cost(price_per_hour, 60) / hosted_per_minute
