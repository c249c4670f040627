"""The media engine: RTP and RTCP, one clock for all calls, and WebRTC's transport. Knows no call and no ingress."""
