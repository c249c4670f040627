"""The OpenAI Realtime convention (GA): its events, its session, its WebSocket.

Client JSON -> `client_events` -> `client_control` -> the call -> `translate` -> `server_events` -> JSON to the client.
"""
