"""A session at the prompt through everything that it offers for flows: running, questions, debugging, forks, watching,
completion, hints, several lines, paste, type-ahead, resize, long output, and Ctrl-C at each moment.

The screens of the guide (`docs/guide/prompt.md`, blocks that begin with `<!-- screen: NAME -->`) are compared with the screens
of the session, without ids and times. `--update` writes them again.

usage: tests/prompt/session.py PROGRAM [--update]
"""

import pathlib
import re
import sys
import tempfile
import time

from terminal import PROMPT, Terminal

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "prompt.md"

REFUND = """{:slug :refund
 :invocations {:default {:inputs [{:name :amount :type :number :required true}]}}
 :flow '(let [amount (:amount (flow/input))
              fee (flow/step :function :fee {:code '(fn [{:keys [amount]}] (quot amount 10))
                                             :input {:amount amount}})
              answer (flow/step :wait :approval {:key "manager" :title "May this be paid back?"
                                                 :data {:amount amount :fee fee}})]
          {:paid (- amount fee) :decision (:action answer)})}
"""

STEPS = """{:slug :steps
 :flow '(let [a (flow/step :function :first {:code '(fn [{:keys [x]}] x) :input {:x 1}})
              b (flow/step :function :second {:code '(fn [{:keys [x]}] (inc x)) :input {:x a}})]
          [a b (flow/step :function :third {:code '(fn [{:keys [x]}] (* 10 x)) :input {:x b}})])}
"""


class Session(Terminal):
    """A terminal whose screens are kept by name."""

    screens = {}

    def keep(self, name, first):
        """Keeps the screen from the last line on that begins with a text, up to the open prompt."""
        self.settle(0.3)
        lines = self.screen.text().rstrip().split("\n")
        start = max(idx for idx, line in enumerate(lines) if line.startswith(first))
        lines = lines[start:]
        if lines[-1].startswith(PROMPT.strip()):
            lines.pop()
        self.screens[name] = plain("\n".join(lines).rstrip())


