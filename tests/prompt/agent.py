"""Watches `flowstone run` of an agent: on a terminal, on one without colours, and through a pipe.

usage: tests/prompt/agent.py PROGRAM   (the built flowstone)
"""

import http.server
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time

FLOW = """{:slug :sums
 :functions [{:id :add :code (fn [{:keys [a b]}] {:sum (+ a b)})}]
 :steps [{:id :math/add :type :function :description "Adds." :input-schema [:map [:a :int] [:b :int]] :defaults {:ref :add}}]
 :flow '(:content (flow/step :agent :work {:connection :ai :objective "Add." :tools {:steps [:math/add]}}))}"""
PIECES = ["The sum ", "is ", "forty", "-two: ", "äöü 42."]
ANSWER = "".join(PIECES)
COLOR = re.compile(r"\x1b\[[0-9;]*m")


def deltas(turn):
    """What the model streams: a call that works, one that does not, and then an answer in pieces."""
    if turn == 2:
        return [{"content": piece} for piece in PIECES]
    arguments = [{"a": 40, "b": 2}, {"a": "forty"}][turn]
    function = {"name": "math_add", "arguments": json.dumps(arguments)}
    return [{"tool_calls": [{"index": 0, "id": f"call_{turn}", "type": "function", "function": function}]}]


class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = sum(it["role"] == "assistant" for it in request["messages"])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for delta in deltas(turn) + [{}]:
            choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
            self.say({"choices": [choice]})
            # Pieces that come at once are one piece.
            time.sleep(0.05)
        self.say({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, event):
        self.wfile.write(f"data: {json.dumps({'id': '1', 'model': 'fake', **event})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


def on_terminal(program, folder, **settings):
    """Returns each piece as it came, with the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        for name in ("NO_COLOR", "CLICOLOR_FORCE"):
            os.environ.pop(name, None)
        os.environ.update(TERM="xterm", HOME=folder, **settings)
        os.execv(program, ["flowstone", "run", "sums.edn"])
    pieces = []
    try:
        while data := os.read(fd, 65536):
            pieces.append(data)
    except OSError:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return pieces, code


def screen(text):
    """Draws what was written, as a terminal would: returns the lines that stand there at the end."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
        elif part.startswith("\x1b["):
            count, what = part[2:-1], part[-1]
            number = int(count) if count.isdigit() else 1
            if what == "A":
                row = max(0, row - number)
            elif what == "B":
                row += number
            elif what == "K":
                lines[row] = "" if count == "2" else lines[row][:column]
            elif what == "G":
                column = number - 1
            else:
                assert what in "mhlJ", part
        else:
            lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + len(part):]
            column += len(part)
        lines += [""] * (row + 1 - len(lines))
    return [line.rstrip() for line in lines]


def reads_well(lines, where):
    """The answer, a line for each call with its time and outcome, and what it came to."""
    text = "\n".join(lines)
    worked = [line for line in lines if re.search(r"✓ +math_add\b.*\b\d+ m?s", line)]
    failed = [line for line in lines if re.search(r"✗ +math_add\b", line)]
    assert len(worked) == 1 and len(failed) == 1, f"{where}:\n{text}"
    assert ANSWER in text, f"{where}:\n{text}"
    assert re.search(r"330 tokens", text), f"{where}:\n{text}"
    assert not any("\ufffd" in line for line in lines), f"{where}:\n{text}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "sums.edn").write_text(FLOW)
        (pathlib.Path(folder) / "flowstone.edn").write_text(
            '{:connections {:ai {:type :http-api :backend "openai-compatible" :model "fake" :auth {:type :none}'
            f' :base-url "http://127.0.0.1:{server.server_address[1]}/v1"}}}}}}'
        )
        for settings in ({}, {"NO_COLOR": "1"}):
            pieces, code = on_terminal(program, folder, **settings)
            seen = b"".join(pieces).decode()
            if len(sys.argv) > 2:
                print(seen, repr(seen))
            assert code == 0, seen
            reads_well(screen(seen), settings)
            with_answer = [piece for piece in pieces if any(word.encode() in piece for word in ("The sum", "forty", "äöü"))]
            assert len(with_answer) > 1, "the answer does not stream"
            assert bool(COLOR.search(seen)) != bool(settings), f"{settings}: {seen!r}"
        piped = subprocess.run([program, "run", "sums.edn"], cwd=folder, capture_output=True, timeout=60,
                               env={"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm"})
        out, err = piped.stdout.decode(), piped.stderr.decode()
        assert piped.returncode == 0, err
        if len(sys.argv) > 2:
            print(out, err)
        assert ANSWER in out, out
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", out + err), (out, err)
        reads_well(err.splitlines() + out.splitlines(), "through a pipe")
    print("an agent on a terminal: ok")


main()
