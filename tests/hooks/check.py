"""Sends deliveries that the libraries of GitHub and Stripe signed to a running server.

Usage: check.py FOLDER_OF_NODE_MODULES PROGRAM
"""

import http.client
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 60
FLOW = """{:slug :hooks :invocations {:default {:inputs []}}
 :interfaces {:webhook [{:id :in :invocation :default :auth {:type :KIND :secret-ref :hook}}]}
 :flow '(:n (flow/input))}"""


class Signer:
    def __init__(self, modules):
        script = pathlib.Path(__file__).with_name("sign.mjs")
        self.process = subprocess.Popen(
            ["node", str(script), modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def sign(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=SECONDS)


class Server:
    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--quiet"], cwd=folder, stdout=subprocess.DEVNULL
        )
        begun = time.monotonic()
        path = folder / ".flowstone" / "server.json"
        while True:
            try:
                base = json.loads(path.read_text())["base"]
                break
            except (FileNotFoundError, json.JSONDecodeError):
                assert self.process.poll() is None, "the server ended"
                assert time.monotonic() - begun < SECONDS, "the server does not start"
                time.sleep(0.02)
        self.host = base.removeprefix("http://")

    def post(self, headers, body):
        connection = http.client.HTTPConnection(self.host, timeout=SECONDS)
        headers = {"Content-Type": "application/json", **headers}
        connection.request("POST", "/api/flows/hooks/interfaces/live/in", body.encode(), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=SECONDS) == 0


def check(program, signer, kind):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "flows").mkdir()
        (folder / "flows" / "hooks.edn").write_text(FLOW.replace("KIND", kind))
        (folder / ".env").write_text("HOOK=whsec_1\n")
        server = Server(program, folder)
        try:
            now = int(time.time())
            # The bytes count, not what they mean: spaces, and letters beyond ASCII.
            body = '{ "n":  1, "text": "größer" }'
            good = signer.sign(kind=kind, secret="whsec_1", body=body, at=now)
            status, answer = server.post(good, body)
            assert (status, answer["status"]) == (200, "completed"), (kind, status, answer)
            status, again = server.post(good, body)
            assert status == 200 and again["deduped"] and again["runId"] == answer["runId"], (kind, again)
            status, answer = server.post(good, body.replace("1", "2"))
            assert (status, answer["code"]) == (401, "E1044"), (kind, status, answer)
            wrong = signer.sign(kind=kind, secret="whsec_2", body=body, at=now)
            assert server.post(wrong, body)[0] == 401, kind
            if kind == "stripe":
                old = signer.sign(kind=kind, secret="whsec_1", body=body, at=now - 400)
                assert server.post(old, body)[0] == 401, kind
        finally:
            server.stop()


def main():
    modules, program = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    signer = Signer(modules)
    for kind in ["github", "stripe"]:
        check(program, signer, kind)
    signer.close()
    print("deliveries of GitHub and Stripe: proven, recognised, and refused if changed")


main()
