"""`voicepipe plan --gpus L4,H100`: one line a host, as Markdown, so that a page can show it."""

from collections.abc import Sequence

from voicepipe.sizing.gpu_memory import DTYPES
from voicepipe.sizing.host import turn
from voicepipe.sizing.lifts import lifts
from voicepipe.sizing.options import Option, saves_only_memory

MOST_LIFTS = 2
NONE = "-"
"""In a cell: no way with such weights."""
MEANS = "means that it does not fit; in the column of fp8 also that the GPU does not compute in it."


def show(hosts: Sequence[list[Option]], what: str, budget_ms: int) -> None:
    """`hosts`: of each, the ways to put the model on it. `what`: the model and the engines."""
    mps = ", with CUDA MPS" if hosts[0][0].host.mps else ""
    print(f"Calls that are answered within {budget_ms} ms, 19 times of 20: {what}{mps}.\n")
    table = lines(hosts)
    print("\n".join(table))
    notes = [f'"{NONE}" {MEANS}'] if any(f"| {NONE} |" in line for line in table) else []
    notes += dict.fromkeys(note for found in hosts for note in saves_only_memory(found))
    if notes:
        print("\n" + "\n".join(notes))


def lines(hosts: Sequence[list[Option]]) -> list[str]:
    """A table: of each host the calls in time with each kind of weights, what bounds the best of them, and what would
    answer more."""
    kinds = [dtype for dtype in DTYPES if any(option.group.dtype == dtype for found in hosts for option in found)]
    head = ["one host", *kinds, "bound", "calls with one change"]
    rows = [head, ["---", *["---:"] * len(kinds), "---", "---"], *(_row(found, kinds) for found in hosts)]
    return [f"| {' | '.join(row)} |" for row in rows]


def _row(found: list[Option], kinds: Sequence[str]) -> list[str]:
    host = found[0].host
    name = host.gpu.name if host.gpus == 1 else f"{host.gpus} x {host.gpu.name}"
    of = {kind: [option for option in found if option.group.dtype == kind and option.host.fits] for kind in kinds}
    cells = [str(max((option.host_calls for option in of[kind]), default=0)) if of[kind] else NONE for kind in kinds]
    fitting = [option for option in found if option.host.fits]
    if not fitting:
        return [name, *cells, "memory", ""]
    chosen = max(fitting, key=_rank)  # the most precise of equals
    more = ", ".join(f"{lift.what} {lift.calls}" for lift in lifts(chosen.host, chosen.compute_ms)[:MOST_LIFTS])
    return [name, *cells, f"{chosen.group.dtype}: {chosen.bound}", more]


def _rank(option: Option) -> tuple[float, ...]:
    """The largest answers most calls on the fewest GPUs; where none answers a call, it comes nearest to that."""
    near = 0.0 if option.calls else -turn(option.host, 1).compute_p95
    return option.host_calls, near, -option.group.gpus