def plain(text):
    """Returns a screen without what differs from run to run."""
    text = re.sub(r"\bw0[0-9a-z]{14}\b", "w06h4k2m8q0c3z7x", text)
    text = re.sub(r"\bw0[0-9a-z]{14}", "w06h4k2m8q0c3z7x", text)
    text = re.sub(r"\b\d+ ms\b", "3 ms", text)
    text = re.sub(r"\b\d+\.\d s\b", "3 ms", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "2026-01-01T09:00:00Z", text)
    text = re.sub(r"\bjust now\b|\b\d+ s ago\b", "now", text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def running(terminal):
    """A flow is loaded and run; its question is answered in place; the run is looked at."""
    terminal.enter('(flow/load "flows/refund.edn")')
    terminal.keep("load", PROMPT + "(flow/load")
    terminal.send("(flow/run :refund {:amount 200})\r")
    terminal.until("manager? ")
    # An answer that does not fit is asked for again, an empty one is no answer.
    terminal.send("(((\r\x03")
    terminal.until_prompt()
    seen = terminal.enter("(count (flow/waits))")
    assert "1" in seen, seen
    terminal.send("(flow/resume)\r")
    terminal.until("manager? ")
    terminal.send("approve\r")
    terminal.until("{:paid 180")
    terminal.until_prompt()
    terminal.keep("run", PROMPT + "(flow/resume")
    seen = terminal.enter("(flow/runs)")
    assert "refund" in seen and "completed" in seen, seen
    terminal.keep("runs", PROMPT + "(flow/runs)")
    seen = terminal.enter("(map :status (flow/runs))")
    assert "(:completed)" in seen, seen
    seen = terminal.enter("(flow/show)")
    assert "approval" in seen and "result" in seen, seen
    terminal.keep("show", PROMPT + "(flow/show)")


def debugging(terminal):
    """Each step is stopped at: looked at, given, changed, gone back to, left."""
    terminal.send("(flow/debug :steps)\r")
    terminal.until("debug> ")
    terminal.send("help\r")
    terminal.until("leave")
    terminal.until("debug> ")
    terminal.send("\r")
    terminal.until("step 2: second")
    terminal.until("debug> ")
    terminal.send("locals\r")
    terminal.until("a = 1")
    terminal.until("debug> ")
    terminal.send("(+ a 41)\r")
    terminal.until("42")
    terminal.until("debug> ")
    terminal.send("change {:input {:x 6}}\r")
    terminal.until("{:x 6}")
    terminal.until("debug> ")
    terminal.send("go\r")
    terminal.until("step 3: third")
    terminal.until("debug> ")
    terminal.send("use 70\r")
    terminal.until("[1 7 70]")
    terminal.until_prompt()
    terminal.keep("debug", PROMPT + "(flow/debug")
    terminal.send("(flow/debug :steps)\r")
    for _ in range(2):
        terminal.until("debug> ")
        terminal.send("skip\r")
    terminal.until("step 3: third")
    terminal.until("debug> ")
    terminal.send("show\r")
    terminal.until("second")
    terminal.until("debug> ")
    terminal.send("back second\r")
    terminal.until("replaces")
    terminal.until("debug> ")
    terminal.send("use 5\r")
    terminal.until("debug> ")
    terminal.send("run\r")
    terminal.until("[nil 5 50]")
    terminal.until_prompt()
    # Ctrl-C at a stop leaves the run, which can be resumed.
    terminal.send("(flow/debug :steps)\r")
    terminal.until("debug> ")
    terminal.send("\x03")
    terminal.until("(flow/resume")
    terminal.until_prompt()
    seen = terminal.enter("(flow/resume)")
    assert "[1 2 20]" in seen, seen


def forking(terminal):
    """Forks, replays, differences, locals, and what would be asked next."""
    terminal.enter("(def r (:id (first (flow/runs :flow :steps :status :completed))))")
    seen = terminal.enter('(flow/fork r :at :third :set {"second" 9})')
    assert "[1 9 90]" in seen, seen
    terminal.keep("fork", PROMPT + "(flow/fork")
    seen = terminal.enter("(flow/replay r)")
    assert "answered from the journal, the same end" in seen, seen
    seen = terminal.enter("(flow/diff r (:id (first (flow/runs))))")
    assert "third" in seen, seen
    seen = terminal.enter("(flow/locals r :third)")
    assert "{a 1, b 2}" in seen, seen
    seen = terminal.enter("(flow/next :refund {:amount 50})")
    assert "fee" in seen and ":function" in seen, seen
    terminal.keep("next", PROMPT + "(flow/next")


def watching(terminal, folder):
    """A watched flow runs again when its file changes; unchanged steps keep their results."""
    terminal.send("(flow/run :steps {} :watch true)\r")
    terminal.until("[1 2 20]")
    terminal.until("Ctrl-C ends it")
    time.sleep(0.3)
    (folder / "flows" / "steps.edn").write_text(STEPS.replace("(* 10 x)", "(* 100 x)"))
    terminal.until("[1 2 200]")
    terminal.until("Ctrl-C ends it")
    # A text that is wrong is reported, and the next one is run.
    time.sleep(0.3)
    (folder / "flows" / "steps.edn").write_text(STEPS.replace("(inc x)", "(inc y)"))
    terminal.until("`y` is not defined")
    time.sleep(0.3)
    (folder / "flows" / "steps.edn").write_text(STEPS)
    terminal.until("[1 2 20]")
    terminal.until("Ctrl-C ends it")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.keep("watch", PROMPT + "(flow/run :steps {} :watch")


def typing(terminal):
    """Completion, hints, several lines, paste, type-ahead, resize, long output."""
    terminal.send("(flow/ru")
    terminal.send("\t\t")
    terminal.until("flow/runs")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.send("(flow/run :ref\t")
    terminal.until(":refund")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.send("(flow/step :htt\t :page {:metho\t")
    terminal.until("{:method")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.send("(let [alphorn 40] (+ alpho\t 2))\r")
    terminal.until("42\r\n")
    terminal.until_prompt()
    terminal.send("(interpose ")
    terminal.until("sep")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.send("(let [a 1\rb 2]\r(+ a b))\r")
    terminal.until("3\r\n")
    terminal.until_prompt()
    terminal.keep("lines", PROMPT + "(let [a 1")
    # A bracketed paste of several forms, and lines that are typed while one is evaluated.
    terminal.send("\x1b[200~(def p 1)\n(def q\n  (+ p 1))\n\x1b[201~\r")
    terminal.until("#'user/q")
    terminal.until_prompt()
    terminal.send("(do (Thread/sleep 600) :slept)\r")
    time.sleep(0.2)
    terminal.send("(str :typed\r:ahead)\r")
    terminal.until('":typed:ahead"')
    terminal.until_prompt()
    terminal.resize(40)
    seen = terminal.enter("(zipmap (map #(keyword (str \"key\" %)) (range 6)) (range 6))")
    widest = max(len(line) for line in seen.split("\r\n")[1:])
    assert widest <= 40, seen
    terminal.resize(90)
    seen = terminal.enter("(dotimes [n 3] (println :line n))")
    assert ":line 2" in seen, seen
    seen = terminal.enter("(vec (repeat 60 (apply str (repeat 60 \\x))))")
    assert "more lines: (more)" in seen and seen.count("xxx\"") < 40, seen
    seen = terminal.enter("(more)")
    assert "more lines" in seen, seen
    seen = terminal.enter("(more :all)")
    assert seen.rstrip().endswith("]"), seen


def interrupts(terminal):
    """Ctrl-C while code computes, while a step sleeps, while a question is open, with half a line."""
    terminal.send("(loop [] (recur))\r")
    time.sleep(0.3)
    terminal.send("\x03")
    terminal.until("interrupted")
    terminal.until_prompt()
    terminal.send("(flow/step :sleep :nap {:seconds 600})\r")
    terminal.until("sleeps")
    terminal.send("\x03")
    terminal.until("interrupted")
    terminal.until_prompt()
    terminal.send('(flow/step :wait :ok {:key "own"})\r')
    terminal.until("own? ")
    terminal.send("\x03")
    terminal.until("interrupted")
    terminal.until_prompt()
    terminal.send('(flow/step :wait :ok {:key "own2"})\r')
    terminal.until("own2? ")
    terminal.send("{:n 7}\r")
    terminal.until("{:n 7}\r\n")
    terminal.until_prompt()
    terminal.send("(half a line\x03")
    terminal.until_prompt()
    seen = terminal.enter("[:still :here]")
    assert "[:still :here]" in seen, seen


def blocks(text):
    """Returns the screens in the guide, by name."""
    found = re.findall(r"<!-- screen: (\w+) -->\n```text\n(.*?)\n```", text, re.S)
    return dict(found)


def compare(update):
    text = GUIDE.read_text()
    shown = blocks(text)
    for name, screen in Session.screens.items():
        if update:
            pattern = rf"(<!-- screen: {name} -->\n```text\n).*?(\n```)"
            text = re.sub(pattern, lambda it: it.group(1) + screen + it.group(2), text, flags=re.S)
        elif name in shown:
            assert shown[name] == screen, f"the screen {name} of the guide is\n{shown[name]}\n--- but it is\n{screen}"
    unknown = set(shown) - set(Session.screens)
    assert not unknown, f"screens that no session makes: {unknown}"
    if update:
        GUIDE.write_text(text)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "flows").mkdir()
        (folder / "flowstone.edn").write_text("{}")
        (folder / "flows" / "refund.edn").write_text(REFUND)
        (folder / "flows" / "steps.edn").write_text(STEPS)
        terminal = Session(program, name)
        terminal.until_prompt()
        running(terminal)
        debugging(terminal)
        forking(terminal)
        watching(terminal, folder)
        typing(terminal)
        interrupts(terminal)
        terminal.send("\x04")
        assert terminal.ends() == 0
    compare("--update" in sys.argv)
    print("a session with flows at a prompt: ok")


main()
