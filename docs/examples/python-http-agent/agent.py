"""An agent of `backend: "http"`: it counts the words of each message, and says them as a stream. Standard library only."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(message, history):
    """The pieces of the reply. Put your agent here."""
    yield f"That was message {len(history) // 2 + 1} of ours. "
    yield f"It has {len(message.split())} words."


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        turn = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if turn["kind"] != "turn":
            self.send_response(422)  # It writes no summaries: the conversation is kept as it is.
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in answer(turn["message"]["text"], turn["history"]):
            self.event("delta", {"text": piece})
        self.event("done", {})

    def event(self, name, data):
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Agent)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
