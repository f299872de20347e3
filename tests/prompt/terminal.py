"""A program on a terminal of its own, and the screen that a person would see."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

SECONDS = 60
PROMPT = "user=> "


class Screen:
    """What a terminal shows after what a program wrote: all lines, also those above its window."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [[]]
        self.row = 0
        self.column = 0

    def write(self, text):
        at = 0
        while at < len(text):
            escape = re.compile(r"\x1b\[([0-9;?]*)([a-zA-Z])").match(text, at)
            if escape:
                self.control(escape.group(1), escape.group(2))
                at = escape.end()
                continue
            char, at = text[at], at + 1
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self.down(1)
            elif char == "\b":
                self.column = max(0, self.column - 1)
            elif char == "\x07":
                pass
            else:
                if self.column >= self.columns:
                    self.down(1)
                    self.column = 0
                line = self.lines[self.row]
                line.extend(" " * (self.column + 1 - len(line)))
                line[self.column] = char
                self.column += 1

    def down(self, count):
        self.row += count
        while self.row >= len(self.lines):
            self.lines.append([])

    def control(self, numbers, kind):
        number = int(numbers) if numbers.isdigit() else None
        count = number or 1
        line = self.lines[self.row]
        if kind == "A":
            self.row = max(0, self.row - count)
        elif kind == "B":
            self.down(count)
        elif kind == "C":
            self.column = min(self.columns - 1, self.column + count)
        elif kind == "D":
            self.column = max(0, self.column - count)
        elif kind == "G":
            self.column = count - 1
        elif kind == "K":
            if number == 2:
                line.clear()
            elif number == 1:
                line[: self.column] = " " * self.column
            else:
                del line[self.column :]
        elif kind == "J" and number in (None, 0):
            del line[self.column :]
            del self.lines[self.row + 1 :]

    def current(self):
        """Returns the line of the cursor."""
        return "".join(self.lines[self.row]).rstrip()

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


class Terminal:
    def __init__(self, program, folder, kind="xterm", args=(), columns=90, rows=30):
        self.seen = ""
        self.screen = Screen(columns)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM=kind, HOME=folder)
            os.execv(program, ["flowstone", "repl", "--color", "never", *args])
        self.resize(columns, rows)

    def resize(self, columns, rows=30):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.columns = columns

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def enter(self, line):
        """Types a line, and waits for the prompt after its answer."""
        self.send(line)
        # Before the line is drawn, the prompt on the screen is still the one that it is typed at.
        self.settle(0.1)
        self.send("\r")
        return self.until_prompt()

    def until_prompt(self, prompt=PROMPT):
        """Reads until the cursor is behind a prompt with nothing typed. A prompt and the line behind it are drawn several times."""
        end = time.time() + SECONDS
        self.settle(0.15)
        while self.screen.current() != prompt.rstrip():
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.time()))
            assert ready, f"no prompt after {self.seen!r}"
            self.settle(0.15)
        before, self.seen = self.seen, ""
        return before

    def settle(self, seconds):
        """Reads until nothing is written for a time, or for two seconds if something always is."""
        end = time.time() + 2
        while time.time() < end:
            ready, _, _ = select.select([self.fd], [], [], seconds)
            if not ready:
                return
            self.read()

    def read(self):
        text = os.read(self.fd, 65536).decode(errors="replace")
        self.screen.write(text)
        self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)

    def until(self, text):
        """Reads up to and including a text; what came before it is gone then."""
        end = time.time() + SECONDS
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.time()))
            assert ready, f"{text!r} does not come after {self.seen!r}"
            self.read()
        before, self.seen = self.seen.split(text, 1)
        return before

    def ends(self):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
