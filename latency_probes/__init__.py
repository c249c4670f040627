"""Probes: they place real calls and judge a voice server only by what they sent and received.

Floor rule: imports voicepipe.audio and voicepipe.base.errors, nothing else of the server, and runs without an engine.
"""
