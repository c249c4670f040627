"""Series and questions of a probe, for its tests."""

from typing import Any

from tests.latency_probes.made import utterance
from voicepipe.config.probe_config import ProbedConfig
from voicepipe.probe.probe_targets import ProbeQuestion, ProbeSeries, Way, phone

QUESTION = ProbeQuestion(utterance(), ("tuesday",))


def series(url: str = "http://127.0.0.1:9", way: Way = "straight", by: Any = "websocket", **target: Any) -> ProbeSeries:
    """One of the PoP fra1, or of a directory."""
    named: dict[str, Any] = {"directory": url} if way == "directory" else {"url": url}
    its = ProbedConfig(name="eu", **named, **target)
    return ProbeSeries("eu", way, "" if way == "directory" else "fra1", by, url, phone(its.phone, url), its, 0)
