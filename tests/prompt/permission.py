"""Answers the question about a missing permission at a terminal: once, for the run, written to flowstone.edn, no; and what a
flow writes into it is shown escaped.

usage: tests/prompt/permission.py PROGRAM   (the built flowstone)
"""

import os
import pathlib
import pty
import select
import sys
import tempfile
import time

SECONDS = 60
QUESTION = "[N]o: "
LIST = '(flow/step :files :%s {:op :list :source {:type :dir :path "%s"}})'


def talk(program, folder, answers):
    """Runs the flow, gives the answers in turn, and returns what was on the screen, and the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm", HOME=str(folder))
        os.execv(program, ["flowstone", "run", "probe.edn", "--new", "--color", "never"])
    seen, asked, end = "", 0, time.time() + SECONDS
    while time.time() < end:
        ready, _, _ = select.select([fd], [], [], max(0, end - time.time()))
        assert ready, f"nothing comes after {seen!r}"
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data.decode(errors="replace")
        if seen.count(QUESTION) > asked:
            assert asked < len(answers), f"a question too many: {seen!r}"
            os.write(fd, (answers[asked] + "\r").encode())
            asked += 1
    assert asked == len(answers), f"{asked} questions: {seen!r}"
    return seen, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(program):
    program = str(pathlib.Path(program).resolve())
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / "project"
        outside = pathlib.Path(top) / "outside"
        folder.mkdir()
        outside.mkdir()
        settings = folder / "flowstone.edn"
        settings.write_text("; mine\n{:limits {:memory \"64MB\"}}\n")
        twice = LIST % ("a", outside) + LIST % ("b", outside)
        (folder / "probe.edn").write_text("{:slug :probe :flow '(do %s)}" % twice)
        seen, code = talk(program, folder, ["n"])
        assert code == 1 and "E0960" in seen and "wants to read" in seen, seen
        seen, code = talk(program, folder, ["o", "o"])
        assert code == 0, seen
        seen, code = talk(program, folder, ["what", "r"])
        assert code == 0, seen
        assert ":allow" not in settings.read_text()
        seen, code = talk(program, folder, ["w"])
        text = settings.read_text()
        assert code == 0 and f':allow {{:read ["{outside}"]}}' in text and text.startswith("; mine\n"), text
        seen, code = talk(program, folder, [])
        assert code == 0, seen
        hidden = LIST % ("c", str(outside) + "x\\u001b[8m\\u202ey")
        (folder / "probe.edn").write_text("{:slug :probe :flow '(do %s)}" % hidden)
        seen, code = talk(program, folder, ["n"])
        question = seen.split(QUESTION)[0]
        assert "\x1b[8m" not in question and "\u202e" not in question, question
        assert r"x\x1b[8m\u{202e}y" in question, question
    print("a person is asked about what is missing, and sees what the flow really says")


main(sys.argv[1])
