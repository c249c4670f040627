"""Grafana's dashboards of voicepipe. To change one, change its table below, and write the JSON beside this file again:

python -m pops.dashboards.grafana.build
"""

import json
from pathlib import Path

from pops.dashboards.grafana.model import (
    Dashboard,
    Json,
    Panel,
    Row,
    beside,
    choice,
    datasource,
    page,
    steps,
    values,
)
from pops.dashboards.grafana.queries import RANGE, SCRAPES, here, increase, latest, line, percentile, rate, share, total

LATENCY = line("voicepipe_turn_latency_seconds_bucket")
TIMED = line("voicepipe_turn_latency_seconds_count")
TURNS, LATE, MISSED = (line(f"voicepipe_turns{each}_total") for each in ("", "_late", "_missed"))
CUT_INS, BARGE_INS = line("voicepipe_cut_ins_total"), line("voicepipe_barge_ins_total")
FALSE = line("voicepipe_false_interruptions_total")
SPECULATIONS = here("voicepipe_speculations_total")
CALLS, ENDED = line("voicepipe_calls_in_progress"), line("voicepipe_calls_total")
REFUSED = line("voicepipe_refusals_total")
LOSS, LOSS_CALLS = "voicepipe_call_loss_ratio_bucket", line("voicepipe_call_loss_ratio_count")
JITTER, JITTER_CALLS = "voicepipe_call_jitter_seconds_bucket", line("voicepipe_call_jitter_seconds_count")
LITTLE_LOSS, LITTLE_JITTER = line(LOSS, 'le="0.02"'), line(JITTER, 'le="0.05"')
MOS = line("voicepipe_call_mos_bucket")
PLACED = 'voicepipe_directory_placements_total{pop=~"$pop"}'
BOUNCED = 'voicepipe_directory_placements_bounced_total{pop=~"$pop"}'
HOST_COST, CALLS_COST = here("voicepipe_host_cost_total"), here("voicepipe_calls_cost_total")

BUDGET = {"budget": f"max({here('voicepipe_budget_seconds')})"}
"""A red line."""
OF_BUDGET = (
    f"{percentile(0.95, LATENCY, 'pop, region')}"
    f" / on (pop, region) {latest(here('voicepipe_budget_seconds'), 'pop, region')}"
)
TAKES_CALLS = 'voicepipe_status{status="ok"}'
LEFT = f"({here('voicepipe_slots')} - voicepipe_slots_used) * on (pop, region, instance) {TAKES_CALLS}"
"""Places at PoPs that take calls."""
BUSY = f"avg_over_time({here('voicepipe_calls_in_progress')}[$window])"
LATELY = "Within the time that is chosen as Over."
DOTS = "A dot is a turn with a trace."
IN_TIME = "In the time that is shown."
MONEY = "In the currency of pop.price_per_hour."

TO_POP = "/d/voicepipe-pop?var-pop=${__value.text:percentencode}&${datasource:queryparam}&${__url_time_range}"
ADDRESS = "${scheme}://${address}"
TO_CALLS = "${scheme}://${__value.text}/calls"

OF_PROBE = "target, way, pop, by"
PROBED = "{{target}} {{pop}}: {{by}}, {{way}}"
"""A series of a probe."""

REGION = values("region", "Region", "voicepipe_slots")
POPS = values("pop", "PoP", 'voicepipe_slots{region=~"$region"}')
ONE_POP = values("pop", "PoP", 'voicepipe_slots{region=~"$region"}', several=False)
INGRESS = values("ingress", "Line", 'voicepipe_calls_in_progress{pop=~"$pop"}')
WINDOW = choice("window", "Over", "5m", "10m", "30m", "1h", "6h", first="10m")
SCHEME = choice("scheme", "PoPs answer by", "https", "http", first="https")
INSTANCE = values("address", "Address", 'voicepipe_slots{pop=~"$pop"}', several=False, of="instance")


def hourly_cost(by: str = "", of: str = "") -> dict[str, str]:
    """What calls cost, and places that stand empty. `of`: what stands before that in a series' name."""
    calls, idle = rate(CALLS_COST, by), f"({rate(HOST_COST, by)} - {rate(CALLS_COST, by)})"
    return {f"{of}calls": f"{calls} * 3600", f"{of}idle": f"{idle} * 3600"}


def coloured(unit: str, *colours: tuple[float, str]) -> Json:
    """A table's column."""
    return {"unit": unit, "custom.cellOptions": {"type": "color-text"}, "thresholds": steps((None, "text"), *colours)}


