"""The deployment for Kubernetes: rendered, valid, without root; its numbers agree with one another and with PoPs'."""

import copy
import math
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.deploy.crds import SCHEMAS
from tests.deploy.kubelet import Pod
from tests.deploy.page import ONE, TWO, needs_openssl, secrets
from tests.deploy.rendered import OVERLAYS, PARTS, Object, containers, named, needs_kubectl, pods, rendered
from tests.support.paths import ROOT
from voicepipe import config
from voicepipe.config.agent_store import AgentStore

pytestmark = needs_kubectl
VERSIONS = "1.30", "1.37"
"""The oldest Kubernetes that is meant, and the newest."""
TOKENS = {"voicepipe-scale-in"}
"""What may ask the API server."""
KEYS = {"METRICS_KEY": "metrics", "OPERATOR_KEY": "operator", "HARBOUR_HOUSE_KEY": "tenant", "BUS_PASSWORD": "bus"}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_valid(part: str, version: str) -> None:
    for each in rendered(part):
        check(each, version)


def check(one: Object, version: str) -> None:
    """Raises ValidationError. Kubernetes' own kinds are checked by its schemas, which allow no unknown keys here, those
    of operators by tests/deploy/crds.py."""
    if schema := SCHEMAS.get(one["kind"]):
        jsonschema.validate(one, schema)
    else:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_mistake_in_any_object_is_noticed() -> None:
    for each in (
        *rendered("overlays/two-regions/us"),
        *rendered("autoscaling/keda"),
        *rendered("autoscaling/prometheus"),
    ):
        wrong = copy.deepcopy(each)
        wrong["speck"] = {}
        with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
            check(wrong, VERSIONS[0])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_runs_as_root(overlay: str) -> None:
    objects = rendered(f"overlays/{overlay}")
    for name, pod in pods(objects):
        whole = pod["securityContext"]
        assert whole["runAsNonRoot"] and whole["runAsUser"] == whole["runAsGroup"] == 10001, name
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not pod.keys() & {"hostPID", "hostIPC"} and not any("hostPath" in volume for volume in pod["volumes"]), (
            name
        )
        assert pod.get("automountServiceAccountToken", True) == (name in TOKENS), name
        for each in containers(pod):
            own = each["securityContext"]
            assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"], each["name"]
            assert own["capabilities"] == {"drop": ["ALL"]} and not own.keys() & {"privileged", "runAsUser"}, each[
                "name"
            ]
    rights = [rule for each in objects if each["kind"] == "Role" for rule in each["rules"]]
    assert rights == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]}]
    assert not any(each["kind"] in ("ClusterRole", "ClusterRoleBinding", "Secret") for each in objects)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_container_has_limits_and_what_runs_has_probes(overlay: str) -> None:
    for _, pod in pods(rendered(f"overlays/{overlay}")):
        for each in containers(pod):
            assert each["resources"]["limits"].keys() >= {"cpu", "memory"}, each["name"]
            assert each["resources"]["requests"].keys() >= {"cpu", "memory"}, each["name"]
        for each in pod["containers"]:
            assert each.keys() >= {"readinessProbe", "livenessProbe"}, each["name"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_drain_ends_before_the_grace_period_does(overlay: str, tmp_path: Path) -> None:
    objects = rendered(f"overlays/{overlay}")
    deployment = named(objects, "Deployment", "voicepipe-pop")["spec"]
    assert "replicas" not in deployment, "each apply would undo the autoscaler's"
    spec = deployment["template"]["spec"]
    _, pause_s = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    drain_s = config_of(objects, tmp_path).pop.drain_ms / 1000
    assert int(pause_s) + drain_s + 20 <= spec["terminationGracePeriodSeconds"]


def config_of(objects: tuple[Object, ...], folder: Path) -> config.Config:
    """The configuration with which a PoP starts."""
    fleet = {"directory.pub.pem": "", "ca.crt": ""}
    secrets = {"voicepipe-pop": KEYS, "voicepipe-fleet": fleet}
    pod = Pod("voicepipe-pop-1", "127.0.0.1", objects, "voicepipe-pop", secrets, folder)
    subprocess.run(pod.command_of(pod.spec["initContainers"], "manifest")[0], check=True)
    command, _ = pod.command_of(pod.spec["containers"], "pop")
    words = command[-1].split() if command[0] == "sh" else command
    files = [Path(words[words.index(option) + 1]) for option in ("--config", "--pop")]
    return config.load(*files)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_configuration_is_one_and_agrees_with_the_objects(overlay: str, tmp_path: Path) -> None:
    objects = rendered(f"overlays/{overlay}")
    of_pop = config_of(objects, tmp_path)
    assert (of_pop.pop.id, of_pop.http.host, of_pop.pop.default_agent) == ("voicepipe-pop-1", "127.0.0.1", "reception")
    assert [agent.name for agent in AgentStore(Path(of_pop.pop.agents))] == ["reception"]
    ranges = (of_pop.webrtc.first_port, of_pop.webrtc.last_port + 1, of_pop.sip.last_port)
    policy = named(objects, "NetworkPolicy", "voicepipe-pop")
    [media] = [port for rule in policy["spec"]["ingress"] for port in rule["ports"] if "endPort" in port]
    assert ranges == (media["port"], of_pop.sip.first_port, media["endPort"])
    assert of_pop.webrtc.last_port - of_pop.webrtc.first_port + 1 >= of_pop.pop.slots
    assert of_pop.sip.last_port - of_pop.sip.first_port + 1 >= 2 * of_pop.pop.slots
    pop = named(objects, "Deployment", "voicepipe-pop")["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in pop["ports"]}
    assert ports == {"http": of_pop.http.port, "sip": of_pop.sip.port}
    [metric] = named(objects, "HorizontalPodAutoscaler", "voicepipe-pop")["spec"]["metrics"]
    assert int(metric["external"]["target"]["averageValue"]) == of_pop.pop.slots


def test_keda_counts_as_the_other_autoscaler_does() -> None:
    cpu = rendered("overlays/cpu")
    [metric] = named(cpu, "HorizontalPodAutoscaler", "voicepipe-pop")["spec"]["metrics"]
    keda = named(rendered("autoscaling/keda"), "ScaledObject", "voicepipe-pop")["spec"]
    trigger = keda["triggers"][0]["metadata"]
    assert trigger["threshold"] == metric["external"]["target"]["averageValue"]
    [rule] = named(rendered("autoscaling/prometheus"), "PrometheusRule", "voicepipe-autoscaling")["spec"]["groups"][0][
        "rules"
    ]
    assert trigger["query"] == f'{rule["record"]}{{namespace="{cpu[0]["metadata"]["namespace"]}"}}'
    hpa = named(cpu, "HorizontalPodAutoscaler", "voicepipe-pop")["spec"]
    assert keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == hpa["behavior"]
    assert (keda["minReplicaCount"], keda["maxReplicaCount"]) == (hpa["minReplicas"], hpa["maxReplicas"])


def test_a_pop_on_a_gpu_is_configured_as_configs_gpu_toml_says() -> None:
    ours = tomllib.loads(named(rendered("overlays/gpu"), "ConfigMap", "voicepipe-config")["data"]["config.toml"])
    theirs = tomllib.loads((ROOT / "configs" / "gpu.toml").read_text())
    slots = tomllib.loads(named(rendered("overlays/gpu"), "ConfigMap", "voicepipe-config")["data"]["pop.toml"])["pop"][
        "slots"
    ]
    assert theirs.pop("pop") == {"slots": slots} and ours.pop("pop")["agents"] == "/etc/voicepipe/agents"
    assert ours.pop("log") == {"format": "json"}
    for table in (ours, theirs):
        table["kokoro"] = {key: value.rpartition("/")[2] for key, value in table["kokoro"].items()}
    assert ours == theirs


def test_a_pop_has_a_whole_gpu_also_with_mps() -> None:
    for overlay in ("gpu", "mps"):
        pop = named(rendered(f"overlays/{overlay}"), "Deployment", "voicepipe-pop")["spec"]["template"]["spec"][
            "containers"
        ][0]
        assert pop["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" not in {variable["name"] for variable in pop["env"]}


# --- how many PoPs


def expression() -> tuple[str, int]:
    """What is recorded for autoscalers, and the reserve in it."""
    [rule] = named(rendered("autoscaling/prometheus"), "PrometheusRule", "voicepipe-autoscaling")["spec"]["groups"][0][
        "rules"
    ]
    found = re.search(r"\+ (\d+)\s*$", rule["expr"])
    assert found
    return rule["expr"], int(found[1])


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (apt install prometheus)")
def test_calls_and_reserve_are_summed_by_namespace_without_those_of_draining_pops(tmp_path: Path) -> None:
    series: list[dict[str, Any]] = []
    pops = [("eu", "a", 5, 0), ("eu", "b", 0, 0), ("eu", "c", 7, 1), ("us", "a", 3, 0)]
    for namespace, pop, calls, draining in pops:
        labels = f'namespace="{namespace}",pop="{pop}",pod="{pop}"'
        series.append({"series": f"voicepipe_slots_used{{{labels}}}", "values": f"{calls}x4"})
        for status, value in (("ok", 1 - draining), ("draining", draining), ("full", 0)):
            series.append({"series": f'voicepipe_status{{{labels},status="{status}"}}', "values": f"{value}x4"})
    asked, reserve = expression()
    wanted = [{"labels": f'{{namespace="{name}"}}', "value": calls + reserve} for name, calls in (("eu", 5), ("us", 3))]
    test = {"tests": [{"interval": "15s", "input_series": series,
                       "promql_expr_test": [{"expr": asked, "eval_time": "1m", "exp_samples": wanted}]}]}  # fmt: skip
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    said = subprocess.run(("promtool", "test", "rules", str(tmp_path / "test.yml")), capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_there_is_room_for_all_calls_though_autoscalers_tolerate_a_tenth(overlay: str) -> None:
    """As its page has it ("Algorithm details"): of an external metric with an average value, replicas = ceil(metric /
    target), unless metric / (target x replicas) is within a tenth of 1."""
    autoscaler = named(rendered(f"overlays/{overlay}"), "HorizontalPodAutoscaler", "voicepipe-pop")["spec"]
    slots, most = int(autoscaler["metrics"][0]["external"]["target"]["averageValue"]), autoscaler["maxReplicas"]
    _, reserve = expression()

    def replicas(calls: int, now: int) -> int:
        within = abs((calls + reserve) / (slots * now) - 1) <= 0.1
        return now if within else math.ceil((calls + reserve) / slots)

    for calls in range(most * slots - reserve + 1):
        for now in range(1, most + 1):
            wanted = replicas(calls, now)
            assert wanted * slots >= calls, "no call is without a place"
            if wanted != now:
                assert wanted == math.ceil((calls + reserve) / slots) == replicas(calls, wanted), "and it stays there"


def test_ports_of_one_node_are_named_so_that_the_scheduler_puts_one_pop_on_it() -> None:
    for _, pod in pods(rendered("overlays/cpu")):
        if pod.get("hostNetwork"):
            ports = [port for each in pod["containers"] for port in each["ports"]]
            assert ports and all(port["hostPort"] == port["containerPort"] for port in ports)


def texts(objects: tuple[Object, ...]) -> Iterator[str]:
    """The files in ConfigMaps."""
    for each in objects:
        if each["kind"] == "ConfigMap":
            yield from each["data"].values()


def test_no_secret_is_in_a_file() -> None:
    for part in PARTS:
        for text in texts(rendered(part)):
            assert not re.search(r'password(_file)?"?\s*[:=]\s*"', text) and "PRIVATE KEY" not in text


# --- the page's commands


@needs_openssl
@pytest.mark.parametrize(
    ("section", "overlay"),
    [(ONE, "cpu"), (TWO, "two-regions/eu"), (TWO, "two-regions/us")],
)
def test_the_pages_commands_make_the_secrets_that_pods_need(section: str, overlay: str, tmp_path: Path) -> None:
    made, objects = secrets(section, tmp_path), rendered(f"overlays/{overlay}")
    asked: dict[str, set[str]] = {}
    for name, pod in pods(objects):
        for each in pod["volumes"]:
            if source := each.get("secret"):
                asked.setdefault(source["secretName"], set())
        for each in pod["containers"]:
            for secret in (source["secretRef"]["name"] for source in each.get("envFrom", ())):
                asked[secret] = set(re.findall(r'(?:_env = "|: \$)(\w+)', files_of(objects, name)))
    assert made.keys() == asked.keys()
    for name, keys in asked.items():
        assert keys <= made[name].keys() and all(made[name].values()), name
    mounted = {path for text in texts(objects) for path in re.findall(r'"/etc/(?:voicepipe|nats-tls)/(\S+?)"', text)}
    files = {Path(path).name for path in mounted if Path(path).suffix}
    assert files <= set().union(*made.values())


def files_of(objects: tuple[Object, ...], deployment: str) -> str:
    """What the pods of a Deployment read."""
    pod = next(pod for name, pod in pods(objects) if name == deployment)
    maps = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
    return "\n".join(text for name in maps for text in named(objects, "ConfigMap", name)["data"].values())
