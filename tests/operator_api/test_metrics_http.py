"""Who may scrape, and what is said to the others."""

from tests.ingress.fake_pop import METRICS_KEY, OPERATOR_KEY, FakePop
from tests.operator_api.test_dashboard_http import answered
from tests.pop.test_pop_http import bearer, keyed, requests


async def test_this_machine_may_scrape_and_a_proxys_clients_and_rebound_pages_may_not() -> None:
    pop = FakePop()
    answered(pop, "local")
    async with requests(pop) as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/plain; version=")
        assert answer.headers["Cache-Control"] == "no-store"
        assert 'voicepipe_turn_latency_seconds_count{ingress="websocket",' in answer.text
        for elsewhere in ({"Host": "evil.example"}, {"X-Forwarded-For": "203.0.113.9"}):
            refused = await client.get("/metrics", headers=elsewhere)
            assert refused.status_code == 401 and "http.metrics_key_env" in refused.json()["error"]["message"]


async def test_a_key_lets_other_machines_scrape() -> None:
    async with requests(keyed()) as client:
        for key in (METRICS_KEY, OPERATOR_KEY):
            away = {"Host": "pop.example.com", **bearer(key)}
            assert (await client.get("/metrics", headers=away)).status_code == 200
        for wrong in (bearer("sk-acme"), bearer("sk-wrong"), {}):  # a tenant sees its own calls, not the PoP
            assert (await client.get("/metrics", headers=wrong)).status_code == 401
