"""A session at the prompt through everything that it offers for flows: running, questions, debugging, forks, answers, runs as
text, watching, completion, hints, several lines, history, paste, type-ahead, resize, long output, and Ctrl-C at each moment.

The screens of the guide (`docs/guide/prompt.md`: the blocks that begin with a prompt) are compared with the screens of the
session that begin with the same line; ids and times are replaced by fixed ones. `--update` writes them again.

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
    """A terminal whose screens are kept by their first lines."""

    screens = {}

    def since(self, first):
        """Returns the lines of the screen from the last line on that begins with a text, up to the open prompt."""
        self.settle(0.3)
        lines = self.screen.text().rstrip().split("\n")
        start = max(idx for idx, line in enumerate(lines) if line.startswith(first))
        lines = lines[start:]
        if lines[-1].startswith(PROMPT.strip()):
            lines.pop()
        return lines

    def keep(self, first):
        """Keeps the screen from the last line on that begins with a text, up to the open prompt."""
        screen = plain("\n".join(self.since(first)).rstrip())
        self.screens[screen.split("\n")[0]] = screen

    def answers(self, line, *texts):
        """Types a line, and checks that each of the texts is in its answer."""
        self.enter(line)
        answer = "\n".join(self.since(PROMPT + line[:40])[1:])
        for text in texts:
            assert text in answer, f"{text!r} is not in the answer to {line}:\n{answer}"

    def leaves(self, keys, *texts):
        """Sends keys, waits for texts, and checks that Ctrl-C returns to a prompt that still works."""
        self.send(keys)
        for text in texts:
            self.until(text)
        self.settle(0.2)
        self.send("\x03")
        self.until_prompt()
        self.answers("[:still :here]", "[:still :here]")


TABLE = re.compile(r"(run|step|wait) {2,}\w+( {2,}\w+)+")
IDS = ["06h4k2m8q0c3z7x1", "06h4k2n5t8w2b6y9", "06h4k2p7r3d9f0v4", "06h4k2q1s5g8j2m6"]


def plain(text):
    """Returns a screen without what differs from run to run: ids, times, and the widths of columns that hold them."""
    lines, idx = text.split("\n"), 0
    while idx < len(lines):
        if TABLE.fullmatch(lines[idx]):
            end = next((at for at in range(idx, len(lines)) if lines[at].strip() == ""), len(lines))
            lines[idx:end] = laid_out(lines[idx:end])
        lines[idx] = fixed(lines[idx])
        idx += 1
    text = "\n".join(line.rstrip() for line in lines)
    found = list(dict.fromkeys(re.findall(r"\b0[0-9a-z]{15}\b", text)))
    for known, shown in zip(found, IDS, strict=False):
        text = text.replace(known, shown)
    return text


def fixed(text):
    """Returns a text with fixed times."""
    text = re.sub(r"\b(\d+ ms|\d+(\.\d+)? s)\b", "3 ms", text)
    text = re.sub(r"\b3 ms ago\b", "1 s ago", text)
    return re.sub(r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "2026-01-01T09:00:00Z", text)


def laid_out(lines):
    """Returns a table with fixed times. Notes below a row are not cells."""
    starts = [word.start() for word in re.finditer(r"\S+", lines[0])]
    ends = starts[1:] + [None]
    rows = [
        None if line.startswith("  ") else [fixed(line[start:end].rstrip()) for start, end in zip(starts, ends)]
        for line in lines
    ]
    widths = [max(len(row[idx]) for row in rows if row) for idx in range(len(starts))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() if row else line
        for row, line in zip(rows, lines)
    ]


def running(terminal):
    """A flow is loaded and run; its question is answered in place; the run is looked at."""
    terminal.enter('(flow/load "flows/refund.edn")')
    terminal.keep(PROMPT + "(flow/load")
    terminal.send("(flow/run :refund {:amount 200})\r")
    terminal.until("manager? ")
    terminal.send("approve\r")
    terminal.until("{:paid 180")
    terminal.until_prompt()
    terminal.keep(PROMPT + "(flow/run :refund")
    terminal.answers("(flow/runs)", "refund", "completed")
    terminal.keep(PROMPT + "(flow/runs)")
    terminal.answers("(map :status (flow/runs))", "(:completed)")
    terminal.answers("(flow/show)", "approval", "result")
    terminal.keep(PROMPT + "(flow/show)")
    # An empty line, or text that is not a value, is asked for again. Ctrl-C leaves the question open.
    terminal.send("(flow/run :refund {:amount 100})\r")
    terminal.until("manager? ")
    terminal.send("\r")
    terminal.until("manager? ")
    terminal.send("}\r")
    terminal.until("type a value")
    terminal.until("manager? ")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.answers("(count (flow/waits))", "1")
    terminal.send("(flow/resume)\r")
    terminal.until("manager? ")
    terminal.send("reject too much\r")
    terminal.until("{:paid 90, :decision :reject}")
    terminal.until_prompt()
    terminal.send('(flow/step :wait :ok {:key "go"})\r')
    terminal.until("go? ")
    terminal.send("{:n 7}\r")
    terminal.until("{:n 7}\r\n")
    terminal.until_prompt()
    terminal.keep(PROMPT + "(flow/step :wait")


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
    terminal.keep(PROMPT + "(flow/debug")
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
    terminal.keep(PROMPT + "(flow/fork")
    seen = terminal.enter("(flow/replay r)")
    assert "answered from the journal, the same end" in seen, seen
    seen = terminal.enter("(flow/diff r (:id (first (flow/runs))))")
    assert "third" in seen, seen
    seen = terminal.enter("(flow/locals r :third)")
    assert "{a 1, b 2}" in seen, seen
    seen = terminal.enter("(flow/next :refund {:amount 50})")
    assert "fee" in seen and ":function" in seen, seen
    terminal.keep(PROMPT + "(flow/next")


def operating(terminal):
    """What `flowstone runs` and `flowstone waits` do, by functions."""
    terminal.answers("(flow/flows)", "refund", "flows/steps.edn")
    terminal.answers("(flow/events r)", "third")
    terminal.answers("(flow/show r :second)", "second")
    terminal.answers("(def text (flow/export r))", "#'user/text")
    terminal.answers("(count (flow/import text :new-id true))", "1")
    terminal.answers("(flow/runs :limit 1 :flow :steps)", "steps")
    terminal.answers("(flow/runs :colour :red)", "E1550", ":colour")
    terminal.answers('(flow/show "w0nothing")', "w0nothing")
    for answer, decision in [
        ('(flow/approve "manager" :comment "fine")', ":approve"),
        ('(flow/reject "manager" :reason "too much")', ":reject"),
        ('(flow/answer "manager" {:action :later})', ":later"),
    ]:
        ask(terminal)
        terminal.answers("(flow/waits)", "manager")
        terminal.answers("(:state (flow/wait (:id (first (flow/waits)))))", "open")
        terminal.answers(answer, decision)
    ask(terminal)
    terminal.answers('(flow/cancel-wait "manager" :reason "no longer needed")', "cancelled")
    ask(terminal)
    terminal.answers('(flow/cancel (:id (first (flow/runs))) :reason "a mistake")', "cancel")
    terminal.answers("(:status (flow/show))", "cancelled")
    terminal.answers('(flow/signal "early" {:n 1})', ":kept")
    terminal.answers("(flow/waits :signals true)", "early")
    terminal.answers('(flow/step :wait :ok {:key "early"})', "{:n 1}")
    terminal.answers('(flow/event "shipped" {:n 2})', ":kept")


def ask(terminal):
    """Starts a run, and leaves its question open."""
    terminal.send("(flow/run :refund {:amount 30})\r")
    terminal.until("manager? ")
    terminal.send("\x03")
    terminal.until_prompt()


def save(path, text):
    """Replaces a file at once, as editors do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def watching(terminal, folder):
    """A watched flow runs again when its file changes; unchanged steps keep their results."""
    terminal.send("(flow/run :steps {} :watch true)\r")
    terminal.until("[1 2 20]")
    terminal.until("Ctrl-C ends it")
    time.sleep(0.3)
    save(folder / "flows" / "steps.edn", STEPS.replace("(* 10 x)", "(* 100 x)"))
    terminal.until("[1 2 200]")
    terminal.until("Ctrl-C ends it")
    # A text that is wrong is reported, and the next one is run.
    time.sleep(0.3)
    save(folder / "flows" / "steps.edn", STEPS.replace("(inc x)", "(inc y)"))
    terminal.until("`y` is not defined")
    time.sleep(0.3)
    save(folder / "flows" / "steps.edn", STEPS)
    terminal.until("[1 2 20]")
    terminal.until("Ctrl-C ends it")
    terminal.send("\x03")
    terminal.until_prompt()
    terminal.keep(PROMPT + "(flow/run :steps {} :watch")


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
    terminal.keep(PROMPT + "(let [a 1")
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
    terminal.settle(0.3)
    terminal.enter("(zipmap (map keyword [:one :two :three :four]) (range))")
    lines = terminal.since("{:one 0")
    assert lines == ["{:one 0, :two 1, :three 2, :four 3}"], lines
    terminal.enter("(zipmap (map #(keyword (str \"key\" %)) (range 6)) (range 6))")
    lines = terminal.since("{:key0 0")
    assert lines == ["{:key0 0", " :key1 1", " :key2 2", " :key3 3", " :key4 4", " :key5 5}"], lines
    terminal.resize(120)
    # The last entries come back, also one of several lines.
    terminal.send("\x1b[A\r")
    terminal.until("{:key0 0")
    terminal.until_prompt()
    terminal.answers("(dotimes [n 3] (println :line n))", ":line 0\n:line 1\n:line 2\nnil")
    terminal.enter("(vec (repeat 60 (apply str (repeat 60 \\x))))")
    cut = terminal.since(PROMPT + "(vec (repeat 60")
    assert len(cut) == 29 and cut[-1] == "… 33 more lines: (more), or (more :all)", cut
    terminal.answers("(more)", "… 6 more lines: (more), or (more :all)")
    terminal.enter("(more :all)")
    rest = terminal.since(PROMPT + "(more :all)")
    assert len(rest) == 7 and rest[-1].endswith("]"), rest
    terminal.answers("(more)", "there is no more")


