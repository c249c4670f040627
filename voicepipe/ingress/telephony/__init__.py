"""Phone calls as WebSockets of a provider: Twilio Media Streams and Telnyx media streaming, and their webhooks."""
