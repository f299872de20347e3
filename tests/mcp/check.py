"""Has flows call tools of real servers of MCP: server-everything over stdio and HTTP, server-filesystem, server-memory.

Usage: check.py FOLDER_OF_NODE_MODULES PROGRAM
"""

import http.server
import json
import os
import pathlib
import re
import signal
import socket
import shutil
import subprocess
import sys
import tempfile
import threading
import time

FLOWS = pathlib.Path(__file__).resolve().parent.parent.parent / "flows"
SECONDS = 60


def edn(value):
    if isinstance(value, dict):
        return "{" + " ".join(f"{edn(k)} {edn(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(edn(v) for v in value) + "]"
    if isinstance(value, str) and value.startswith(":"):
        return value
    return json.dumps(value)


class Project:
    def __init__(self, program, folder, connections):
        self.program, self.folder = program, folder
        settings = {":connections": connections}
        (folder / "flowstone.edn").write_text(edn(settings))

    def flow(self, adapters, body):
        text = (
            "{:slug :f :concurrency {:type :singleton :on-new-version :coexist}"
            f" :mcp {edn(adapters)} :flow '{body}}}"
        )
        (self.folder / "f.edn").write_text(text)

    def start(self, *args):
        return subprocess.Popen(
            [self.program, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, adapters, body):
        self.flow(adapters, body)
        ran = self.start("run", "f.edn", "--json")
        out, err = ran.communicate(timeout=SECONDS)
        try:
            return json.loads(out)
        except json.JSONDecodeError:
            raise AssertionError(f"{out}\n{err}") from None

    def result(self, adapters, body):
        answer = self.run(adapters, body)
        assert answer["status"] == "completed", answer
        return answer["result"]


def call(tool, arguments, adapter=":s/all", more=""):
    return f'(flow/step :mcp :{tool} {{:adapter {adapter} :tool "{tool}" :arguments {edn(arguments)} {more}}})'


def caught(form):
    return f"(try {form} (catch :default e (select-keys (ex-data e) [:kind :code])))"


class Model:
    """A model on the loopback interface: each turn is a function of the messages before it, and gives calls or a text."""

    def __init__(self, turns):
        self.asked = []
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.asked.append(request)
                said = turns(sum(it["role"] == "assistant" for it in request["messages"]))
                usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
                end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
                start = {"choices": [{"index": 0, "delta": {"role": "assistant", **said}, "finish_reason": None}]}
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for event in (start, end, {"choices": [], "usage": usage}):
                    self.wfile.write(f"data: {json.dumps({'id': '1', 'model': 'fake', **event})}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.connection = {
            ":type": ":http-api", ":backend": "openai-compatible", ":model": "fake", ":auth": {":type": ":none"},
            ":base-url": f"http://127.0.0.1:{self.server.server_address[1]}/v1",
        }


def calls(*asked):
    """What a model says that asks for tools."""
    return {"tool_calls": [
        {"index": idx, "id": f"call_{idx}_{name}", "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}
        for idx, (name, arguments) in enumerate(asked)
    ]}


def research(program, server, folder):
    """The flow that comes with the repository: an agent reads notes with the tools of server-filesystem."""
    notes = folder / "notes"
    notes.mkdir(parents=True)
    (notes / "harbour.md").write_text("The harbour opens in May.\n")
    (notes / "mill.md").write_text("The mill is for sale.\n")
    turns = [
        calls(("notes_list_directory", {"path": "."})),
        calls(("notes_read_text_file", {"path": "harbour.md"}), ("notes_read_text_file", {"path": "none.md"})),
        {"content": json.dumps({"answer": "It opens in May.", "certain": True})},
    ]
    model = Model(lambda turn: turns[turn])
    Project(program, folder, {
        ":ai": model.connection, ":notes": {":backend": ":mcp", ":command": ["node", server, "notes"]},
    })
    # As a flow of the project; one from elsewhere would have to be trusted first.
    shutil.copy(FLOWS / "mcp-research.edn", folder)
    question = json.dumps({"question": "When does the harbour open?"})
    ran = subprocess.run(
        [program, "run", "mcp-research.edn", "--json", "--input", question],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS,
    )
    answer = json.loads(ran.stdout)
    assert answer["status"] == "completed", (answer, ran.stderr)
    # A file that is not there is no source, whatever the model says.
    assert answer["result"] == {
        "answer": "It opens in May.", "certain": True, "sources": ["harbour.md"], "turns": 3,
    }, answer["result"]
    offered = {tool["function"]["name"] for tool in model.asked[0]["tools"]}
    assert offered == {"notes_list_directory", "notes_read_text_file", "notes_search_files"}, offered
    told = [it["content"] for it in model.asked[-1]["messages"] if it["role"] == "tool"]
    assert "mill.md" in told[0] and "opens in May" in told[1] and "ENOENT" in told[2], told
    assert len(model.asked) == 3, len(model.asked)
    shown = subprocess.run([program, "runs", "show", answer["run"]], cwd=folder, capture_output=True, text=True, timeout=SECONDS).stdout
    conversation = shown[shown.index("turn 1"):]
    assert re.search(r'harbour.md"}(?!  failed)', conversation), shown
    assert re.search(r'none.md"}  failed\n.*none.md', conversation), shown
    model.server.shutdown()
    print("flows/mcp-research.edn with server-filesystem: ok")


def processes(marker):
    """Returns the ids of processes whose command line has a text."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in line and "check.py" not in line:
                found.append(int(entry.name))
    return found


def until(what, condition):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def everything(project, adapters, transport):
    names = [tool["name"] for tool in project.result(adapters, "(flow/step :mcp :tools {:adapter :s/all :op :list-tools})")["tools"]]
    assert {"echo", "get-sum", "trigger-long-running-operation", "get-tiny-image"} <= set(names), names
    found = project.result(
        adapters,
        "{:echo " + call("echo", {":message": "hi"})
        + " :sum " + call("get-sum", {":a": 2, ":b": 40})
        + " :structured " + call("get-structured-content", {":location": "New York"})
        + " :image " + call("get-tiny-image", {})
        + " :annotated " + call("get-annotated-message", {":messageType": "error", ":includeImage": False})
        + " :links " + call("get-resource-links", {":count": 2})
        + " :resource " + call("get-resource-reference", {":resourceType": "Text", ":resourceId": 1})
        + " :wrong " + caught(call("get-sum", {":a": "two"}))
        + " :none " + caught(call("get-some", {}))
        + "}",
    )
    assert found["echo"] == {"content": "Echo: hi"}, found["echo"]
    assert "42" in found["sum"]["content"], found["sum"]
    assert found["structured"]["content"]["temperature"], found["structured"]
    images = [part for part in found["image"]["parts"] if part["type"] == "image"]
    assert len(images) == 1 and images[0]["url"].startswith("data:image/png;base64,iVBOR"), found["image"]
    assert "rror" in found["annotated"]["content"], found["annotated"]
    assert [part["type"] for part in found["links"]["parts"]].count("resource-link") == 2, found["links"]
    assert any(part["type"] == "resource" and part.get("text") for part in found["resource"]["parts"]), found["resource"]
    assert found["wrong"] == {"kind": "invalid", "code": "E0834"}, found["wrong"]
    assert found["none"] == {"kind": "not-found", "code": "E0830"}, found["none"]
    long = project.result(
        adapters, "(:content " + call("trigger-long-running-operation", {":duration": 1, ":steps": 4}) + ")"
    )
    assert "4" in long, long
    late = [dict(adapters[0], **{":timeout-ms": 300})]
    gone = project.result(late, caught(call("trigger-long-running-operation", {":duration": 30, ":steps": 3})))
    assert gone == {"kind": "timeout", "code": "E0832"}, gone
    print(f"server-everything over {transport}: ok")


def filesystem(project, adapters, folder):
    (folder / "data" / "a.txt").write_text("hello\n")
    found = project.result(
        adapters,
        "{:list " + call("list_directory", {":path": "."})
        + " :read " + call("read_text_file", {":path": "a.txt"})
        + " :write " + call("write_file", {":path": "b.txt", ":content": "written"})
        + " :outside " + caught(call("read_text_file", {":path": "../flowstone.edn"}))
        + "}",
    )
    assert "a.txt" in json.dumps(found["list"]), found["list"]
    assert "hello" in json.dumps(found["read"]), found["read"]
    assert (folder / "data" / "b.txt").read_text() == "written"
    assert found["outside"] == {"kind": "tool-error", "code": "E0833"}, found["outside"]
    forbidden = project.run(adapters, call("move_file", {":source": "a.txt", ":destination": "c.txt"}, ":s/some"))
    assert "E0830" in json.dumps(forbidden) and "status" not in forbidden, forbidden
    assert (folder / "data" / "a.txt").exists()
    print("server-filesystem: ok")


def memory(project, adapters):
    entities = [{":name": "pump", ":entityType": "part", ":observations": ["leaks"]}]
    found = project.result(
        adapters,
        "(do " + call("create_entities", {":entities": entities}) + " (:content " + call("search_nodes", {":query": "pump"}) + "))",
    )
    assert "leaks" in json.dumps(found), found
    print("server-memory: ok")


def killed_server(project, adapters, marker):
    """The server is killed in the middle of a call: the call fails at once, and the next has a new server."""
    body = (
        "[" + caught(call("trigger-long-running-operation", {":duration": 30, ":steps": 2}))
        + " (:content " + call("echo", {":message": "again"}) + ")]"
    )
    project.flow(adapters, body)
    before, calls = set(processes(marker)), asked(project)
    ran = project.start("run", "f.edn", "--json")
    child = until("the server", lambda: set(processes(marker)) - before)
    until("the call", lambda: asked(project) > calls)
    began = time.monotonic()
    for one in child:
        os.kill(one, signal.SIGKILL)
    out, err = ran.communicate(timeout=SECONDS)
    took = time.monotonic() - began
    answer = json.loads(out)
    assert answer["result"] == [{"kind": "unavailable", "code": "E0832"}, "Echo: again"], (answer, err)
    assert took < 15, took
    assert not set(processes(marker)) - before, "a server is left behind"
    print(f"a server killed in the middle of a call: ok, told after {took:.1f} s")


def asked(project):
    """Returns how often the tool that takes long was asked for."""
    log = project.folder / "asked.log"
    return log.read_text().count('"name":"trigger-long') if log.exists() else 0


def killed_flowstone(project, adapters, marker):
    """Flowstone is killed in the middle of a call: no server is left; a call that only reads is made again."""
    slow = call("trigger-long-running-operation", {":duration": 2, ":steps": 2}, more=":read-only? true")
    project.flow(adapters, "[" + call("echo", {":message": "once"}) + " (:content " + slow + ")]")
    before, calls = set(processes(marker)), asked(project)
    ran = project.start("run", "f.edn", "--json")
    until("the server", lambda: set(processes(marker)) - before)
    until("the call", lambda: asked(project) > calls)
    # What the call before gave is handed to the disk while this one runs; before it is there, it is in doubt.
    time.sleep(0.3)
    ran.kill()
    ran.wait()
    until("the end of the server", lambda: not set(processes(marker)) - before)
    listed = project.start("runs", "list", "--json").communicate(timeout=SECONDS)[0]
    # The newest comes first.
    run = re.search(r'"(?:id|run)": *"([^"]+)"', listed).group(1)
    out, err = project.start("runs", "resume", run, "--json").communicate(timeout=SECONDS)
    answer = json.loads(out)
    assert answer["status"] == "completed" and answer["result"][0] == {"content": "Echo: once"}, (answer, err)
    print("Flowstone killed in the middle of a call: ok")


def main():
    modules, program = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    server = lambda name: str(modules / "@modelcontextprotocol" / name / "dist" / "index.js")
    port = free_port()
    web = subprocess.Popen(
        ["node", server("server-everything"), "streamableHttp"],
        env=dict(os.environ, PORT=str(port)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / "data").mkdir()
            project = Project(program, folder, {
                ":every": {":backend": ":mcp", ":command": ["node", server("server-everything"), "stdio"]},
                ":web": {":backend": ":mcp", ":base-url": f"http://127.0.0.1:{port}", ":auth": {":type": ":none"}},
                ":disk": {":backend": ":mcp", ":command": ["node", server("server-filesystem"), "."], ":cwd": "data"},
                # Notes what the server is asked.
                ":noted": {":backend": ":mcp", ":command": [
                    "bash", "-c", 'exec node "$0" stdio < <(tee -a asked.log)', server("server-everything"),
                ]},
                ":graph": {
                    ":backend": ":mcp", ":command": ["node", server("server-memory")],
                    ":env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
                },
            })
            stdio = lambda connection: [{":id": ":s/all", ":connection": connection, ":transport": ":stdio"}]
            over_http = [{":id": ":s/all", ":connection": ":web", ":transport": ":streamable-http", ":path": "/mcp"}]
            everything(project, stdio(":every"), "stdio")
            until("the server", lambda: is_open(port))
            everything(project, over_http, "HTTP")
            some = {":id": ":s/some", ":connection": ":disk", ":transport": ":stdio", ":allow-tools": ["read_text_file"]}
            filesystem(project, stdio(":disk") + [some], folder)
            memory(project, stdio(":graph"))
            research(program, server("server-filesystem"), folder / "research")
            if pathlib.Path("/proc").is_dir():
                marker = server("server-everything") + " stdio"
                killed_server(project, stdio(":noted"), marker)
                killed_flowstone(project, stdio(":noted"), marker)
            else:
                print("left out, because there is no /proc: servers that are killed")
    finally:
        web.kill()
        web.wait()
    print("servers of MCP: ok")


def is_open(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


main()