def probed(name: str) -> str:
    """What a probe heard, of calls to any address too."""
    return f'voicepipe_probe_{name}{{pop=~"$pop|"}}'


SILENT = {
    "custom.cellOptions": {"type": "color-text"},
    "mappings": [{"type": "value", "options": {"0": {"text": "no", "color": "text", "index": 0},
                                               "1": {"text": "SILENT", "color": "red", "index": 1}}}],
}  # fmt: skip

FLEET = Dashboard(
    uid="voicepipe-fleet",
    title="voicepipe: fleet",
    about="All PoPs: which one is late, full or lost, and what calls cost. Parts of it are told by directories.",
    variables=(datasource(), REGION, POPS, INGRESS, WINDOW),
    links=(beside(),),
    rows=(
        Row("Now", (
            Panel("PoPs that take calls", {
                "take calls": total(latest(here("voicepipe_status", 'status="ok"'))),
                "of": f"count(count by (pop) ({here('voicepipe_slots')}))",
            }, kind="stat", width=4, height=4),
            Panel("Silent PoPs", {"": total(latest(here("voicepipe_directory_pop_silent")))},
                  about="They no longer report to a directory, and have not said that they end.",
                  kind="stat", width=4, height=4, red=1),
            Panel("Calls in progress", {"": total(CALLS)}, kind="stat", width=4, height=4),
            Panel("Places left", {"": total(LEFT)}, about="At PoPs that take calls.", kind="stat", width=4, height=4),
            Panel("Late turns", {"": share(LATE, TIMED)}, "percentunit", about="Over pop.budget_ms.",
                  kind="stat", width=4, height=4, red=0.05),
            Panel("A minute of call costs", {"": f"60 * {rate(HOST_COST)} / sum ({BUSY})"}, needs="price",
                  about=f"With the places that stand empty. {MONEY}", kind="stat", width=4, height=4),
            Panel("PoPs", {
                "": f"{latest(here('voicepipe_status'), 'pop, region, status')} == 1",
                "silent": latest(here("voicepipe_directory_pop_silent"), "pop, region"),
                "report age": latest(here("voicepipe_directory_pop_report_age_seconds"), "pop, region"),
                "calls": total(CALLS, "pop, region"),
                "places left": total(LEFT, "pop, region"),
                "p50": percentile(0.5, LATENCY, "pop, region"),
                "p95": percentile(0.95, LATENCY, "pop, region"),
                "p95 of budget": OF_BUDGET,
                "late": share(LATE, TIMED, "pop, region"),
                "cut-ins": share(CUT_INS, TURNS, "pop, region"),
                "missed": share(MISSED, TURNS, "pop, region"),
            }, about="A click on a PoP's name opens its dashboard.", kind="table", width=24, height=9,
                link=("pop", TO_POP), columns={
                "silent": SILENT,
                "report age": coloured("s", (5, "red")),
                "p50": {"unit": "s"},
                "p95": {"unit": "s"},
                "p95 of budget": coloured("percentunit", (0.8, "orange"), (1, "red")),
                "late": coloured("percentunit", (0.05, "orange"), (0.3, "red")),
                "cut-ins": coloured("percentunit", (0.1, "red")),
                "missed": coloured("percentunit", (0.05, "red")),
            }),
            Panel("Alerts", {"": latest('ALERTS{severity=~"page|ticket",pop=~"$pop|"}',
                                        "alertname, alertstate, severity, pop, stage, engine, reason, instance")},
                  about="Of pops/alerts/voicepipe.rules.yml, once Prometheus has loaded them.",
                  kind="table", width=24, height=6),
        )),
        Row("How long callers wait", (
            Panel("Turn latency, p50", {"{{pop}}": percentile(0.5, LATENCY, "pop"), **BUDGET}, "s", width=12),
            Panel("Turn latency, p95", {"{{pop}}": percentile(0.95, LATENCY, "pop"), **BUDGET}, "s", width=12,
                  exemplars=True),
            Panel("Late turns by PoP", {"{{pop}}": share(LATE, TIMED, "pop")}, "percentunit"),
            Panel("Cut-ins", {"{{pop}}": share(CUT_INS, TURNS, "pop")}, "percentunit",
                  about="Turns in which the agent spoke before the caller had finished."),
            Panel("Turns without an answer", {"{{pop}}": share(MISSED, TURNS, "pop")}, "percentunit"),
        )),
        Row("Probes", (
            Panel("Heard gap of probe calls", {PROBED: latest(probed("last_heard_gap_seconds"), OF_PROBE)}, "s",
                  about="What the last call heard.", needs="probe"),
            Panel("Probe calls that are answered", {PROBED: latest(probed("up"), OF_PROBE)},
                  about="1: the last call was answered, and rightly; 0: it was not. The alerts name fault and stage.",
                  needs="probe"),
            Panel("Probe calls that are up after", {PROBED: latest(probed("setup_seconds"), OF_PROBE)}, "s",
                  needs="probe"),
        )),
        Row("Room", (
            Panel("Calls in progress by PoP", {"{{pop}}": total(CALLS, "pop")}, stacked=True),
            Panel("Places left by PoP", {"{{pop}}": total(LEFT, "pop")}, about="At PoPs that take calls."),
            Panel("Predicted latency of one more call",
                  {"{{pop}}": latest(here("voicepipe_predicted_latency_seconds")), **BUDGET}, "s",
                  about="Its p95. Calls that would be over the budget are refused."),
            Panel("Refused calls by reason", {"{{reason}}": f"{increase(REFUSED, 'reason')} > 0"}, about=LATELY),
            Panel("Refused calls by PoP", {"{{pop}}": f"{increase(REFUSED, 'pop')} > 0"}, about=LATELY),
            Panel("Places taken at the busiest PoP",
                  {"taken": f"max({here('voicepipe_slots_used')} / voicepipe_slots)"}, "percentunit", red=0.9),
        )),
        Row("Directories", (
            Panel("Placements by PoP", {"{{pop}}": rate(PLACED, "pop")}, "cps"),
            Panel("Placements by reason", {"{{reason}}": rate(PLACED, "reason")}, "cps",
                  about="nearest: the nearest PoP has room. shares: it fills, and this one is nearly as near. "
                        "limited: a canary, or a PoP whose turns failed, gets its share. least_late: none is in time."),
            Panel("Requests without a PoP",
                  {"{{reason}}": rate("voicepipe_directory_placements_failed_total", "reason")}, "cps"),
            Panel("Bounced calls", {"{{pop}}: {{reason}}": rate(BOUNCED, "pop, reason")}, "cps",
                  about="They were sent to a PoP that did not take them."),
            Panel("Age of reports", {"{{pop}}": latest(here("voicepipe_directory_pop_report_age_seconds"))}, "s",
                  about="PoPs report once a second. After 5 s without a report no calls are sent there.", red=5),
            Panel("Directories", {
                "{{directory}}: relayed calls": "sum by (directory) (voicepipe_directory_calls_relayed)",
                "{{directory}}: cut off": "max by (directory) (voicepipe_directory_cut_off)",
            }, about="Calls that go through each one; 1: it hears no PoPs."),
        )),
        Row("Networks", (
            Panel("Calls that lose over 2 % of their packets",
                  {"{{pop}}": f"1 - {share(LITTLE_LOSS, LOSS_CALLS, 'pop')}"}, "percentunit", width=12),
            Panel("How the worst of 20 callers sounds", {"{{pop}}": percentile(0.05, MOS, "pop")},
                  about="By their networks (ITU-T G.107): 1 to 4.4.", width=12),
        )),
        Row("Cost", (
            Panel("Hosts, an hour", hourly_cost("region", "{{region}}: "),
                  about=f"What calls paid for their places; empty places. {MONEY}", needs="price", stacked=True),
            Panel("A minute of call", {"{{pop}}": f"60 * {rate(HOST_COST, 'pop')} / sum by (pop) ({BUSY})"},
                  about=f"With the places that stand empty. {MONEY}", needs="price"),
            Panel("Empty places", {"{{pop}}": f"1 - {share(CALLS_COST, HOST_COST, 'pop')}"}, "percentunit",
                  about="Their share of what hosts cost.", needs="price"),
        )),
    ),
)  # fmt: skip

