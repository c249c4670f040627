"""Of PoPs that are ready, the one with the fewest calls has the lowest deletion cost."""

import importlib.util
import json
from typing import Any

import httpx
import pytest

from tests.deploy.rendered import KUBERNETES, named, needs_kubectl, rendered

spec = importlib.util.spec_from_file_location("deletion_cost", KUBERNETES / "base" / "deletion_cost.py")
assert spec and spec.loader
deletion_cost = importlib.util.module_from_spec(spec)
spec.loader.exec_module(deletion_cost)


class FakeApi:
    """The part of Kubernetes' API server that is asked."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = {pod["metadata"]["name"]: pod for pod in pods}
        self.gone: set[str] = set()
        self.client = httpx.Client(base_url="https://api", transport=httpx.MockTransport(self._answer))

    def costs(self) -> dict[str, str]:
        """By pod."""
        annotations = {name: pod["metadata"].get("annotations", {}) for name, pod in self.pods.items()}
        return {name: had[deletion_cost.COST] for name, had in annotations.items() if deletion_cost.COST in had}

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1/namespaces/voicepipe/pods")
        if request.method == "GET":
            assert path == "" and request.url.params["labelSelector"] == "app=pop"
            return httpx.Response(200, json={"items": list(self.pods.values())})
        assert request.method == "PATCH" and request.headers["content-type"] == "application/merge-patch+json"
        if (name := path.strip("/")) in self.gone:
            return httpx.Response(404)
        patch = json.loads(request.content)["metadata"]["annotations"]
        self.pods[name]["metadata"].setdefault("annotations", {}).update(patch)
        return httpx.Response(200, json=self.pods[name])


def pod(name: str, address: str | None, **metadata: Any) -> dict[str, Any]:
    """As the API server lists it."""
    return {"metadata": {"name": name, **metadata}, "status": {"podIP": address} if address else {}}


def pops(calls: dict[str, int]) -> httpx.Client:
    """PoPs by their addresses; others do not answer."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.port == 8080 and request.url.path == "/healthz"
        if request.url.host not in calls:
            raise httpx.ConnectError("nobody")
        return httpx.Response(200, json={"status": "full", "calls": calls[request.url.host]})

    return httpx.Client(transport=httpx.MockTransport(answer))


def test_costs_are_calls_and_only_a_change_is_written() -> None:
    api = FakeApi(pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("starts", None), pod("hangs", "10.0.0.9"))
    calls = {"10.0.0.1": 3, "10.0.0.2": 0}
    assert deletion_cost.write_costs(api.client, pops(calls), "voicepipe", "app=pop") == {"a": 3, "b": 0}
    assert api.costs() == {"a": "3", "b": "0"}
    assert deletion_cost.write_costs(api.client, pops(calls), "voicepipe", "app=pop") == {}
    assert deletion_cost.write_costs(api.client, pops({"10.0.0.1": 4}), "voicepipe", "app=pop") == {"a": 4}
    assert api.costs() == {"a": "4", "b": "0"}, "who does not answer keeps its cost"


def test_pods_that_end_are_left_alone() -> None:
    api = FakeApi(pod("ends", "10.0.0.1", deletionTimestamp="2026-11-29T18:00:00Z"), pod("went", "10.0.0.2"))
    api.gone = {"went"}
    calls = {"10.0.0.1": 3, "10.0.0.2": 1}
    assert deletion_cost.write_costs(api.client, pops(calls), "voicepipe", "app=pop") == {}


def test_an_api_server_that_refuses_is_an_error() -> None:
    refusing = httpx.Client(base_url="https://api", transport=httpx.MockTransport(lambda _: httpx.Response(403)))
    with pytest.raises(httpx.HTTPError):
        deletion_cost.write_costs(refusing, pops({}), "voicepipe", "app=pop")


@needs_kubectl
def test_it_asks_for_pops_at_their_port() -> None:
    objects = rendered("overlays/cpu")
    template = named(objects, "Deployment", "voicepipe-pop")["spec"]["template"]
    [name, value] = named(objects, "Deployment", "voicepipe-scale-in")["spec"]["template"]["spec"]["containers"][0][
        "command"
    ][-1].split("=")
    assert template["metadata"]["labels"][name] == value
    assert template["spec"]["containers"][0]["ports"][0]["containerPort"] == deletion_cost.PORT
