"""Measurements of voicepipe's parts, which look inside it: `python -m latency_probes.components`. Not in the wheel."""
