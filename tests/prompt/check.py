"""Talks with `flowstone repl` through a terminal: several lines, completion, Ctrl-C, Ctrl-D, history, input that is
typed ahead, what the prompt answers itself, and what is left on the screen after steps.

usage: tests/prompt/check.py PROGRAM   (the built flowstone)
"""

import os
import pathlib
import select
import sys
import tempfile
import time

from terminal import PROMPT, Terminal

CHILD = """{:slug :child :concurrency {:type :singleton :on-new-version :supersede}
 :flow '(:n (flow/step :function :three {:code '(fn [_] {:n 3})}))}"""


def settles(terminal):
    """Tells whether nothing is written for half a second: a prompt comes in several writes, a spinner draws ten times a second."""
    end = time.time() + 3
    while time.time() < end:
        ready, _, _ = select.select([terminal.fd], [], [], 0.5)
        if not ready:
            return True
        os.read(terminal.fd, 65536)
    return False


def type_ahead(terminal):
    """All lines of one write are evaluated, and what comes while an evaluation runs, too."""
    terminal.send("(def a 1)\r(def b 2)\r(+ a b 100)\r")
    terminal.until("103")
    terminal.until(PROMPT)
    terminal.send("(do (Thread/sleep 700) :slept)\r")
    time.sleep(0.2)
    terminal.send("(def c 5)\r(str :typed\r :ahead c)\r")
    terminal.until(":slept\r\n")
    terminal.until('":typed:ahead5"')
    terminal.until(PROMPT)
    # What another program sends ends its lines with a line feed.
    lines = "".join(f"(def n{i} {i})\n" for i in range(200))
    terminal.send(lines + "(apply + [n0 n99 n199])\n")
    terminal.until("298")
    terminal.until(PROMPT)


def answers(terminal):
    """What the prompt answers itself."""
    for word in ["help", ":help", "(help)"]:
        terminal.send(word + "\r")
        terminal.until('(apropos "part")')
        terminal.until(PROMPT)
    terminal.send("(doc :sleep)\r")
    terminal.until("## :sleep")
    terminal.until(PROMPT)
    terminal.send('(throw (ex-info "the first" {:n 1}))\r')
    terminal.until("ExceptionInfo: the first")
    terminal.until(PROMPT)
    terminal.send("(pst)\r")
    terminal.until("ExceptionInfo: the first")
    terminal.until(PROMPT)
    terminal.send("(vec (repeat 4 {:key (apply str (repeat 30 \\x))}))\r")
    row = '{:key "' + 30 * "x" + '"}'
    terminal.until(f"[{row}\r\n {row}\r\n {row}\r\n {row}]\r\n")
    terminal.until(PROMPT)
    terminal.send("(set! *print-length* 3)\r")
    terminal.until(PROMPT)
    terminal.send("(range 30)\r")
    terminal.until("(0 1 2 ...)")
    terminal.until(PROMPT)
    terminal.send("(set! *print-length* nil)\r")
    terminal.until(PROMPT)


def steps(terminal):
    """Live lines end with what they are about."""
    terminal.send("(flow/call-flow :child {})\r")
    terminal.until("✓ child :call-flow")
    terminal.until("3\r\n")
    terminal.until(PROMPT)
    assert settles(terminal), "something is still drawn"
    terminal.send('(flow/step :wait :ok {:key "go"})\r')
    terminal.until("go waits for an answer")
    terminal.until("go? ")
    terminal.send("\x03")
    terminal.until("interrupted")
    terminal.until(PROMPT)
    terminal.send('(flow/step :wait :ok {:key "go"})\r')
    terminal.until("go? ")
    terminal.send("{:n 41}\r")
    terminal.until("{:n 41}\r\n")
    terminal.until(PROMPT)
    assert settles(terminal), "something is still drawn"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "child.edn").write_text(CHILD)
        # An editor that sends code calls its terminal so.
        terminal = Terminal(program, folder, "dumb")
        terminal.until(PROMPT)
        type_ahead(terminal)
        terminal.send("exit\r")
        assert terminal.ends() == 0
        terminal = Terminal(program, folder)
        terminal.until("Ctrl-D or `exit` leaves")
        terminal.until(PROMPT)
        type_ahead(terminal)
        answers(terminal)
        steps(terminal)
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
        terminal.until("recur))\r\n")
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
        # What is typed right after Ctrl-C arrives with it, and is evaluated.
        terminal.send("(half a line\x03(+ 40 2)\r(+ 50 3)\r")
        terminal.until("42\r\n")
        terminal.until("53\r\n")
        terminal.until(PROMPT)
        terminal.send("\x04")
        code = terminal.ends()
        assert code == 0, f"exit code {code}"
        for word in ["exit", "(exit)", "(quit)", ":quit"]:
            terminal = Terminal(program, folder)
            terminal.until(PROMPT)
            terminal.send(word + "\r")
            code = terminal.ends()
            assert code == 0, f"{word}: exit code {code}"
        history = (pathlib.Path(folder) / ".flowstone" / "history").read_text()
        assert "(interpose :x" in history, history
    print("a prompt: ok")


main()
