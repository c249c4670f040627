"""`python -m tests.fuzz`: inputs by the million, over all targets, on two processes. Status 1: something was found."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path

from tests.fuzz.campaign import Finding, Tally, outcome
from tests.fuzz.findings import keep, minimised
from tests.fuzz.target import Target, targets
from tests.fuzz.worker import Worker

PROGRESS_S = 10.0
"""Between two lines of progress."""
LEAST_A_PART = 20_000
"""A target with more inputs than twice this is run in two parts, with different seeds."""


MOST_DEATHS = 5
"""Processes of one target; after so many it is given up."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(targets())}; all if none is named")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in all (%(default)s)")
    parser.add_argument(
        "--seed", default="1", help="the same seed, inputs and targets make the same inputs (%(default)s)"
    )
    parser.add_argument("--processes", type=int, default=2, help="at a time (%(default)s)")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="run this one input of the one target, and show what it does"
    )
    options = parser.parse_args(arguments)
    known = targets()
    if unknown := [name for name in options.targets if name not in known]:
        parser.error(f"no target is called {unknown[0]!r}; there are: {', '.join(known)}")
    chosen = [known[name] for name in options.targets or known]
    if options.replay:
        return _replay(chosen, options.replay)
    began = time.monotonic()
    tallies = _run(_parts(chosen, options.inputs, options.seed), options.processes)
    _report(chosen, tallies, time.monotonic() - began)
    return 1 if any(tally.findings for _, tally in tallies) else 0


def _replay(chosen: Sequence[Target], path: Path) -> int:
    found = [finding for target in chosen if (finding := outcome(target, path.read_bytes()))]
    print(
        "\n".join(f"{finding.kind}: {finding.where}\n{finding.says}" for finding in found)
        or "Nothing is wrong with it."
    )
    return 1 if found else 0


def _parts(chosen: Sequence[Target], inputs: int, seed: str) -> list[tuple[str, int, str]]:
    """Target, inputs and seed of each process, the longest first."""
    shares = sum(target.share for target in chosen)
    parts = []
    for target in chosen:
        mine = max(1, round(inputs * target.share / shares))
        cut = 2 if mine >= 2 * LEAST_A_PART else 1
        parts += [(target.name, mine // cut + (n < mine % cut), f"{seed}.{n}") for n in range(cut)]
    return sorted(parts, key=lambda part: -part[1])


def _run(parts: list[tuple[str, int, str]], processes: int) -> list[tuple[str, Tally]]:
    """Every part in a process of its own, so many at a time. A part whose process dies goes on with another seed."""
    over: list[tuple[str, Tally]] = []
    running: list[Worker] = []
    deaths: Counter[str] = Counter()
    total, shown, number = sum(part[1] for part in parts), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            while parts or running:
                while parts and len(running) < processes:
                    name, inputs, seed = parts.pop(0)
                    running.append(Worker(name, inputs, seed, Path(folder) / str(number := number + 1)))
                ready = wait([worker.results for worker in running], timeout=PROGRESS_S)
                for worker in [worker for worker in running if worker.results in ready]:
                    worker.read()
                    if worker.done:
                        running.remove(worker)
                        over.append((worker.name, worker.tally))
                        left = worker.inputs - worker.tally.inputs
                        deaths[worker.name] += worker.died
                        if worker.died and left > 0 and deaths[worker.name] < MOST_DEATHS:
                            parts.append((worker.name, left, f"{worker.seed}.again"))
                if time.monotonic() - shown > PROGRESS_S:
                    shown = time.monotonic()
                    _show(over, running, total)
        finally:
            for worker in running:
                worker.end()
    return over


def _show(over: list[tuple[str, Tally]], running: list[Worker], total: int) -> None:
    tallies = [tally for _, tally in over] + [worker.tally for worker in running]
    inputs, found = sum(tally.inputs for tally in tallies), sum(len(tally.findings) for tally in tallies)
    now = ", ".join(f"{worker.name} {worker.tally.inputs:,}" for worker in running)
    print(f"{inputs:,} of {total:,} inputs, {found} findings; running: {now}", file=sys.stderr, flush=True)


def _report(chosen: Sequence[Target], tallies: list[tuple[str, Tally]], seconds: float) -> None:
    """The findings, minimised and kept, then a table."""
    for target in chosen:
        mine = [tally for name, tally in tallies if name == target.name]
        for finding in {finding.where: finding for tally in mine for finding in tally.findings}.values():
            _tell(target, finding)
    print(f"{'target':<22}{'inputs':>10}{'findings':>10}{'slowest':>12}{'memory':>12}{'kept':>7}{'steps':>8}")
    for target in chosen:
        mine = [tally for name, tally in tallies if name == target.name]
        slowest = max(tally.slowest_s for tally in mine) * 1000
        found = len({finding.where for tally in mine for finding in tally.findings})
        print(
            f"{target.name:<22}{sum(tally.inputs for tally in mine):>10,}{found:>10}{slowest:>9.1f} ms"
            f"{max(tally.grown_mb for tally in mine):>+9.1f} MB{sum(tally.kept for tally in mine):>7}"
            f"{max(tally.reached for tally in mine):>8,}"
        )
    total = sum(tally.inputs for _, tally in tallies)
    print(f"{total:,} inputs in {seconds:.0f} s. slowest: processor time of one input. memory: growth of the process")
    print(
        "after a tenth of its inputs. kept: inputs that reached new code. steps: from line to line, in sampled inputs."
    )


def _tell(target: Target, finding: Finding) -> None:
    small = minimised(target, finding) if finding.kind != "death" else finding
    kept = "" if finding.kind == "leak" else f"; python -m tests.fuzz {target.name} --replay {keep(target, small)}"
    print(f"{target.name}: {small.kind}: {small.where}{kept}\n{small.says}\n")


if __name__ == "__main__":
    sys.exit(main())