POP = Dashboard(
    uid="voicepipe-pop",
    title="voicepipe: PoP",
    about="One PoP: how long its callers wait and for which stage; its engines, its host, its cost.",
    variables=(datasource(), REGION, ONE_POP, INGRESS, WINDOW, SCHEME, INSTANCE),
    links=(
        beside(),
        page("The PoP's own dashboard", f"{ADDRESS}/dashboard", "Its last turns, with their words"),
        page("Its calls", f"{ADDRESS}/calls", "The records that it keeps"),
    ),
    rows=(
        Row("How long callers wait", (
            Panel("p95 of the budget", {"": OF_BUDGET}, "percentunit", about="Of the PoP's own, pop.budget_ms.",
                  kind="stat", width=4, red=1),
            Panel("Turn latency", {
                **{f"p{100 * part:g}": percentile(part, LATENCY) for part in (0.5, 0.95, 0.99)}, **BUDGET,
            }, "s", width=10, exemplars=True),
            Panel("Turns by latency", {"{{le}}": increase(LATENCY, "le", SCRAPES)}, "s", about=DOTS,
                  kind="heatmap", width=10, exemplars=True, per_bucket=True),
            Panel("What turns wait for", {
                "{{stage}}": share(line("voicepipe_turn_wait_seconds_sum"), line("voicepipe_turn_wait_seconds_count"),
                                   "stage"),
                **BUDGET,
            }, "s", about="The mean of each stage's part. Together they are the mean latency: work that is done in the "
                          "caller's silence is in no part.", width=12, stacked=True),
            Panel("How long stages take, p95",
                  {"{{stage}}": percentile(0.95, line("voicepipe_stage_seconds_bucket"), "stage")}, "s",
                  about="Waited for or not.", width=12),
        )),
        Row("Turns", (
            Panel("Turns", {"{{ingress}}": rate(TURNS, "ingress")}, "cps"),
            Panel("Late, missed, cut in", {
                "late": share(LATE, TIMED), "missed": share(MISSED, TURNS), "cut-ins": share(CUT_INS, TURNS),
            }, "percentunit"),
            Panel("Interruptions", {
                "barge-ins": share(BARGE_INS, TURNS),
                "false: {{effect}}": f"{rate(FALSE, 'effect')} / on () group_left {rate(TURNS)}",
            }, "percentunit", about="A turn. False: the reply became quieter or stopped for a sound, and went on."),
            Panel("Replies that were ready",
                  {"ready": share(here("voicepipe_speculations_total", 'result="hit"'), SPECULATIONS)}, "percentunit",
                  about="Turns whose reply was prepared before they were confirmed."),
            Panel("Engine time lost a turn",
                  {"lost": share(here("voicepipe_speculation_discarded_seconds_total"), SPECULATIONS)}, "s",
                  about="Replies that were prepared and dropped."),
            Panel("Dropped replies a turn",
                  {"dropped": share(here("voicepipe_speculations_discarded_total"), SPECULATIONS)}),
        )),
        Row("Calls", (
            Panel("Calls in progress",
                  {"{{ingress}}": total(CALLS, "ingress"), "places": latest(here("voicepipe_slots"))}),
            Panel("Calls by end", {"{{reason}}": f"{increase(ENDED, 'reason')} > 0"}, about=LATELY),
            Panel("Refused calls", {"{{reason}}": f"{increase(REFUSED, 'reason')} > 0"}, about=LATELY),
            Panel("Placements by directories", {
                "{{reason}}": rate(PLACED, "reason"), "bounced: {{reason}}": rate(BOUNCED, "reason"),
            }, "cps"),
            Panel("Predicted latency of one more call",
                  {"predicted": latest(here("voicepipe_predicted_latency_seconds")), **BUDGET}, "s"),
            Panel("Latency to what was predicted", {
                f"p{100 * part:g}": percentile(part, here("voicepipe_prediction_ratio_bucket")) for part in (0.5, 0.95)
            }, about="Of turns in a call's first minute, as far as engines made it. p95 should be at most 1.", red=1),
        )),
        Row("Engines and queues", (
            Panel("Tokens a second of a reply", {"a reply": share(here("voicepipe_llm_token_interval_seconds_count"),
                                                                 here("voicepipe_llm_token_interval_seconds_sum"))},
                  about="Of its first phrase, which alone is read at the model's own pace."),
            Panel("Tokens a second of all replies", {"all": rate(here("voicepipe_llm_tokens_total"))}),
            Panel("Seconds that the voice takes for a second of sound", {
                f"p{100 * part:g}": percentile(part, here("voicepipe_tts_realtime_factor_bucket"))
                for part in (0.5, 0.95)
            }, about="Over 1 callers hear gaps.", red=1),
            Panel("Jobs that wait", {"{{queue}}": latest(here("voicepipe_queue_waiting"), "queue")}),
            Panel("How long jobs wait", {"{{queue}}": share(here("voicepipe_queue_wait_seconds_sum"),
                                                           here("voicepipe_queue_wait_seconds_count"), "queue")}, "s",
                  about="Mean."),
            Panel("How full queues are", {
                "{{queue}}": latest(
                    f"({here('voicepipe_queue_waiting')} + voicepipe_queue_running) / voicepipe_queue_limit", "queue"),
            }, "percentunit", red=0.9),
            Panel("Jobs without room", {"{{queue}}": rate(here("voicepipe_queue_refused_total"), "queue")}, "cps"),
            Panel("Engines that do not work", {"{{engine}}": latest(here("voicepipe_engine_down_seconds"), "engine")},
                  "s", red=5),
            Panel("Restarts of engines", {"{{engine}}": increase(here("voicepipe_engine_restarts_total"), "engine")},
                  about=LATELY),
        )),
        Row("Host", (
            Panel("Event loop lag, p99", {"lag": latest(here("voicepipe_event_loop_lag_seconds"))}, "s", red=0.02),
            Panel("Processor", {"{{instance}}": rate(here("process_cpu_seconds_total"), "instance", SCRAPES)},
                  "percentunit", about="Of one core."),
            Panel("Memory", {"{{instance}}": latest(here("process_resident_memory_bytes"), "instance")}, "bytes"),
            Panel("File descriptors", {"{{instance}}": latest(here("process_open_fds"), "instance")}),
            Panel("Records that wait", {
                "to be sent": latest(here("voicepipe_deliveries_waiting")),
                "cannot be written": latest(here("voicepipe_records_failing")),
            }, about="Those that receivers are still to be sent; 1: records cannot be written.", needs="records"),
            Panel("Oldest record that waits", {"oldest": latest(here("voicepipe_deliveries_oldest_seconds"))}, "s",
                  needs="records", red=600),
            Panel("Failed deliveries", {"failed": rate(here("voicepipe_deliveries_failed_total"))}, "cps",
                  needs="records"),
            Panel("Dropped spans of traces", {"dropped": rate(here("voicepipe_trace_spans_dropped_total"))}, "cps"),
            Panel("Cost, an hour", hourly_cost(), about=MONEY, needs="price",
                  stacked=True),
        )),
        Row("vLLM", (
            Panel("KV cache", {"{{engine}}": latest(here("vllm:kv_cache_usage_perc"), "engine")}, "percentunit",
                  needs="vllm", red=0.9),
            Panel("Requests", {
                "{{engine}}: running": latest(here("vllm:num_requests_running"), "engine"),
                "{{engine}}: waiting": latest(here("vllm:num_requests_waiting"), "engine"),
            }, needs="vllm"),
            Panel("Prompts found in the cache", {"{{engine}}": share(here("vllm:prefix_cache_hits_total"),
                                                                    here("vllm:prefix_cache_queries_total"), "engine")},
                  "percentunit", about="Of their tokens.", needs="vllm"),
            Panel("Preemptions", {"{{engine}}": rate(here("vllm:num_preemptions_total"), "engine")}, "cps",
                  about="The KV cache was full, and a reply was begun anew.", needs="vllm"),
            Panel("Tokens a second", {
                "{{engine}}: read": rate(here("vllm:prompt_tokens_total"), "engine"),
                "{{engine}}: written": rate(here("vllm:generation_tokens_total"), "engine"),
            }, needs="vllm"),
            Panel("To the first token, p95",
                  {"{{engine}}": percentile(0.95, here("vllm:time_to_first_token_seconds_bucket"), "engine")}, "s",
                  needs="vllm"),
        )),
        Row("GPUs", (
            Panel("Use", {"{{gpu}}": latest(here("voicepipe_gpu_utilization_ratio"), "gpu")}, "percentunit",
                  needs="gpu"),
            Panel("Memory of GPUs", {
                "{{gpu}}": latest(
                    f"{here('voicepipe_gpu_memory_used_bytes')} / voicepipe_gpu_memory_size_bytes", "gpu"),
            }, "percentunit", about="By all processes.", needs="gpu", red=0.97),
            Panel("Power", {
                "{{gpu}}": latest(here("voicepipe_gpu_power_watts"), "gpu"),
                "{{gpu}}: limit": latest(here("voicepipe_gpu_power_limit_watts"), "gpu"),
            }, "watt", needs="gpu"),
            Panel("Temperature", {"{{gpu}}": latest(here("voicepipe_gpu_temperature_celsius"), "gpu")}, "celsius",
                  needs="gpu"),
            Panel("Slowed down", {"{{gpu}}: {{reason}}": latest(here("voicepipe_gpu_throttled"), "gpu, reason")},
                  about="1: its clock is kept down. power_cap is usual under load.", needs="gpu"),
            Panel("Memory errors", {"{{gpu}}: {{kind}}": increase(here("voicepipe_gpu_ecc_errors_total"), "gpu, kind")},
                  about=LATELY, needs="gpu"),
        )),
    ),
)  # fmt: skip

