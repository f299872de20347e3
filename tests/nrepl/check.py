"""Talks with `flowstone nrepl` as editors do: with a client of its own, with that of npm, and with the reference client; and compares
answers with those of the reference server.

usage: tests/nrepl/check.py PROGRAM [MODULES] [CLASSPATH]   (the built flowstone, npm's folder, that of `tests/nrepl/install`)
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from client import Client

HERE = pathlib.Path(__file__).resolve().parent
FLOW = """{:slug :asks
 :flow '(let [answer (flow/step :wait :approval {:key "go"})] {:answer answer})}"""

# Requests whose answers are those of the reference server, apart from what is named after each.
SAME = [
    ({"op": "eval", "code": "(+ 1 2) :b"}, []),
    ({"op": "eval", "code": '(do (println "hi") 5)'}, []),
    ({"op": "eval", "code": '(throw (ex-info "boom" {:a 1} (RuntimeException. "root")))'}, ["err"]),
    ({"op": "eval", "code": "(/ 1 0)"}, ["err"]),
    ({"op": "eval", "code": "(ex-message *e)"}, []),
    ({"op": "eval", "code": "1", "ns": "not.there"}, []),
    ({"op": "eval"}, []),
    ({"op": "eval", "code": ""}, []),
    (
        {
            "op": "eval",
            "code": "(range 30)",
            "nrepl.middleware.print/print": "nrepl.util.print/pprint",
            "nrepl.middleware.print/options": {"right-margin": 20},
        },
        [],
    ),
    ({"op": "eval", "code": "(range 30)", "nrepl.middleware.print/quota": 10}, []),
    ({"op": "eval", "code": "(range 3)", "nrepl.middleware.print/print": "no.such/thing"}, []),
    ({"op": "eval", "code": "(ns a.b) (+ 1 1)"}, []),
    ({"op": "eval", "code": "*1"}, []),
    ({"op": "eval", "code": "(str *ns*)", "ns": "user"}, []),
    ({"op": "eval", "code": "(str *ns*)"}, []),
    ({"op": "eval", "code": "(defn f [])\n(select-keys (meta #'f) [:line :column :file])", "file": "/x/y.clj", "line": 10, "column": 3}, []),
    ({"op": "interrupt"}, []),
    ({"op": "nope"}, []),
    ({"op": "stdin", "stdin": "x\n"}, []),
    ({"op": "eval", "code": "(read-line)"}, []),
    ({"op": "completions", "prefix": "interl"}, ["ns"]),
    ({"op": "lookup", "sym": "nonono"}, []),
    ({"op": "load-file", "file": "(ns c.d)\n(def x 1)\n(+ x 1)", "file-path": "/x/c/d.clj", "file-name": "d.clj"}, []),
    ({"op": "eval", "code": "c.d/x"}, []),
    ({"op": "close"}, []),
    ({"op": "eval", "code": "1"}, []),
]


class Server:
    def __init__(self, command, folder, wait=60):
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        end = time.time() + wait
        while time.time() < end:
            line = self.process.stdout.readline()
            lines.append(line)
            found = re.search(r"started on port (\d+) on host (\S+) - nrepl://", line)
            if found:
                self.port = int(found.group(1))
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return
            if not line:
                break
        raise AssertionError(f"it does not start: {lines}")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def values(answers):
    return [answer["value"] for answer in answers if "value" in answer]


def statuses(answers):
    return {status for answer in answers for status in answer.get("status", [])}


def own(port):
    client = Client(port)
    session = client.clone()

    def ask(op, **message):
        return client.ask({"op": op, "session": session, **message})

    assert values(ask("eval", code="(do (print 1) (flush) :v)")) == [":v"]
    # A wait of a run is asked for in the client.
    number = client.send({"op": "eval", "session": session, "code": "(flow/run :asks)"})
    answers = []
    while "done" not in statuses(answers):
        answer = client.receive()
        if answer.get("id") != number:
            continue
        answers.append(answer)
        if "need-input" in answer.get("status", []):
            client.send({"op": "stdin", "session": session, "stdin": "{:n 7}\n"})
    assert values(answers) == ["{:answer {:n 7}}"], answers
    assert any("go waits for an answer" in answer.get("err", "") for answer in answers), answers
    # So is a stop.
    number = client.send({"op": "eval", "session": session, "code": "(flow/debug :asks)"})
    answers = []
    while "done" not in statuses(answers):
        answer = client.receive()
        if answer.get("id") != number:
            continue
        answers.append(answer)
        if "need-input" in answer.get("status", []):
            client.send({"op": "stdin", "session": session, "stdin": "use {:given 1}\n"})
    assert values(answers) == ["{:answer {:given 1}}"], answers
    # The end of the input, and an interrupt, leave a question.
    for end in [{"op": "stdin", "stdin": ""}, {"op": "interrupt"}]:
        number = client.send({"op": "eval", "session": session, "code": "(read-line)"})
        while "need-input" not in client.receive().get("status", []):
            pass
        client.send({**end, "session": session})
        answers = client.until_done(number)
        assert values(answers) in (["nil"], []), answers
    # Names, also while something else is evaluated.
    other = Client(port)
    number = client.send({"op": "eval", "session": session, "code": "(loop [n 0] (recur (inc n)))"})
    time.sleep(0.3)
    found = other.ask({"op": "completions", "prefix": "interl"})[-1]["completions"]
    assert [it["candidate"] for it in found] == ["interleave"], found
    assert other.ask({"op": "eldoc", "sym": "subs"})[-1]["eldoc"] == [["s", "start"], ["s", "start", "end"]]
    other.ask({"op": "interrupt", "session": session})
    assert "interrupted" in statuses(client.until_done(number))
    found = ask("completions", prefix=":htt", context="(flow/step __prefix__ :id {})")[-1]["completions"]
    assert [it["candidate"] for it in found] == [":http"], found
    found = ask("complete", prefix=":as", context="(flow/run __prefix__)")[-1]["completions"]
    assert [it["candidate"] for it in found] == [":asks"], found
    info = ask("lookup", sym="flow/run")[-1]["info"]
    assert info["name"] == "run" and "waits" in info["doc"], info
    info = ask("info", symbol="map")[-1]
    assert info["ns"] == "clojure.core" and "[f coll]" in info["arglists-str"], info
    assert "no-info" in ask("info", symbol="nope")[-1]["status"]
    assert "no-eldoc" in ask("eldoc", symbol="nope")[-1]["status"]
    assert ask("macroexpand", code="(when a b)", expander="macroexpand-1")[-1]["expansion"] == "(if a (do b))"
    # Two sessions have a namespace each.
    second = client.clone()
    ask("eval", code="(ns first.one) (def own 1)")
    assert values(client.ask({"op": "eval", "session": second, "code": "(str *ns*)"})) == ['"user"']
    assert values(client.ask({"op": "eval", "session": second, "code": "first.one/own"})) == ["1"]
    client.close()
    other.close()


def compare(ours, reference):
    """Holds our answers against those of the reference server."""
    clients = [Client(ours), Client(reference)]
    sessions = [client.clone() for client in clients]
    for message, apart in SAME:
        found = []
        for client, session in zip(clients, sessions):
            answers = client.ask({**message, "session": session})
            for answer in answers:
                answer.pop("session", None)
                answer.pop("id", None)
                for name in apart:
                    if name in answer:
                        answer[name] = "..."
                for candidate in answer.get("completions", []):
                    candidate.pop("ns", None)
                if "status" in answer:
                    answer["status"] = sorted(answer["status"])
            # What is printed may come in pieces.
            found.append([answer for answer in answers if answer])
        assert found[0] == found[1], f"{message}\nours:      {found[0]}\nreference: {found[1]}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    modules = sys.argv[2] if len(sys.argv) > 2 else ""
    classes = sys.argv[3] if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "flows").mkdir()
        (folder / "flowstone.edn").write_text("{}")
        (folder / "flows" / "asks.edn").write_text(FLOW)
        server = Server([program, "nrepl"], folder)
        assert (folder / ".nrepl-port").read_text() == str(server.port)
        own(server.port)
        if modules:
            subprocess.run(["node", str(HERE / "client.js"), modules, str(server.port)], check=True, timeout=120)
        if classes:
            java = ["java", "-cp", classes, "clojure.main"]
            subprocess.run([*java, str(HERE / "client.clj"), str(server.port)], check=True, timeout=120)
            reference = Server([*java, "-m", "nrepl.cmdline", "--port", "0", "--bind", "127.0.0.1"], folder)
            try:
                compare(server.port, reference.port)
            finally:
                reference.process.kill()
            # Both write the file; ours is the one that ends now.
        code = server.end()
        assert code in (0, 130), code
    print("editors over nREPL: ok")


main()
