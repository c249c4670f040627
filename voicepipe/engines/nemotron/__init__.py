"""Nemotron Speech Streaming. torch and transformers are imported when an engine is started, and not before."""

from voicepipe.engines.nemotron.nemotron import NemotronAsr

__all__ = ["NemotronAsr"]
