"""Has a client of others, the EventSource of npm, read the feeds of runs while connections and servers break off.

Usage: check.py FOLDER_OF_NODE_MODULES PROGRAM
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from cuts import Cuts
from server import SECONDS, Counter, Server

HERE = pathlib.Path(__file__).resolve().parent
# An EventSource gets the events that it was told the names of; these are the names.
GUIDE = HERE.parent.parent / "docs" / "guide" / "runs.md"
# The steps with an effect outside of the run whose reader is cut off, and how many events there are from one to the next.
STEPS = 45
BETWEEN = 5
# Runs, and so readers, effects of each run, and how many of all effects are performed when the server is killed.
RUNS = 50
EFFECTS = 5
AT_KILL = 120
FLOW = """{:slug :SLUG
 :flow '(doseq [number (range COUNT)]
          (flow/step :http :tell {:url "URL" :method :post :json {:number number} :on-doubt :retry})
          (flow/step :kv :count {:operation :increment :key "done"})
          (flow/step :sleep :pause {:duration "PAUSEms"}))}"""


def names():
    """Returns the names of events that the guide lists."""
    rows = GUIDE.read_text().partition("| event | fields |")[2].partition("\n\n")[0]
    firsts = [row.split("|")[1] for row in rows.splitlines() if row.startswith("| `")]
    return [name for first in firsts for name in re.findall(r"`([^`]+)`", first)]


def project(folder, slug, count, pause, url):
    (folder / "flows").mkdir()
    (folder / "flowstone.edn").write_text('{:allow {:net ["127.0.0.1"]}}')
    text = FLOW.replace("SLUG", slug).replace("COUNT", str(count)).replace("PAUSE", str(pause)).replace("URL", url)
    (folder / "flows" / f"{slug}.edn").write_text(text)


class Readers:
    """The client, as a process that follows all these addresses."""

    def __init__(self, modules, addresses):
        command = ["node", str(HERE / "read.mjs"), modules, ",".join(names()), *addresses]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.total = 0
        self.found = {}
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.total = said.get("total", self.total)
            if "index" in said:
                self.found[said["index"]] = said

    def result(self):
        """Waits until every stream was closed for good, and returns what each had."""
        try:
            assert self.process.wait(timeout=2 * SECONDS) == 0
        finally:
            self.process.kill()
        self.thread.join(SECONDS)
        return [self.found[index] for index in sorted(self.found)]


def each_once(events, last="run.completed"):
    """Checks that the numbers are 1 to N in order, and that the last event is the end. Returns N."""
    numbers = [id for id, _, _ in events]
    assert numbers == list(range(1, len(events) + 1)), numbers
    assert numbers == [seq for _, seq, _ in events], events
    assert events[-1][2] == last, events[-1]
    return len(events)


def cut_at_every_event(modules, program):
    """A reader that is cut off after every event, while the run goes on, and one that is cut in the middle of every event."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cuts = None
        # Each effect waits until the reader has the event of its start, so what comes next is news and not replay. Before
        # that there are two of the run.
        counter = Counter(lambda number: cuts.wait(2 + BETWEEN * (number - 1) + 1))
        project(folder, "cut", STEPS, 1, counter.url)
        server = Server(program, folder)
        try:
            cuts = Cuts(server, in_the_middle=False)
            address = server.events(server.start("cut"))
            live = Readers(modules, [cuts.base + address])
            [found] = live.result()
            count = each_once(found["events"])
            assert count >= 200, count
            of_reader(cuts, found, count)
            again = Cuts(server, in_the_middle=True)
            [found] = Readers(modules, [again.base + address]).result()
            assert each_once(found["events"]) == count
            of_reader(again, found, count)
        finally:
            server.stop()
            counter.stop()
    print(f"cut off after and within each of {count} events: each event once, in order, and 204 at the end")


def of_reader(cuts, found, count):
    """Checks the connections: each but the last brought one event, and the one after the end was answered with 204."""
    *streams, last = cuts.connections
    assert found["code"] == 204 and last == [str(count), 204, []], (found["code"], last)
    assert all(status == 200 for _, status, _ in streams), streams
    given = [numbers for _, _, numbers in streams if numbers]
    assert given == [[number] for number in range(1, count + 1)], given
    assert len(streams) >= count, len(streams)
    cuts.stop()


def killed_in_the_middle(modules, program):
    """`kill -9` of the server while runs and their readers are at work, and another one on the same port."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        read, killed, readers = threading.Event(), threading.Event(), None

        def before(number):
            # First all readers come. Later nobody is answered, so that effects are under way when the server is killed.
            read.wait(SECONDS)
            if number >= AT_KILL:
                killed.wait(SECONDS)

        counter = Counter(before)
        project(folder, "kill", EFFECTS, 300, counter.url)
        server = Server(program, folder)
        try:
            runs = [server.start("kill") for _ in range(RUNS)]
            readers = Readers(modules, [f"http://{server.host}{server.events(run)}" for run in runs])
            until(lambda: readers.total >= 2 * RUNS)
            read.set()
            until(lambda: len(counter.performed) >= AT_KILL)
            server.kill()
            at_kill = (readers.total, len(counter.performed))
            killed.set()
            assert at_kill[0] > RUNS and at_kill[1] < RUNS * EFFECTS, f"not in the middle: {at_kill}"
            server = Server(program, folder, port=server.port)
            found = readers.result()
            assert len(found) == RUNS, len(found)
            for one in found:
                each_once(one["events"])
                assert one["code"] == 204, one["code"]
            effects(server, counter, runs)
            assert counter.repeated > 0, "no effect was under way"
            cut = sum(one["connections"] > 1 for one in found)
            assert cut > 0, "no reader was cut off"
        finally:
            read.set()
            killed.set()
            if readers:
                readers.process.kill()
            server.stop()
            counter.stop()
    print(
        f"a server killed after {at_kill[0]} events and {at_kill[1]} of {RUNS * EFFECTS} effects, with {cut} of {RUNS} readers"
        f" cut off: each has each event once, in order; all runs are completed; each effect is performed once"
        f" ({counter.repeated} requests came again, with the same key)"
    )


def effects(server, counter, runs):
    """Checks that all runs are completed, with each effect outside and each step of our own store once."""
    counts = []
    for run in runs:
        status, shown = server.call("GET", f"/api/v1/runs/{run}?full=true")
        assert (status, shown["status"]) == (200, "completed"), (status, shown)
        kinds = [step["type"] for step in shown["steps"]]
        assert kinds.count("http") == kinds.count("kv") == EFFECTS, kinds
        counts += [step["result"]["value"] for step in shown["steps"] if step["type"] == "kv"]
    # A counter of our own store: a step that was missing or performed twice would show.
    assert sorted(counts) == list(range(1, RUNS * EFFECTS + 1)), sorted(counts)
    assert len(counter.performed) == RUNS * EFFECTS, len(counter.performed)
    # One request of each run may have been under way.
    assert counter.repeated <= RUNS, counter.repeated


def until(is_so):
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < SECONDS, "it takes too long"
        time.sleep(0.005)


def main():
    modules, program = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    cut_at_every_event(modules, program)
    killed_in_the_middle(modules, program)


main()
