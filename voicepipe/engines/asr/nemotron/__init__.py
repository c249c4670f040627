"""Nemotron Speech Streaming. torch and transformers are imported when an engine is started, and not before."""
