"""WebRTC calls: `POST /v1/realtime/calls`, sound by RTP, events by the data channel `oai-events`."""
