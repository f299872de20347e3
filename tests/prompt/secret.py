"""Gives a secret input through a terminal: what is typed does not appear, and the run gets it.

usage: tests/prompt/secret.py PROGRAM   (the built flowstone)
"""

import os
import pathlib
import pty
import select
import sys
import tempfile
import time

SECONDS = 60
SECRET = "correct horse battery"
FLOW = """{:slug :a :name "A" :concurrency {:type :singleton}
 :invocations {:default {:inputs [{:name :user :type :text :required true}
                                  {:name :pass :type :password :required true}]}}
 :flow '(let [{:keys [user pass]} (flow/input)] (str user " " (count pass)))}"""


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a.edn").write_text(FLOW)
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm", HOME=folder)
            os.execv(program, ["flowstone", "run", "a.edn", "--color", "never"])
        seen = expect(fd, "", "user: ")
        os.write(fd, b"ann\n")
        seen = expect(fd, seen, "pass (password): ")
        time.sleep(0.2)
        os.write(fd, SECRET.encode() + b"\n")
        seen = expect(fd, seen, "ann 21")
        assert SECRET not in seen, seen
        os.waitpid(pid, 0)
    print("a secret that is typed does not appear")


def expect(fd, seen, text):
    end = time.time() + SECONDS
    while text not in seen:
        if time.time() > end:
            sys.exit(f"no {text!r} in:\n{seen}")
        if select.select([fd], [], [], 0.1)[0]:
            try:
                seen += os.read(fd, 4096).decode(errors="replace")
            except OSError:
                assert text in seen, seen
    return seen


main(os.path.abspath(sys.argv[1]))
