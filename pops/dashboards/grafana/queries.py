"""PromQL, as the dashboards' panels need it. Names in `$...` are variables of a dashboard.

Shares and percentiles are over `$window`, ten minutes unless another is chosen, as in the alerts: a shorter time has
too few calls. `by`: the labels in which the series of an answer differ.
"""

WINDOW, RANGE = "$window", "$__range"
"""What the user chooses to look at a share over; the whole time that is shown."""
SCRAPES = "$__rate_interval"
"""As short as the scrapes allow."""


def here(metric: str, *more: str) -> str:
    """That metric of the PoPs that are chosen. `more`: further conditions."""
    conditions = ",".join(('region=~"$region"', 'pop=~"$pop"', *more))
    return f"{metric}{{{conditions}}}"


def line(metric: str, *more: str) -> str:
    """The same, of the kinds of line that are chosen."""
    return here(metric, 'ingress=~"$ingress"', *more)


def _by(by: str) -> str:
    return f" by ({by})" if by else ""


def rate(counter: str, by: str = "", window: str = WINDOW) -> str:
    """A second."""
    return f"sum{_by(by)} (rate({counter}[{window}]))"


def increase(counter: str, by: str = "", window: str = WINDOW) -> str:
    return f"sum{_by(by)} (increase({counter}[{window}]))"


def share(part: str, whole: str, by: str = "") -> str:
    """Of two counters."""
    return f"{rate(part, by)} / {rate(whole, by)}"


def total(gauge: str, by: str = "") -> str:
    return f"sum{_by(by)} ({gauge})"


def latest(gauge: str, by: str = "pop") -> str:
    """Of what several tell: directories, or a process that drains beside the one that follows it."""
    return f"max{_by(by)} ({gauge})"


def percentile(part: float, buckets: str, by: str = "") -> str:
    """Of a histogram."""
    return f"histogram_quantile({part}, {rate(buckets, f'{by}, le' if by else 'le')})"
