"""Debian's Prometheus, which scrapes PoPs of a test."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port

RULES = Path(__file__).parents[2] / "pops" / "alerts" / "voicepipe.rules.yml"
installed = pytest.mark.skipif(
    not shutil.which("prometheus"), reason="Prometheus is not installed (apt install prometheus)"
)


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **fields: str | float) -> Any:
        """The data of an answer of `/api/v1/<path>`. Raises OSError, also for a question that makes no sense."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(fields)}") as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise OSError(f"{fields}: {error.read().decode()}") from error

    def asked(self, query: str) -> dict[str, float]:
        """What PromQL's `query` gives now: by the labels of each series, as JSON; {} also while it is starting."""
        try:
            result = self.get("query", query=query)["result"]
        except OSError:
            return {}
        return {json.dumps(series["metric"], sort_keys=True): float(series["value"][1]) for series in result}

    def exemplars(self, query: str) -> set[str]:
        """The traces to which this metric leads, of the last ten minutes."""
        now = time.time()
        try:
            found = self.get("query_exemplars", query=query, start=now - 600, end=now + 600)
        except OSError:
            return set()
        return {each["labels"]["trace_id"] for series in found for each in series["exemplars"]}


@contextmanager
def scraping(
    folder: Path, every: str, targets: Mapping[str, list[str]], keys: Mapping[str, str] | None = None
) -> Iterator[Prometheus]:
    """It keeps its files in `folder`, and has our alerts. `every`: how often it scrapes; `targets`: addresses
    ("HOST:PORT") by job; `keys`: what it shows there, by job."""
    shown = {job: {"authorization": {"credentials": key}} for job, key in (keys or {}).items()}
    jobs = [{"job_name": job, "static_configs": [{"targets": at}], **shown.get(job, {})} for job, at in targets.items()]
    config = {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": [str(RULES)],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML, too
    address = f"127.0.0.1:{free_port()}"
    options = (
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
    )
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(("prometheus", *options), cwd=folder, stdout=log, stderr=log)
    try:
        yield Prometheus(f"http://{address}")
    finally:
        running.terminate()
        running.wait(30)
