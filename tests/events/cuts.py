"""A proxy that breaks connections off at chosen places of a stream of events."""

import http.client
import http.server
import socket
import threading

from server import SECONDS

# How soon a client is to come back, in milliseconds, instead of what the server says.
RETRY = b"retry: 5\n"


class Cuts:
    """Passes one event on for each connection, and then breaks it off: between two events, or in the middle of the next."""

    def __init__(self, server, in_the_middle):
        self.changed = threading.Condition()
        # The connections in their order: the number that the client had, the status, and the numbers that were passed on.
        self.connections = []
        self.passed = 0
        cuts = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                there = http.client.HTTPConnection(server.host, timeout=SECONDS)
                headers = {"Accept": self.headers["accept"]}
                last = self.headers["last-event-id"]
                if last is not None:
                    headers["Last-Event-ID"] = last
                there.request("GET", self.path, headers=headers)
                answer = there.getresponse()
                connection = [last, answer.status, []]
                with cuts.changed:
                    cuts.connections.append(connection)
                self.send_response(answer.status)
                if answer.status == 200:
                    self.send_header("Content-Type", answer.headers["content-type"])
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.stream(answer, connection[2])
                else:
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                there.close()
                self.close_connection = True

            def stream(self, answer, numbers):
                for frame in frames(answer):
                    number = number_of(frame)
                    if number is not None and numbers:
                        self.cut(frame[: len(frame) // 2] if in_the_middle else b"")
                        return
                    self.piece(frame)
                    if number is not None:
                        numbers.append(number)
                        with cuts.changed:
                            cuts.passed += 1
                            cuts.changed.notify_all()
                        if not in_the_middle:
                            self.cut(b"")
                            return
                # The server ended the stream.
                self.wfile.write(b"0\r\n\r\n")

            def piece(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def cut(self, data):
                if data:
                    self.piece(data)
                self.connection.shutdown(socket.SHUT_RDWR)

            def handle(self):
                try:
                    super().handle()
                except (OSError, http.client.HTTPException):
                    # The client or the server has gone.
                    pass

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count):
        """Waits until so many events were passed on."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.passed >= count, SECONDS), f"{self.passed} of {count} events"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def frames(answer):
    """Yields the parts of a stream, each to its empty line."""
    frame = b""
    while line := answer.readline():
        frame += RETRY if line.startswith(b"retry:") else line
        if line == b"\n":
            yield frame
            frame = b""


def number_of(frame):
    for line in frame.split(b"\n"):
        if line.startswith(b"id:"):
            return int(line[3:])
    return None
