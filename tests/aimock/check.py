"""Runs one flow against a fake of the providers' interfaces, once for each family and dialect, and prints what came out.

Usage: check.py FOLDER_OF_NODE_MODULES PROGRAM [FAMILY ...]

Only the connection in flowstone.edn differs from family to family. What the fake does wrongly is left out, with the reason.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60
AT_ONCE = 4
KEY = "a-key-of-the-fake"
THOUGHT = "A seal is small."
STREAMED = "one two three four five six seven eight nine ten"


class Server:
    """The fake, on a free port. One that has a key answers nobody who does not show it."""

    def __init__(self, modules, key):
        env = {name: value for name, value in os.environ.items() if not name.startswith("AIMOCK_")}
        if key:
            env["AIMOCK_API_KEYS"] = key
        self.key = key
        self.process = subprocess.Popen(
            ["node", str(modules / "@copilotkit" / "aimock" / "dist" / "cli.js"), "-p", "0", "--validate-on-load"]
            + ["--strict", "-f", str(HERE / "fixtures.json")],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.address = ""
        for line in self.process.stdout:
            found = re.search(r"listening on (http://\S+)", line)
            if found:
                self.address = found.group(1)
                break
        assert self.address, "the fake did not start"
        # What it says is read, or it would wait for that one day.
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()

    def journal(self, family):
        request = urllib.request.Request(f"{self.address}/__aimock/journal?testId={family}")
        if self.key:
            request.add_header("Authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)

    def end(self):
        self.process.kill()
        self.process.wait()


class Wire:
    """Stands between a family and the fake, and keeps what goes to the fake, byte for byte."""

    def __init__(self, server):
        self.target = server.address.removeprefix("http://").split(":")
        self.sent = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.socket.accept()[0]
            except OSError:
                return
            far = socket.create_connection((self.target[0], int(self.target[1])))
            kept = bytearray()
            self.sent.append(kept)
            threading.Thread(target=self.carry, args=(near, far, kept), daemon=True).start()
            threading.Thread(target=self.carry, args=(far, near, bytearray()), daemon=True).start()

    def carry(self, start, end, kept):
        try:
            while piece := start.recv(65536):
                kept += piece
                end.sendall(piece)
        except OSError:
            pass
        for one in (start, end):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(self, text):
        """Returns head and body of the requests whose body has a text."""
        found = []
        for kept in self.sent:
            rest = bytes(kept)
            while rest:
                head, rest = rest.split(b"\r\n\r\n", 1)
                length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
                body, rest = rest[:length], rest[length:]
                if text in body.decode():
                    found.append((head.decode().lower(), json.loads(body)))
        return found


class Family:
    """A connection, and how the fake is to be asked over it."""

    def __init__(self, name, connection, path, header="authorization", env=None, **more):
        self.name, self.connection, self.path, self.header = name, connection, path, header
        self.env = env or {}
        self.sends_key = more.pop("sends_key", True)
        # What the limit on the answer's tokens is called.
        self.limit = more.pop("limit", "max_tokens")
        # Whether a schema is told in words only, since the interface has no place for it.
        self.tells_schema = more.pop("tells_schema", False)
        # What of its thoughts goes back to it.
        self.thoughts = more.pop("thoughts", {})
        self.is_blind = more.pop("is_blind", False)
        assert not more, more


CHAT = "/v1/chat/completions"
CONVERSE = "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/converse-stream"
BEDROCK = ':backend :bedrock :base-url "{}" :region "us-east-1" :model "anthropic.claude-sonnet-4-20250514-v1:0"'
AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

FAMILIES = [
    Family(
        "openai-chat", ':backend :openai-chat :base-url "{}/v1" :model "gpt-5.4"', CHAT, env={"OPENAI_API_KEY": KEY},
        limit="max_completion_tokens",
    ),
    Family(
        "openai-responses", ':backend :openai :family :openai :base-url "{}/v1" :model "gpt-5.4"', "/v1/responses",
        env={"OPENAI_API_KEY": KEY}, limit="max_output_tokens",
        thoughts={"summary": [{"type": "summary_text", "text": THOUGHT}]},
    ),
    Family(
        "anthropic", ':backend :anthropic :base-url "{}/v1" :model "claude-sonnet-5-5"', "/v1/messages", "x-api-key",
        env={"ANTHROPIC_API_KEY": KEY},
        thoughts={"thinking": THOUGHT, "signature": "c2lnbmVkIGJ5IHRoZSBmYWtl", "data": "aGlkZGVu"},
    ),
    Family(
        "anthropic-older", ':backend :anthropic :base-url "{}/v1" :model "claude-3-5-haiku-20241022"', "/v1/messages",
        "x-api-key", env={"ANTHROPIC_API_KEY": KEY},
    ),
    Family(
        "gemini", ':backend :google :base-url "{}/v1beta" :model "gemini-2.5-flash"',
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "x-goog-api-key", env={"GEMINI_API_KEY": KEY},
        limit="maxOutputTokens",
    ),
    Family("bedrock", BEDROCK, CONVERSE, env=AWS, sends_key=False, limit="maxTokens"),
    Family("bedrock-token", BEDROCK, CONVERSE, env={"AWS_BEARER_TOKEN_BEDROCK": KEY}, limit="maxTokens"),
    Family(
        "azure", ':backend :azure-openai :base-url "{}/openai/deployments/small" :model "gpt-5.4"',
        "/openai/deployments/small/chat/completions?api-version=2024-10-21", "api-key",
        env={"AZURE_OPENAI_API_KEY": KEY}, limit="max_completion_tokens",
    ),
    Family("ollama", ':backend :ollama :base-url "{}/v1" :model "llama3.2"', CHAT, None, sends_key=False, is_blind=True),
    Family(
        "openrouter", ':backend :openrouter :base-url "{}/api/v1" :model "openai/gpt-5.4"', "/api/v1/chat/completions",
        env={"OPENROUTER_API_KEY": KEY},
    ),
    Family("mistral", ':backend :mistral :base-url "{}/v1"', CHAT, env={"MISTRAL_API_KEY": KEY}),
    Family(
        "groq", ':backend :groq :base-url "{}/openai/v1" :model "llama-3.3-70b"', "/openai/v1/chat/completions",
        env={"GROQ_API_KEY": KEY}, limit="max_completion_tokens", is_blind=True,
    ),
    Family(
        "deepseek", ':backend :deepseek :base-url "{}/v1"', CHAT, env={"DEEPSEEK_API_KEY": KEY}, tells_schema=True,
        thoughts={"reasoning_content": THOUGHT}, is_blind=True,
    ),
]

# What the fake does otherwise than the provider: (family, case), and the reason.
LEFT_OUT = {
    ("mistral", "usage"): "it tells the usage only when asked, and Mistral tells it always and refuses to be asked",
}


class World:
    """The project of a family, and what the fake was asked by it."""

    def __init__(self, family, server, program, folder):
        self.family, self.server, self.program, self.folder = family, server, program, folder
        self.wire = Wire(server)
        shutil.copy(HERE / "flow.edn", folder / "flow.edn")
        connection = family.connection.replace("{}", self.wire.address)
        (folder / "flowstone.edn").write_text(
            "{:connections {:ai {" + connection + f' :headers {{"X-Test-Id" "{family.name}"}}' + "}}}\n"
        )
        known = {"PATH", "HOME", "TMPDIR", "LANG"}
        self.env = {name: value for name, value in os.environ.items() if name in known} | family.env

    def start(self, case):
        args = ["run", "flow.edn", "--json", "--input", json.dumps({"case": case})]
        return subprocess.Popen(
            [self.program] + args, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def result(self, case):
        ran = self.start(case)
        try:
            out, err = ran.communicate(timeout=SECONDS)
        finally:
            ran.kill()
        return finished(ran, out, err)

    def asked(self, case, times):
        """Returns the requests of a case, after a look at what all have in common."""
        entries = [it for it in self.server.journal(self.family.name) if f"case {case}" in json.dumps(it["body"])]
        assert len(entries) == times, f"{len(entries)} requests and not {times}: {json.dumps(entries)[:3000]}"
        for entry in entries:
            assert entry["method"] == "POST" and entry["path"] == self.family.path, entry["path"]
            assert entry["headers"]["content-type"] == "application/json", entry["headers"]
            header = self.family.header
            assert header is None or entry["headers"].get(header), f"no {header}: {entry['headers']}"
        self.proven(case)
        return entries

    def proven(self, case):
        """Looks at how the requests of a case show who asks."""
        for head, _ in self.wire.requests(f"case {case}"):
            if self.family.env is AWS:
                assert "\r\nauthorization: aws4-hmac-sha256 credential=akidexample/" in head, head
                assert "/us-east-1/bedrock/aws4_request" in head and "\r\nx-amz-date: " in head, head
            elif self.family.header == "authorization":
                assert f"\r\nauthorization: bearer {KEY}\r\n" in head + "\r\n", head
            elif self.family.header:
                assert f"\r\n{self.family.header}: {KEY}\r\n" in head + "\r\n", head
                assert "\r\nauthorization:" not in head, head
            else:
                assert "\r\nauthorization:" not in head, head

    def sent(self, case):
        """Returns the bodies of the requests of a case as they were sent."""
        return [body for _, body in self.wire.requests(f"case {case}")]


def finished(ran, out, err):
    try:
        answer = json.loads(out)
    except json.JSONDecodeError:
        raise AssertionError(f"{out.decode()}\n{err.decode()}") from None
    assert ran.returncode == 0 and answer["status"] == "completed", f"{json.dumps(answer)}\n{err.decode()}"
    return answer["result"]


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def said(entry):
    """Returns what the fake read in a request: roles and texts."""
    return [(it["role"], text_of(it.get("content"))) for it in entry["body"]["messages"]]


def is_system(role):
    return role in ("system", "developer")


def text(world):
    found = world.result("text")
    assert found["content"] == "Good morning, zażółć 🦀.", found
    assert found["finish-reason"] == "stop", found
    (entry,) = world.asked("text", 1)
    (system, user) = said(entry)
    assert is_system(system[0]) and system[1] == "Be brief." and user == ("user", "case text"), said(entry)
    assert entry["body"]["stream"] is True, entry["body"]
    (sent,) = world.sent("text")
    limits = list(values(sent, world.family.limit))
    assert limits == [300], f"{world.family.limit} is {limits}: {sent}"


def values(sent, name):
    """Returns all values of a key in a request, however deep."""
    inner = sent.items() if isinstance(sent, dict) else enumerate(sent) if isinstance(sent, list) else []
    for key, value in inner:
        if key == name:
            yield value
        yield from values(value, name)


def usage(world):
    found = world.result("usage")["usage"]
    assert (found["prompt-tokens"], found["completion-tokens"], found["total-tokens"]) == (21, 9, 30), found


def talk(world):
    assert world.result("talk")["content"] == "It is Ada."
    (entry,) = world.asked("talk", 1)
    expected = [("user", "Who is it?"), ("assistant", 'It is me: "Ada".'), ("user", "case talk, in zażółć 🦀")]
    assert said(entry) == expected, said(entry)


def image(world):
    if world.family.is_blind:
        # A model that sees nothing is not asked.
        out, _ = world.start("image").communicate(timeout=SECONDS)
        assert json.loads(out)["error"]["code"] == "E0821", out
        world.asked("image", 0)
        return
    assert world.result("image")["content"] == "A dot."
    (entry,) = world.asked("image", 1)
    assert said(entry)[-1] == ("user", "case image"), said(entry)
    # Its beginning, however it is wrapped.
    assert "iVBORw0KGgoAAAANSUhEUg" in json.dumps(world.sent("image")), world.sent("image")


def stream(world):
    """Pieces are told as they come, not at the end."""
    ran = world.start("stream")
    watch = threading.Timer(SECONDS, ran.kill)
    watch.start()
    seen, first, last = b"", None, None
    while chunk := os.read(ran.stderr.fileno(), 65536):
        seen += chunk
        if first is None and b"one" in seen:
            first = time.monotonic()
        if last is None and b"ten" in seen:
            last = time.monotonic()
    out = ran.stdout.read()
    ran.wait()
    watch.cancel()
    assert finished(ran, out, seen)["content"] == STREAMED
    assert STREAMED in seen.decode(), seen
    # There are ten pieces, 60 ms apart.
    assert last - first > 0.3, f"all of it within {last - first:.3f} s"
    world.asked("stream", 1)


def data(world):
    found = world.result("data")
    assert found["content"] == {"city": "Łódź", "days": [1, 2]}, found
    world.asked("data", 1)
    (sent,) = world.sent("data")
    if world.family.tells_schema:
        assert not schemas(sent, "city") and sent["response_format"] == {"type": "json_object"}, sent
        assert '"city"' in json.dumps(sent["messages"]).replace("\\", ""), sent
        return
    (schema,) = schemas(sent, "city")
    assert set(schema["required"]) == {"city", "days"}, schema
    assert schema["properties"]["days"]["type"].lower() == "array", schema


def schemas(sent, name):
    """Returns the schemas in a request that have a property."""
    inner = sent.values() if isinstance(sent, dict) else sent if isinstance(sent, list) else []
    found = [schema for one in inner for schema in schemas(one, name)]
    is_it = isinstance(sent, dict) and isinstance(sent.get("properties"), dict) and name in sent["properties"]
    return found + [sent] if is_it else found


def calls_of(entry):
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for message in entry["body"]["messages"] for call in message.get("tool_calls") or []
    ]


def answers_of(entry):
    """Returns what tools gave, in the order of the calls whose ids they name."""
    messages = entry["body"]["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or []]
    given = [(it["tool_call_id"], text_of(it["content"])) for it in messages if it["role"] == "tool"]
    assert len(set(ids)) == len(ids) and [name for name, _ in given] == ids, (ids, given)
    return [text for _, text in given]


def tool(world):
    found = world.result("tool")
    assert found["content"] == "It costs 120." and found["iterations"] == 2, found
    first, second = world.asked("tool", 2)
    (named,) = [it["function"] for it in first["body"]["tools"] if it["function"]["name"] == "shop_price"]
    assert named["description"] == "Returns the price of an item.", named
    (schema,) = schemas(world.sent("tool")[0], "item")
    assert schema["properties"]["item"]["enum"] == ["pump", "seal", "hose"] and schema["required"] == ["item"], schema
    assert calls_of(second) == [("shop_price", {"item": "pump"})], second["body"]
    (answer,) = answers_of(second)
    assert json.loads(answer) == {"item": "pump", "price": 120}, answer
    assert "Let me look." in [text for role, text in said(second) if role == "assistant"], said(second)


def parallel(world):
    found = world.result("parallel")
    assert found["content"] == "7, 120 and 31.", found
    _, second = world.asked("parallel", 2)
    assert [it["item"] for _, it in calls_of(second)] == ["seal", "pump", "hose"], second["body"]
    prices = [json.loads(it)["price"] for it in answers_of(second)]
    assert prices == [7, 120, 31], prices


def thought(world):
    """What a model thought, and signed, goes back as it came where the provider wants it."""
    assert world.result("thought")["content"] == "7."
    world.asked("thought", 2)
    _, second = world.sent("thought")
    for key, expected in world.family.thoughts.items():
        assert list(values(second, key)) == [expected], f"{key} is not {expected!r}: {second}"
    # Nobody else is shown it.
    assert world.family.thoughts or THOUGHT not in json.dumps(second), second
    assert "" not in values(second, "text"), f"a text of nothing: {second}"


def wrong_call(world):
    """A call that the tool cannot take goes back to the model, which makes another."""
    found = world.result("wrong-call")
    assert found["content"] == "7, after all.", found
    _, second, third = world.asked("wrong-call", 3)
    assert "moon" in answers_of(second)[0] and json.loads(answers_of(third)[1])["price"] == 7, third["body"]


def limited(world):
    assert world.result("limited")["content"] == "Now."
    first, second = world.asked("limited", 2)
    assert (first["response"]["status"], second["response"]["status"]) == (429, 200)
    waited = (second["timestamp"] - first["timestamp"]) / 1000
    assert 1.9 < waited < 30, f"Retry-After was 2 s, and the next request came after {waited} s"


def overloaded(world):
    assert world.result("overloaded")["content"] == "Here."
    first, second = world.asked("overloaded", 2)
    assert (first["response"]["status"], second["response"]["status"]) == (503, 200)


def failing(case, kind, code, times=1):
    def check(world):
        found = world.result(case)
        assert found == {"kind": kind, "code": code}, found
        if times:
            world.asked(case, times)

    return check


def broken(world):
    """A stream that breaks off is an error; the next attempt has the whole answer, and nothing of the first."""
    failed, whole = world.result("broken")
    assert failed == {"kind": "cut-off", "code": "E0807"}, failed
    assert whole == "one two three four five six seven", whole
    world.asked("broken", 3)


def late(world):
    began = time.monotonic()
    found = world.result("late")
    took = time.monotonic() - began
    assert found["kind"] == "timeout", found
    assert took < 10, f"the limit was 1 s, and it took {took:.1f} s"


CASES = {
    "text": text,
    "usage": usage,
    "talk": talk,
    "image": image,
    "stream": stream,
    "data": data,
    "tool": tool,
    "parallel": parallel,
    "thought": thought,
    "wrong-call": wrong_call,
    "limited": limited,
    "overloaded": overloaded,
    "key": failing("key", "unauthorized", "E0801"),
    "long": failing("long", "too-long", "E0803"),
    "broken": broken,
    "dropped": failing("dropped", "cut-off", "E0735"),
    "malformed": failing("malformed", "bad-response", "E0808"),
    "late": late,
}


def check(family, server, program):
    """Returns what became of each case: nothing, or what was wrong."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        world = World(family, server, program, pathlib.Path(name))
        for case, run in CASES.items():
            if (family.name, case) in LEFT_OUT:
                continue
            try:
                run(world)
                found[case] = ""
            except Exception:
                found[case] = traceback.format_exc(limit=-3)
    return found


def table(families, found):
    width = max(len(it.name) for it in families)
    print(" " * width, *CASES)
    for family in families:
        marks = []
        for case in CASES:
            problem = found[family.name].get(case)
            mark = "left out" if problem is None else "WRONG" if problem else "ok"
            marks.append(mark[: len(case)].ljust(len(case)))
        print(family.name.ljust(width), *marks)


def main():
    modules, program = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())
    families = [it for it in FAMILIES if it.name in sys.argv[3:] or not sys.argv[3:]]
    servers = []
    try:
        servers = [Server(modules, KEY), Server(modules, None)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            of = lambda family: check(family, servers[0 if family.sends_key else 1], program)
            found = {family.name: one for family, one in zip(families, pool.map(of, families))}
    finally:
        for server in servers:
            server.end()
    table(families, found)
    for (family, case), why in LEFT_OUT.items():
        print(f"left out: {case} of {family}: {why}")
    wrong = [(family, case, why) for family, one in found.items() for case, why in one.items() if why]
    for family, case, why in wrong:
        print(f"\n{case} of {family}:\n{why}")
    assert not wrong, f"{len(wrong)} of {len(families) * len(CASES)} cases are wrong"
    print("all families: ok")


main()
