"""TURN for callers behind firewalls: short-lived credentials for a coturn that shares a secret with us.

By the "REST API for access to TURN services" (draft-uberti-behave-turn-rest), which coturn calls `use-auth-secret`.
"""

import base64
import hashlib
import hmac
from typing import Any

from voicepipe.config.pop_config import WebRtcConfig


def ice_servers(webrtc: WebRtcConfig, secret: str, now: float) -> list[dict[str, Any]]:
    """As `RTCPeerConnection` takes them; empty where none is configured. `now`: Unix seconds."""
    if not webrtc.turn_urls:
        return []
    username = f"{int(now) + webrtc.turn_ttl_s}:voicepipe"
    credential = base64.b64encode(hmac.new(secret.encode(), username.encode(), hashlib.sha1).digest()).decode()
    return [{"urls": list(webrtc.turn_urls), "username": username, "credential": credential}]
