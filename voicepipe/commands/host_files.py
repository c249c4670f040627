"""What each host of a fleet has in `/etc/voicepipe`, from the names of the hosts: texts in, texts out.

Where the package brings a file along it is taken from there, with the names filled in.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voicepipe.base.places import apart_ms, place_of
from voicepipe.config import shipped_files
from voicepipe.config.directory_config import DirectoryTrunk
from voicepipe.config.hosts_config import PROBE, HostConfig, HostsConfig
from voicepipe.config.probe_config import CALL_S

HOME = "/etc/voicepipe"
DIRECTORY_PORT, POP_PORT, SIP_PORT, NATS_PORT, ROUTE_PORT = 443, 8443, 5060, 4222, 6222
WEBRTC_PORTS, SIP_PORTS = range(20000, 22000), range(22000, 24000)
"""For sound; PoPs of one host share them out."""
DIRECTORY_KEY, PUBLIC_KEY, CA = "directory.pem", "directory.pub.pem", "fleet-ca.pem"
OPERATOR, METRICS = "operator", "metrics"
Tables = dict[str, Any]
"""Of a TOML file."""


def passwords(fleet: HostsConfig) -> Iterator[str]:
    """The names of the keys and passwords that the fleet needs."""
    yield from (OPERATOR, METRICS, _bus("directory"))
    yield from (_bus(pop) for host in fleet.hosts for pop in host.pops)
    yield from map(_tenant, _tenants(fleet))
    yield from map(_phone, fleet.phones)


def names_of(host: HostConfig, fleet: HostsConfig) -> list[str]:
    """The names that its certificate is for."""
    return [host.name, *((fleet.callers,) if host.directory else ())]


def files_of(host: HostConfig, fleet: HostsConfig, made: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The path below `/etc/voicepipe` and the text of each of its files but those in `tls/`. `made` has passwords, keys
    and the authority's certificate, by name."""
    yield CA, made[CA]
    yield "nftables.conf", _firewall(host, fleet)
    if host.nats:
        yield "nats.conf", _nats(host, fleet)
        yield "nats-users.conf", _nats_users(fleet, made)
    if host.directory:
        yield "directory.toml", _toml(_directory(host, fleet))
        yield from _secrets("directory", [DIRECTORY_KEY, _bus("directory"), *_shared(fleet)], made)
    if host.pops:
        yield PUBLIC_KEY, made[PUBLIC_KEY]
        yield from _secrets("pop", [*map(_bus, host.pops), *_shared(fleet)], made)
    for number, pop in enumerate(host.pops):
        yield f"pops/{pop}.toml", _toml(_pop(pop, number, host, fleet))
    if host.probe:
        yield "probe.toml", _toml(_probe(fleet))
        yield from _secrets("probe", [OPERATOR, METRICS, _tenant(PROBE)], made)
        yield "prometheus/prometheus.yml", _prometheus(fleet)
        yield "prometheus/voicepipe.rules.yml", _shipped("alerts/voicepipe.rules.yml")


