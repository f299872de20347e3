"""Serves a small model, and asks it over each wire format that its server speaks, from one flow.

Nothing is expected of what the model says; that it comes in pieces and in the shape of the schema is the test.
Usage: check.py MODEL PROGRAM
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import xllamacpp

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 300

# The wire formats: all that differs is the connection.
FAMILIES = {
    "chat completions": ":chat-completions-compatible",
    "responses": ":openai",
    "messages": ":anthropic",
}

# What the server cannot do, and why.
LEFT_OUT = {
    ("messages", "data"): "over this interface the server holds the model to no schema, and to no tool",
    ("messages", "usage"): "over this interface the server may begin an answer before it has counted the prompt",
}


def serve(model):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 2048
    params.n_parallel = 1
    params.port = 0
    return xllamacpp.Server(params)


class Project:
    def __init__(self, program, folder, address, family):
        self.program, self.folder, self.usage = program, folder, {}
        shutil.copytree("flows", folder / "flows")
        shutil.copy(HERE / "flow.edn", folder / "flow.edn")
        (folder / "notes").mkdir()
        (folder / "notes" / "water.md").write_text("# Water\n\nThe pump needs a new seal.\n")
        (folder / "flowstone.edn").write_text(
            f'{{:connections {{:ai {{:backend :llama-cpp :family {family} :model "smollm2" :base-url "{address}/v1"'
            " :auth {:type :none}}}}"
        )

    def start(self, flow, value):
        return subprocess.Popen(
            [self.program, "run", flow, "--json", "--input", value],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def run(self, flow, value):
        """Returns the result, and when the pieces of the answer came."""
        ran = self.start(flow, value)
        limit = threading.Timer(SECONDS, ran.kill)
        limit.start()
        seen, times = b"", []
        while piece := os.read(ran.stderr.fileno(), 65536):
            seen += piece
            times.append(time.monotonic())
        out = ran.stdout.read()
        ran.wait()
        limit.cancel()
        try:
            answer = json.loads(out)
        except json.JSONDecodeError:
            raise AssertionError(f"{out.decode()}\n{seen.decode()}") from None
        assert ran.returncode == 0 and answer["status"] == "completed", f"{answer}\n{seen.decode()}"
        return answer["result"], seen.decode(), times

    def ask(self, case):
        return self.run("flow.edn", json.dumps({"case": case}))


def text(project):
    result, seen, times = project.ask("text")
    said = result["content"]
    assert said and said in seen, (said, seen)
    assert len(times) > 3, f"it came in {len(times)} pieces: {seen}"
    project.usage = result["usage"]
    return said


def usage(project):
    """How the answer before was counted."""
    counted = project.usage
    assert counted["prompt-tokens"] > 0 and 0 < counted["completion-tokens"] <= 12, counted
    return json.dumps(counted)


def data(project):
    result, _, _ = project.ask("data")
    assert result["content"] in ({"wet": True}, {"wet": False}), result
    return json.dumps(result["content"])


def agent(project):
    result, seen, _ = project.ask("agent")
    assert result["content"] and result["content"] in seen and result["iterations"] == 1, (result, seen)
    return result["content"]


def cancel(project):
    """An answer is under way; with Ctrl-C the run ends at once, and the server hears it: it answers the next."""
    ran = project.start("flow.edn", '{"case": "endless"}')
    limit = threading.Timer(SECONDS, ran.kill)
    limit.start()
    seen = b""
    while len(seen) < 60:
        piece = os.read(ran.stderr.fileno(), 65536)
        assert piece, f"it ended by itself: {ran.stdout.read()} {seen}"
        seen += piece
    began = time.monotonic()
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate()
    took = time.monotonic() - began
    limit.cancel()
    assert ran.returncode not in (0, -signal.SIGKILL), (ran.returncode, out, err)
    assert took < 1, f"it took {took:.2f} s to end"
    return f"gone after {took * 1000:.0f} ms"


def summary(project):
    report, _, _ = project.run("flows/summarize.edn", '{:path "notes"}')
    assert report.startswith("# Summary of notes\n") and "`water.md`" in report and "Topics:" in report, report
    return report


CASES = {"text": text, "usage": usage, "cancel": cancel, "data": data, "agent": agent}


def main():
    model, program = sys.argv[1:]
    server = serve(model)
    for name, family in FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            project = Project(program, pathlib.Path(folder), server.listening_address, family)
            for case, check in CASES.items():
                if (name, case) in LEFT_OUT:
                    print(f"{name}, {case}: left out: {LEFT_OUT[name, case]}")
                    continue
                began = time.monotonic()
                shown = " ".join(check(project).split())
                print(f"{name}, {case}: ok, {time.monotonic() - began:.1f} s: {shown}", flush=True)
            if name == "chat completions":
                print(summary(project))
    print("a real model: ok")


main()
