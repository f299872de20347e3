"""A model that follows its system prompt, an embedder that counts words, and a server of tools, on one port of the loopback interface."""

import http.server
import json
import re
import threading


def reply(messages):
    """Follows the system prompt: a line for each turn, `call NAME JSON` or `say TEXT`. The last line is repeated."""
    script = next((it["content"] for it in messages if it["role"] == "system"), "say hello").splitlines()
    turn = sum(1 for it in messages if it["role"] == "assistant")
    line = script[min(turn, len(script) - 1)]
    if line.startswith("say "):
        return {"content": line[4:]}
    name, _, arguments = line.removeprefix("call ").partition(" ")
    function = {"name": name, "arguments": arguments or "{}"}
    return {"content": None, "tool_calls": [{"index": 0, "id": f"c{turn}", "type": "function", "function": function}]}


def vector(text):
    counts = [0] * 256
    for word in re.findall(r"\w+", text.lower()):
        counts[sum(byte * (at + 7) for at, byte in enumerate(word.encode())) % 256] += 1
    return counts


class Outside:
    def __init__(self):
        self.turns = []
        self.calls = []
        outside = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if self.path == "/v1/embeddings":
                    data = [{"index": at, "embedding": vector(text)} for at, text in enumerate(body["input"])]
                    return self.answer("application/json", json.dumps({"data": data}))
                if self.path != "/v1/chat/completions":
                    outside.calls.append((dict(self.headers), body))
                    return self.answer("application/json", json.dumps({"found": body, "data": {"text": "deep"}}))
                outside.turns.append(body)
                usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
                choice = {"index": 0, "delta": reply(body["messages"]), "finish_reason": "stop"}
                frame = {"id": "1", "model": "fake-1", "choices": [choice], "usage": usage}
                self.answer("text/event-stream", f"data: {json.dumps(frame)}\n\ndata: [DONE]\n\n")

            def answer(self, kind, text):
                encoded = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