def interrupts(terminal):
    """Ctrl-C at each moment: while code computes or prints, at questions, in a step, in each kind of entry."""
    terminal.leaves("(loop [] (recur))\r", "recur))", "\n")
    terminal.leaves("(run! println (range))\r", "500\r\n")
    terminal.leaves("(flow/step :sleep :nap {:seconds 600})\r", "sleeps")
    terminal.leaves('(flow/step :wait :ok {:key "own"})\r', "own? ")
    terminal.leaves('(flow/step :wait :ok {:key "own"})\r{:half', "own? ", "{:half")
    terminal.leaves("(flow/run :refund {:amount 7})\rappro", "manager? ", "appro")
    terminal.leaves("(flow/debug :steps)\rchange {:inp", "debug> ", "{:inp")
    terminal.leaves("(half a line", "line")
    terminal.leaves("(half\ra\rform", "form")
    terminal.leaves("(flow/ru\t\t", "flow/runs")
    terminal.leaves('"an open text', "text")
    terminal.leaves("\x1b[200~(pasted\nin part\x1b[201~", "part")
    terminal.leaves("")
    # A search of the history.
    terminal.leaves("\x12still", "still")
    # Several interrupts are one.
    terminal.send("(loop [] (recur))\r")
    terminal.until("\n")
    time.sleep(0.3)
    terminal.send("\x03\x03\x03")
    terminal.until("interrupted")
    terminal.until_prompt()
    terminal.answers("[:still :here]", "[:still :here]")
    # A question can be answered after others were left.
    terminal.send('(flow/step :wait :ok {:key "last"})\r')
    terminal.until("last? ")
    terminal.send("{:n 8}\r")
    terminal.until("{:n 8}\r\n")
    terminal.until_prompt()


def compare(update):
    """Compares each screen of the guide with that of the session, or writes it again."""
    text = GUIDE.read_text()
    shown = re.findall(rf"```text\n({PROMPT}.*?)\n```", text, re.S)
    assert shown, "the guide has no screens"
    for old in shown:
        first = old.split("\n")[0]
        screen = Session.screens.get(first)
        assert screen, f"no session makes the screen of the guide that begins with {first!r}: {list(Session.screens)}"
        if update:
            text = text.replace(f"```text\n{old}\n```", f"```text\n{screen}\n```")
        else:
            assert old == screen, f"the guide shows\n{old}\n--- but the screen is\n{screen}"
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
        # Wide enough that no column of a table is cut, whatever the times are.
        terminal = Session(program, name, columns=120)
        terminal.until_prompt()
        running(terminal)
        debugging(terminal)
        forking(terminal)
        operating(terminal)
        watching(terminal, folder)
        typing(terminal)
        interrupts(terminal)
        terminal.send("\x04")
        assert terminal.ends() == 0
    compare("--update" in sys.argv)
    print("a session with flows at a prompt: ok")


main()