HOW_TO_FIND = """\
Metrics do not tell single calls. Two ways lead to one:

- **By its trace.** In *Turns by latency* a dot is a turn with a trace. The trace has the call's id
  (`voicepipe.call.id`) and all stages.
- **By its time.** Choose the line and the minutes in which something went wrong. Then click on a PoP's address here,
  and look for those minutes in its records: they have the words, each turn's figures, the tools, and the end.
"""
EACH = "{{pop}}, {{ingress}}"

CALL = Dashboard(
    uid="voicepipe-call",
    title="voicepipe: calls",
    about="When and where calls went badly, and how to open them.",
    variables=(datasource(), REGION, POPS, INGRESS, WINDOW, SCHEME),
    links=(beside(),),
    rows=(
        Row("Find a call", (
            Panel("How", {}, kind="text", width=14, text=HOW_TO_FIND),
            Panel("Calls", {"calls": increase(ENDED, "pop, region, instance", RANGE)},
                  about="A click on an address opens the records that the PoP keeps.", kind="table", width=10,
                  link=("instance", TO_CALLS), columns={"calls": {"decimals": 0}}),
        )),
        Row("Turns", (
            Panel("Turns by latency", {"{{le}}": increase(LATENCY, "le", SCRAPES)}, "s", about=DOTS,
                  kind="heatmap", width=12, exemplars=True, per_bucket=True),
            Panel("Turn latency, p95", {EACH: percentile(0.95, LATENCY, "pop, ingress"), **BUDGET}, "s", width=12,
                  exemplars=True),
            Panel("Late turns", {EACH: increase(LATE, "pop, ingress")}, about=LATELY),
            Panel("Turns without an answer", {EACH: increase(MISSED, "pop, ingress")}, about=LATELY),
            Panel("Cut-ins", {EACH: increase(CUT_INS, "pop, ingress")}, about=LATELY),
        )),
        Row("How calls end", (
            Panel("Calls by end", {"{{reason}}": f"{increase(ENDED, 'reason')} > 0"}, about=LATELY),
            Panel("Calls by line", {"{{ingress}}": f"{increase(ENDED, 'ingress')} > 0"}, about=LATELY),
            Panel("How long calls last",
                  {"{{ingress}}": f"sum by (ingress) (avg_over_time({CALLS}[$window])) / {rate(ENDED, 'ingress')}"},
                  "s", about="Mean: how many are in progress, by how many end a second."),
        )),
        Row("Networks", (
            Panel("Calls by loss", {"{{le}}": increase(line(LOSS), "le", RANGE)},
                  about=f"Up to this share of their packets. {IN_TIME}", kind="bargauge", per_bucket=True),
            Panel("Calls by jitter", {"{{le}}": increase(line(JITTER), "le", RANGE)},
                  about=f"Up to so many seconds. {IN_TIME}", kind="bargauge", per_bucket=True),
            Panel("Calls by how callers sound", {"{{le}}": increase(MOS, "le", RANGE)},
                  about=f"By their networks (ITU-T G.107), 1 to 4.4. {IN_TIME}", kind="bargauge", per_bucket=True),
            Panel("Over 2 % of the packets lost",
                  {EACH: f"1 - {share(LITTLE_LOSS, LOSS_CALLS, 'pop, ingress')}"}, "percentunit",
                  about="Share of the calls."),
            Panel("Over 50 ms of jitter",
                  {EACH: f"1 - {share(LITTLE_JITTER, JITTER_CALLS, 'pop, ingress')}"}, "percentunit",
                  about="Share of the calls."),
            Panel("How the worst of 20 callers sounds", {EACH: percentile(0.05, MOS, "pop, ingress")}),
        )),
    ),
)  # fmt: skip

DASHBOARDS = {"fleet": FLEET, "pop": POP, "call": CALL}
"""By the names of their files."""


def file(name: str) -> Path:
    return Path(__file__).parent / f"{name}.json"


def written(name: str) -> str:
    """What is in that file."""
    return json.dumps(DASHBOARDS[name].json(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    for name in DASHBOARDS:
        file(name).write_text(written(name))


if __name__ == "__main__":
    main()
