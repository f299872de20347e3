"""A running server, and a counter of effects outside, which the checks of this folder share."""

import http.client
import http.server
import json
import signal
import socket
import subprocess
import threading
import time

# How long anything may take.
SECONDS = 60


class Server:
    """`flowstone serve` on a port of the loopback interface: a free one, unless a port is given."""

    def __init__(self, program, folder, port=0, options=()):
        self.folder = folder
        about = folder / ".flowstone" / "server.json"
        # That of a server that was killed.
        about.unlink(missing_ok=True)
        command = [program, "serve", "--listen", f"127.0.0.1:{port}", "--quiet", *options]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        begun = time.monotonic()
        while True:
            try:
                self.host = json.loads(about.read_text())["base"].removeprefix("http://")
                break
            except (FileNotFoundError, json.JSONDecodeError):
                assert self.process.poll() is None, "the server ended"
                assert time.monotonic() - begun < SECONDS, "the server does not start"
                time.sleep(0.02)
        self.port = int(self.host.rsplit(":", 1)[1])
        self.token = (folder / ".flowstone" / "owner.token").read_text().strip()

    def call(self, method, path, body=None, timeout=SECONDS):
        """Makes a request as the owner. Returns the status and the JSON of the answer."""
        connection = http.client.HTTPConnection(self.host, timeout=timeout)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        response = connection.getresponse()
        read = response.read()
        connection.close()
        return response.status, json.loads(read) if read else None

    def start(self, flow, body=None):
        """Starts a run and returns its id."""
        status, run = self.call("POST", f"/api/v1/flows/{flow}/runs", body or {})
        assert status == 201, (status, run)
        return run["id"]

    def events(self, run):
        """Returns the address of a run's events, with a token that clients without headers can use."""
        status, made = self.call("POST", "/api/v1/stream-tokens", {"run": run})
        assert status == 201, (status, made)
        return f"/api/v1/runs/{run}/events?token={made['token']}"

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=SECONDS)

    def stop(self):
        """Stops it in order, unless it was killed."""
        if self.process.returncode == -signal.SIGKILL:
            return
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=SECONDS) == 0


class Counter:
    """A service outside. A POST is an effect; one that brings the key of an earlier one is answered and not performed."""

    def __init__(self, before=lambda number: None):
        self.lock = threading.Lock()
        self.performed = {}
        self.repeated = 0
        counter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                key = self.headers["idempotency-key"]
                with counter.lock:
                    is_new = key not in counter.performed
                    if is_new:
                        counter.performed[key] = body
                    else:
                        counter.repeated += 1
                    number = len(counter.performed)
                before(number)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    # The caller was killed.
                    pass

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def server_bind(self):
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                super().server_bind()

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/count"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
