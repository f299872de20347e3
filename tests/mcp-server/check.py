"""Has programs of others talk to the MCP server: the conformance suite of the protocol, and the clients of its SDKs.

Usage: check.py FOLDER_OF_NODE_MODULES PROGRAM [SCENARIO...]
"""

import http.client
import http.server
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import fixture

SECONDS = 60
HERE = pathlib.Path(__file__).resolve().parent
# The revisions, each with the scenarios that it requires and those that the suite only reports about.
REVISIONS = ["2025-11-25", "2026-07-28"]


class Server:
    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--quiet"], cwd=folder, stdout=subprocess.DEVNULL
        )
        begun = time.monotonic()
        path = folder / ".flowstone" / "server.json"
        while True:
            try:
                self.host = json.loads(path.read_text())["base"].removeprefix("http://")
                break
            except (FileNotFoundError, json.JSONDecodeError):
                assert self.process.poll() is None, "the server ended"
                assert time.monotonic() - begun < SECONDS, "the server does not start"
                time.sleep(0.02)
        self.token = (folder / ".flowstone" / "owner.token").read_text().strip()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=SECONDS) == 0


class Door:
    """A proxy that adds the access token: the suite cannot send one. Other hosts and origins reach the server as they are."""

    def __init__(self, server):
        door = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                there = http.client.HTTPConnection(server.host, timeout=SECONDS)
                there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() in ("host", "origin"):
                        value = value.replace(door.host, server.host).replace(f"localhost:{door.port}", server.host)
                    if name.lower() not in ("connection", "content-length"):
                        there.putheader(name, value)
                there.putheader("Authorization", f"Bearer {server.token}")
                there.putheader("Content-Length", str(len(body)))
                there.endheaders(body)
                answer = there.getresponse()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (BrokenPipeError, ConnectionResetError, http.client.HTTPException, OSError):
                    self.close_connection = True

            do_GET = do_POST = do_DELETE = do_OPTIONS = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def suite(modules, url, *args, timeout=SECONDS * 5):
    command = ["node", "--import", str(HERE / "globs.mjs"),
               str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
               "server", "--url", url, *args]
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout)
    return ran.returncode, ran.stdout + ran.stderr


def conformance(modules, url):
    """Everything that a revision requires passes, and what the suite runs beside it, too."""
    for revision in REVISIONS:
        expected = HERE / f"expected-{revision}.yml"
        args = ["--requirements", revision]
        if expected.exists():
            args += ["--expected-failures", str(expected)]
        code, text = suite(modules, url, *args)
        counts = re.findall(r"^Total:.*$", text, re.MULTILINE)
        assert code == 0, f"{revision}: {text[-6000:]}"
        print(f"conformance suite, {revision}: all that is required. {counts[-1] if counts else ''}")
        # What the suite runs for visibility only: extensions, and scenarios that its own reference cannot pass yet.
        not_scored = re.findall(r"^  (✗ .*)$", text.partition("Not scored")[2], re.MULTILINE)
        assert not not_scored, f"{revision}: not required, and failing: {not_scored}"


def clients(modules, server, program, folder):
    """The clients of the SDKs list tools, call one and read a resource, over HTTP and stdio."""
    url = f"http://{server.host}/mcp"
    args = [url, server.token, program, str(folder)]
    commands = [["node", str(HERE / "client.mjs"), str(modules), *args]]
    python = subprocess.run([str(HERE / "python")], capture_output=True, text=True)
    if python.returncode == 0:
        commands.append([python.stdout.strip(), str(HERE / "client.py"), *args])
    else:
        print("left out, because it cannot be had: the Python SDK")
    for command in commands:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2)
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
        print(ran.stdout.strip())


def walks(modules, server, program, folder):
    """The clients of the SDKs walk a behaviour tree: every tool, with exact answers and errors. Then its documents."""
    (folder / "trees").mkdir()
    (folder / "trees" / "walk.yaml").write_text((HERE / "walk" / "tree.yaml").read_text())
    args = [f"http://{server.host}/mcp", server.token, program, str(folder)]
    commands = [["node", str(HERE / "walk" / "client.mjs"), str(modules), *args]]
    python = subprocess.run([str(HERE / "python")], capture_output=True, text=True)
    if python.returncode == 0:
        commands.append([python.stdout.strip(), str(HERE / "walk" / "client.py"), *args])
    for command in commands:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 2)
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
        print(ran.stdout.strip())
    for handle in sorted(folder.glob("*.json")):
        export = [program, "tree", "export", handle.name]
        ran = subprocess.run(export, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
        document, file = json.loads(ran.stdout), json.loads(handle.read_text())
        assert (document["status"], document["tree"]["name"], len(document["trace"])) == ("complete", "Root", 7), document
        # The file also says which run it belongs to.
        assert file.pop("flowstone") and file == document, handle.name
        print(f"{handle.name}: the exported document is that of the file")


def main():
    modules, program = pathlib.Path(sys.argv[1]).resolve(), str(pathlib.Path(sys.argv[2]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        fixture.write(folder / "flows")
        server = Server(program, folder)
        try:
            door = Door(server)
            if sys.argv[3:]:
                for scenario in sys.argv[3:]:
                    version, _, scenario = scenario.rpartition("@")
                    args = ["--scenario", scenario, "--verbose"] + (["--spec-version", version] if version else [])
                    print(suite(modules, door.url, *args)[1])
                return
            conformance(modules, door.url)
            clients(modules, server, program, folder)
            walks(modules, server, program, folder)
        finally:
            server.stop()


main()
