"""What the agent can do: a function, which runs in voicepipe, and the webhook's server, which runs by itself."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer


def opening_hours(day: str) -> str:
    """A text, or anything that JSON has, for the language model. What is raised is logged, and told as a failure."""
    return f"On {day} we are closed." if "sunday" in day.lower() else f"On {day} we are open from nine to five."


class Messages(BaseHTTPRequestHandler):
    """`python tools.py`: prints each message that a caller leaves."""

    done: set[str] = set()
    """Keys of requests that were carried out: a retry has the same key, and must not do the work twice."""

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key", "")
        if key not in self.done:
            self.done.add(key)
            print(f"{sent['arguments']['who']} says: {sent['arguments']['message']}", flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"The message has been written down.")


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", 9000), Messages).serve_forever()
