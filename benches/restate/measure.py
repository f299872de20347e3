"""Measures 1,000 runs of ten external steps in Restate, submitted over HTTP, beside the rows of `benches/durable`.

Usage: measure.py FOLDER_OF_NODE_MODULES [ADDRESS]
With an address, each step makes a request there; without, it writes a line to a file. Nothing leaves the loopback interface.
"""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

RUNS, STEPS, CLIENTS, SECONDS = 1_000, 10, 64, 120
HERE = pathlib.Path(__file__).resolve().parent


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def request(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    return answer.status, read


def until(is_so):
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < SECONDS, "it takes too long"
        time.sleep(0.01)


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def figures(process):
    """Returns the seconds of processor time and the resident megabytes of a process."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    kilobytes = int(status.split("VmRSS:")[1].split()[0])
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), kilobytes / 1024


def submit(port, numbers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    for number in numbers:
        connection.request("POST", "/bench/steps/send", json.dumps(number), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 202), answer.status


def main():
    modules = pathlib.Path(sys.argv[1]).resolve()
    ingress, admin, node, service = free_ports(4)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        effects = folder / "effects"
        effects.touch()
        config = folder / "restate.toml"
        config.write_text(
            f"""disable-telemetry = true
base-dir = "{folder}/data"
bind-address = "127.0.0.1:{node}"
advertised-address = "http://127.0.0.1:{node}/"
[ingress]
bind-address = "127.0.0.1:{ingress}"
[admin]
bind-address = "127.0.0.1:{admin}"
"""
        )
        program = next(modules.glob("@restatedev/restate-server-*/bin/restate-server"))
        environment = {**os.environ, "RESTATE_DISABLE_TELEMETRY": "true", "NODE_ENV": "production"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        # A module is looked for beside the file that imports it.
        script = folder / "service.mjs"
        script.write_text((HERE / "service.mjs").read_text())
        (folder / "node_modules").symlink_to(modules)
        server = subprocess.Popen([program, "--config-file", config], cwd=folder, **quiet)
        worker = subprocess.Popen(["node", script, str(service), effects, *sys.argv[2:3]], cwd=folder, **quiet)
        try:
            until(lambda: is_open(ingress) and is_open(admin) and is_open(service))
            until(lambda: request(admin, "GET", "/health")[0] == 200)
            status, said = request(admin, "POST", "/deployments", {"uri": f"http://127.0.0.1:{service}"})
            assert status in (200, 201), (status, said)
            # The first call waits for the partitions.
            assert request(ingress, "POST", "/bench/steps", 0)[0] == 200
            measure(ingress, [server, worker], effects)
        finally:
            for process in (worker, server):
                process.terminate()
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()


def measure(ingress, processes, effects):
    def count():
        return effects.read_bytes().count(b"\n")

    before, done = [figures(it) for it in processes], count()
    begun = time.monotonic()
    shares = [range(first + 1, RUNS + 1, CLIENTS) for first in range(CLIENTS)]
    threads = [threading.Thread(target=submit, args=(ingress, share)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted = time.monotonic() - begun
    until(lambda: count() >= done + RUNS * STEPS)
    took = time.monotonic() - begun
    after = [figures(it) for it in processes]
    cpu = [there[0] - here[0] for here, there in zip(before, after)]
    lines = effects.read_text().split()
    print(
        f"Restate: {RUNS * STEPS / took:.0f} steps/s; {RUNS / accepted:.0f} starts/s;"
        f" CPU {cpu[0]:.1f} s server + {cpu[1]:.1f} s service;"
        f" {after[0][1]:.0f} MB + {after[1][1]:.0f} MB (idle {before[0][1]:.0f} + {before[1][1]:.0f});"
        f" effects {len(lines)}, different {len(set(lines))}"
    )


main()
