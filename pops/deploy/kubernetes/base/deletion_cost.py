"""Write each PoP's number of calls into its pod's `controller.kubernetes.io/pod-deletion-cost`: of pods that are ready,
a ReplicaSet ends the one with the lowest cost first (KEP-2255).

`python3 deletion_cost.py LABEL=VALUE`, in a pod whose service account may list and patch pods. Every 15 s; only a cost
that has changed is written.
"""

import sys
import time
from pathlib import Path
from typing import Any

import httpx

COST = "controller.kubernetes.io/pod-deletion-cost"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ROUND = Path("/tmp/round")
EVERY_S = 15.0
PORT = 8080


def write_costs(api: httpx.Client, pops: httpx.Client, namespace: str, selector: str) -> dict[str, int]:
    """One round; the costs that were written, by pod. A PoP that does not answer keeps its cost. Raises
    httpx.HTTPError: the API server does not answer."""
    written = {}
    listed = api.get(f"/api/v1/namespaces/{namespace}/pods", params={"labelSelector": selector})
    for pod in listed.raise_for_status().json()["items"]:
        name, known = pod["metadata"]["name"], pod["metadata"].get("annotations", {}).get(COST)
        cost = None if "deletionTimestamp" in pod["metadata"] else calls(pops, pod["status"].get("podIP"))
        if cost is None or str(cost) == known:
            continue
        body = {"metadata": {"annotations": {COST: str(cost)}}}
        answer = api.patch(
            f"/api/v1/namespaces/{namespace}/pods/{name}",
            json=body,
            headers={"Content-Type": "application/merge-patch+json"},
        )
        if answer.status_code != 404:  # It has gone meanwhile.
            answer.raise_for_status()
            written[name] = cost
    return written


def calls(pops: httpx.Client, address: str | None) -> int | None:
    """The number of calls of the PoP at this address; None: it does not tell."""
    try:
        answer: Any = pops.get(f"http://{address}:{PORT}/healthz").raise_for_status().json()
        return int(answer["calls"])
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return None


def main() -> None:
    """Rounds for ever. The token is read anew in each one: Kubernetes renews it."""
    namespace = (ACCOUNT / "namespace").read_text()
    while True:
        headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
        server, authority = "https://kubernetes.default.svc", str(ACCOUNT / "ca.crt")
        try:
            with (
                httpx.Client(base_url=server, verify=authority, headers=headers, timeout=10) as api,
                httpx.Client(timeout=2, trust_env=False) as pops,
            ):
                for pod, cost in write_costs(api, pops, namespace, sys.argv[1]).items():
                    print(f"{pod}: {cost} calls", flush=True)
        except httpx.HTTPError as error:
            print(f"the API server does not do it: {error}", file=sys.stderr, flush=True)
        ROUND.touch()
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