def _secrets(service: str, names: Sequence[str], made: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((f"secrets/{service}/{name}", made[name]) for name in names)


def _shared(fleet: HostsConfig) -> list[str]:
    """The secrets that directories and PoPs have in common."""
    return [OPERATOR, METRICS, *map(_tenant, _tenants(fleet)), *map(_phone, fleet.phones)]


def _tenants(fleet: HostsConfig) -> list[str]:
    return [*fleet.customers, *((PROBE,) if fleet.is_probed else ())]


def _trunks(fleet: HostsConfig) -> list[DirectoryTrunk]:
    """Who calls by SIP without a password: the probe, too, whose calls are its tenant's."""
    probes = [
        DirectoryTrunk(name=PROBE, addresses=(host.address,), place=host.place) for host in fleet.hosts if host.probe
    ]
    return [*probes, *fleet.trunks]


def _tenant(name: str) -> str:
    return f"tenant-{name}"


def _phone(name: str) -> str:
    return f"phone-{name}"


def _bus(name: str) -> str:
    return f"bus-{name}"


def _credential(name: str) -> str:
    """Where a service of systemd's finds the secret (`LoadCredential=secret:FOLDER`)."""
    return f"$CREDENTIALS_DIRECTORY/secret_{name}"


def _both(host: HostConfig, fleet: HostsConfig) -> Tables:
    """Tables that a directory and a PoP have in common."""
    public = "public-" if fleet.certificates == "public" else ""
    place = place_of(host.place)
    assert place
    servers = [server for server in fleet.hosts if server.nats]
    servers.sort(key=lambda one: apart_ms(place, place_of(one.place) or place))
    tables: Tables = {
        "http": {
            "host": "0.0.0.0",
            "port": DIRECTORY_PORT,
            "cert": f"{HOME}/tls/{public}fullchain.pem",
            "key": f"{HOME}/tls/{public}privkey.pem",
            "operator_key_file": _credential(OPERATOR),
            "metrics_key_file": _credential(METRICS),
        },
        "tls": {"ca": f"{HOME}/{CA}"},
        "bus": {
            "servers": [f"tls://{server.name}:{NATS_PORT}" for server in servers],
            "user": "directory",
            "password_file": _credential(_bus("directory")),
        },
        "tenants": [{"name": name, "key_file": _credential(_tenant(name))} for name in _tenants(fleet)],
    }
    if fleet.is_probed:
        tables["tenants"][-1]["slots"] = _probe_calls(fleet) + 1  # One that has ended is heard of a moment later.
    if fleet.takes_phones:
        tables["sip"] = {
            "port": SIP_PORT,
            "host": "0.0.0.0",
            "trunks": [{"name": each.name, "addresses": list(each.addresses)} for each in _trunks(fleet)],
            "users": [{"name": name, "password_file": _credential(_phone(name))} for name in fleet.phones],
        }
        probed = [{"trunk": PROBE, "tenant": PROBE}] if fleet.is_probed else []
        tables["routes"] = [*probed, {"called": "*", "tenant": fleet.customers[0]}]
    return tables


def _directory(host: HostConfig, fleet: HostsConfig) -> Tables:
    state = "/var/lib/voicepipe-directory"
    its = {
        "id": host.name.partition(".")[0],
        "key": _credential(DIRECTORY_KEY),
        "place": list(host.place),
        "editions": f"{state}/editions",
        "known_pops": f"{state}/known-pops.json",
    }
    tables = _both(host, fleet)
    if fleet.takes_phones:
        for trunk, known in zip(tables["sip"]["trunks"], _trunks(fleet), strict=True):
            trunk["place"] = list(known.place)
    return {"directory": its, **tables}


def _pop(pop: str, number: int, host: HostConfig, fleet: HostsConfig) -> Tables:
    state = f"/var/lib/voicepipe/{pop}"
    tables = _both(host, fleet)
    tables["http"]["port"] = port = POP_PORT + number
    tables["http"]["proxies"] = ["127.0.0.1", "::1", *(each.address for each in fleet.hosts if each.directory)]
    tables["bus"] |= {"user": pop, "password_file": _credential(_bus(pop))}
    its: Tables = {"id": pop, "region": host.region} | ({"slots": host.slots} if host.slots else {})
    fleet_table = {
        "keys": [f"{HOME}/{PUBLIC_KEY}"],
        "url": f"https://{host.name}:{port}",
        "place": list(host.place),
        "zone": host.zone,
        "editions": f"{state}/editions",
    }
    if fleet.takes_phones:
        sip = SIP_PORT + int(host.directory) + number
        fleet_table["sip"] = f"{host.address}:{sip}"
        tables["sip"] |= {"port": sip, **_media(SIP_PORTS, number, host)}
    return {
        "pop": its,
        "fleet": fleet_table,
        "records": {"folder": state},
        "webrtc": _media(WEBRTC_PORTS, number, host),
        **tables,
    }


def _media(ports: range, number: int, host: HostConfig) -> Tables:
    """The share of the ports of PoP `number` of the host, an even count, since SIP takes two a call; and the address in
    front of them."""
    share = len(ports) // len(host.pops) // 2 * 2
    shared = {"first_port": ports.start + number * share, "last_port": ports.start + (number + 1) * share - 1}
    return shared | ({"public_address": host.address} if host.nat else {})


def _probe(fleet: HostsConfig) -> Tables:
    target: Tables = {
        "name": "fleet",
        "directory": f"https://{fleet.callers}",
        "straight": True,
        "by": _doors(fleet),
        "key_file": _credential(_tenant(PROBE)),
        "operator_key_file": _credential(OPERATOR),
    }
    return {
        "probe": {"calls": _probe_calls(fleet)},
        "http": {"metrics_key_file": _credential(METRICS)},
        "tls": {"ca": f"{HOME}/{CA}"},
        "targets": [target],
    }


def _doors(fleet: HostsConfig) -> list[str]:
    return ["websocket", "webrtc", *(("sip",) if fleet.takes_phones else ())]


def _probe_calls(fleet: HostsConfig) -> int:
    """Calls at a time, so that all of a round fit into its minute."""
    series = len(_doors(fleet)) * (1 + sum(len(host.pops) for host in fleet.hosts))
    return max(2, -(-series * CALL_S // 60))


def _prometheus(fleet: HostsConfig) -> str:
    """Its configuration. YAML takes JSON's texts and lists."""
    urls = [f"{host.name}:{DIRECTORY_PORT}" for host in fleet.hosts if host.directory]
    urls += [f"{host.name}:{POP_PORT + number}" for host in fleet.hosts for number in range(len(host.pops))]
    key = "    authorization: {credentials_file: metrics.key}\n"
    ca = f"{HOME}/{CA}"
    return (
        "# Written by `voicepipe configs write`. Paths are relative to this file.\n"
        "global: {scrape_interval: 10s, evaluation_interval: 10s}\n"
        "rule_files: [voicepipe.rules.yml]\n"
        "scrape_configs:\n"
        f"  - job_name: voicepipe\n    scheme: https\n    tls_config: {{ca_file: {ca}}}\n{key}"
        f"    static_configs: [{{targets: {json.dumps(urls)}}}]\n"
        f"  - job_name: voicepipe-probe\n{key}"
        '    static_configs: [{targets: ["127.0.0.1:9465"]}]\n'
    )


def _nats(host: HostConfig, fleet: HostsConfig) -> str:
    """NATS' configuration. A server names as its routes those before it: of two only one names the other."""
    servers = [server.name for server in fleet.hosts if server.nats]
    before = servers[: servers.index(host.name)]
    routes = ", ".join(f'"nats-route://{name}:{ROUTE_PORT}"' for name in before)
    text = _filled(_shipped("deploy/nats.conf"), r'server_name: "[^"]*"', f'server_name: "{host.name}"')
    text = _filled(text, r"# advertise: .*", f'advertise: "{host.name}:{ROUTE_PORT}"')
    return _filled(text, r"routes: \[\] .*", f"routes: [{routes}]")


def _nats_users(fleet: HostsConfig, made: Mapping[str, str]) -> str:
    """Who may say what on the bus, with their passwords."""
    text = _shipped("deploy/nats-users.conf")
    ours = re.findall(r'^    \{user: "\w+".*?\}\}\n', text, re.MULTILINE | re.DOTALL)
    directory, pop = (next(entry for entry in ours if f'"{user}"' in entry) for user in ("directory", "fra1"))
    entries = [directory.replace("$DIRECTORY_PASSWORD", json.dumps(made[_bus("directory")].strip()))]
    entries += [
        pop.replace("fra1", name).replace("$FRA1_PASSWORD", json.dumps(made[_bus(name)].strip()))
        for host in fleet.hosts
        for name in host.pops
    ]
    return text.replace("".join(ours), "".join(entries))


def _firewall(host: HostConfig, fleet: HostsConfig) -> str:
    """The rules with what runs on this host. nft takes no empty set, so what is not there stays as it came."""
    text = _shipped("deploy/nftables.conf")
    http = [*((DIRECTORY_PORT,) if host.directory else ()), *(POP_PORT + number for number in range(len(host.pops)))]
    sip = [SIP_PORT + number for number in range(int(host.directory) + len(host.pops))]
    callers = ["0.0.0.0/0"] if fleet.phones else [each for trunk in _trunks(fleet) for each in trunk.addresses]
    members = [each.address for each in fleet.hosts if each.directory or each.pops]
    servers = [each.address for each in fleet.hosts if each.nats]
    defines = {
        "http": http, "sip": sip, "sip_from": callers if fleet.takes_phones else ["127.0.0.1"], "nats_clients": members,
        "nats_servers": servers,
    }  # fmt: skip
    for name, values in defines.items():
        if values:
            text = _filled(text, rf"^define {name} = \{{.*?\}}", f"define {name} = {{ {', '.join(map(str, values))} }}")
    return text


def _shipped(name: str) -> str:
    return (shipped_files() / "pops" / name).read_text("utf-8")


def _filled(text: str, pattern: str, value: str) -> str:
    """`text` with `value` in place of what has the pattern."""
    filled, count = re.subn(pattern, lambda _: value, text, count=1, flags=re.MULTILINE)
    assert count == 1, pattern
    return filled


def _toml(tables: Tables) -> str:
    """A file of these tables. JSON's texts, numbers and lists are TOML's."""
    begins = "# Written by `voicepipe configs write`: change the file with the hosts' names, and write it again.\n"
    return begins + "".join(_table(f"[{name}]", table) for name, table in tables.items())


def _table(head: str, table: Any) -> str:
    """A table, or several of one name, and what is below it. What is empty is left out."""
    if isinstance(table, list):
        return "".join(_table(f"[{head}]", each) for each in table)
    below = {
        key: value for key, value in table.items() if value and isinstance(value, list) and isinstance(value[0], dict)
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items()
             if key not in below and value not in ("", [])]  # fmt: skip
    inner = [_table(f"[{head.strip('[]')}.{key}]", value) for key, value in below.items()]
    return "".join(["\n", head, "\n", *lines, *inner])
