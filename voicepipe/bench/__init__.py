"""Measurements of parts on this machine: `voicepipe bench PART`. Whole calls are what `latency_probes` measure."""
