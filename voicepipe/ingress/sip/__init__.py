"""Phone calls by SIP (RFC 3261) over UDP, sound by RTP: a user agent server for desk phones, softphones and trunks."""
