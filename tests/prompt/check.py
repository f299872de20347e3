"""Talks with `flowstone repl` through a terminal: several lines, completion, Ctrl-C, Ctrl-D, history.

usage: tests/prompt/check.py PROGRAM   (the built flowstone)
"""

import os
import pathlib
import pty
import re
import select
import sys
import tempfile
import time

SECONDS = 60
PROMPT = "user=> "


class Terminal:
    def __init__(self, program, folder):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm", HOME=folder)
            os.execv(program, ["flowstone", "repl", "--color", "never"])

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, text):
        """Reads up to and including a text; what came before it is gone then."""
        end = time.time() + SECONDS
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.time()))
            assert ready, f"{text!r} does not come after {self.seen!r}"
            data = os.read(self.fd, 65536).decode(errors="replace")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data)
        before, self.seen = self.seen.split(text, 1)
        return before

    def ends(self):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(program, folder)
        terminal.until("Ctrl-D leaves")
        terminal.until(PROMPT)
        terminal.send("(str :lines\r")
        terminal.send(" :joined)\r")
        terminal.until('":lines:joined"')
        terminal.until(PROMPT)
        terminal.send("(interpos\t")
        terminal.until("interpose")
        terminal.send(' :x "ab")\r')
        terminal.until("(\\a :x \\b)")
        terminal.until(PROMPT)
        terminal.send("(loop [] (recur))\r")
        terminal.until("(loop [] (recur))\r\n")
        terminal.send("\x03")
        terminal.until("interrupted by Ctrl-C")
        terminal.until(PROMPT)
        terminal.send("(flow/step :sleep :nap {:seconds 3600})\r")
        terminal.until("nap")
        terminal.until("sleeps")
        terminal.send("\x03")
        terminal.until("interrupted")
        terminal.until(PROMPT)
        terminal.send("(half a line\x03")
        terminal.until(PROMPT)
        terminal.send("[*1 :still-here]\r")
        terminal.until("[(\\a :x \\b) :still-here]")
        terminal.until(PROMPT)
        terminal.send("\x04")
        code = terminal.ends()
        assert code == 0, f"exit code {code}"
        history = (pathlib.Path(folder) / ".flowstone" / "history").read_text()
        assert "(interpose :x" in history, history
    print("a prompt: ok")


main()
