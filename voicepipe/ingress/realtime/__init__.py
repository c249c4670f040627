"""The OpenAI Realtime convention (GA): its events, its session, its WebSocket.

    client JSON -> events -> control -> the call
    the call -> translate -> events -> server JSON
"""
