"""Drives a running server with the published command line of the agents API, `soat`, unchanged.

Usage: check.py FOLDER_OF_NODE_MODULES PROGRAM
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "events"))

from model import Outside  # noqa: E402
from server import SECONDS, Server  # noqa: E402


class Client:
    """The command line, with a home folder of its own."""

    def __init__(self, modules, folder):
        self.command = ["node", str(pathlib.Path(modules) / "@soat" / "cli" / "bin" / "soat")]
        self.home = folder
        self.count = 0

    def use(self, server):
        self.env = {
            **os.environ,
            "HOME": str(self.home),
            "SOAT_BASE_URL": f"http://{server.host}",
            "SOAT_TOKEN": server.token,
            "NO_PROXY": "127.0.0.1",
        }

    def run(self, *args, **flags):
        """Runs a command. Returns its exit code, its JSON, and what it printed."""
        texts = []
        for name, value in flags.items():
            texts += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
        done = subprocess.run(
            [*self.command, *args, *texts], env=self.env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        self.count += 1
        printed = done.stdout.strip()
        try:
            read = json.loads(printed) if printed else None
        except json.JSONDecodeError:
            read = printed
        return done.returncode, read, done.stdout + done.stderr

    def __call__(self, *args, **flags):
        code, read, printed = self.run(*args, **flags)
        assert code == 0, (args, flags, printed)
        return read

    def refused(self, code, *args, **flags):
        status, _, printed = self.run(*args, **flags)
        assert status != 0 and code in printed, (args, flags, status, printed)


def user(text):
    return [{"role": "user", "content": text}]


def provider(soat, outside):
    secret = soat("create-secret", name="key", value="sk-model-key")
    made = soat(
        "create-ai-provider", name="fake", provider="openai", default_model="fake-1",
        base_url=f"{outside.url}/v1", secret_id=secret["id"],
    )
    assert "sk-model-key" not in json.dumps([secret, soat("list-secrets"), made])
    config = {"max_tokens": 77, "seed": 3}
    assert soat("update-ai-provider", ai_provider_id=made["id"], config=config)["config"] == config
    soat.refused("VALIDATION_FAILED", "update-ai-provider", ai_provider_id=made["id"], config={"organization": "o"})
    return made["id"]


def tools_and_agents(soat, outside, ai):
    """An agent that calls a tool of the server."""
    tool = soat(
        "create-tool", name="lookup", execute={"url": f"{outside.url}/lookup"}, preset_parameters={"tenant": "acme"},
        parameters={"type": "object", "properties": {"q": {"type": "string"}, "tenant": {"type": "string"}}},
    )
    agent = soat(
        "create-agent", ai_provider_id=ai, name="helper", tool_ids=[tool["id"]],
        instructions='call lookup {"q": "x"}\nsay found',
    )
    assert agent["max_steps"] == 20 and [it["id"] for it in soat("list-agents")] == [agent["id"]]
    done = soat("create-agent-generation", agent_id=agent["id"], messages=user("Look."), tool_context={"userId": "u1"})
    assert (done["status"], done["stop_reason"], done["output"]["content"]) == ("completed", "end_turn", "found"), done
    headers, body = outside.calls[-1]
    assert body == {"q": "x", "tenant": "acme"} and headers["x-soat-context-userid"] == "u1", (headers, body)
    assert "tenant" not in json.dumps(outside.turns[-1]["tools"])
    called = soat("call-tool", tool_id=tool["id"], input={"q": "y"})
    assert called["found"] == {"q": "y", "tenant": "acme"}, called
    changed = soat("update-agent", agent_id=agent["id"], instructions="say changed")
    assert changed["instructions"] == "say changed" and changed["name"] == "helper"
    output = {"type": "tool_output", "tool_id": tool["id"], "input": {"q": "z"}, "output_path": ".data.text"}
    soat("create-agent-generation", agent_id=agent["id"], messages=user(output))
    assert outside.turns[-1]["messages"][1] == {"role": "user", "content": "deep"}, outside.turns[-1]
    soat.refused("VALIDATION_FAILED", "create-agent-generation", agent_id=agent["id"], messages=user(output), trace_id="t")
    soat.refused("RESOURCE_NOT_FOUND", "get-agent", agent_id="agt_none")
    return agent["id"], done["trace_id"]


def client_tools(soat, ai, restart):
    """A generation that waits for outputs while the server is killed."""
    ask = soat("create-tool", name="ask", type="client")
    agent = soat("create-agent", ai_provider_id=ai, tool_ids=[ask["id"]], instructions='call ask {"userName": "a"}\nsay thanks')
    paused = soat("create-agent-generation", agent_id=agent["id"], messages=user("Ask."))
    assert paused["status"] == "requires_action", paused
    restart()
    [call] = paused["required_action"]["tool_calls"]
    assert call["args"] == {"userName": "a"} and call["id"] == call["tool_call_id"], call
    listed = soat("get-trace-generations", trace_id=paused["trace_id"])
    assert paused["id"] in json.dumps(listed), listed
    outputs = {"agent_id": agent["id"], "generation_id": paused["id"]}
    soat.refused("VALIDATION_FAILED", "submit-agent-tool-outputs", tool_outputs=[{"tool_call_id": "no"}], **outputs)
    given = [{"tool_call_id": call["id"], "output": {"Answer": 42}}]
    done = soat("submit-agent-tool-outputs", tool_outputs=given, **outputs)
    assert (done["status"], done["output"]["content"]) == ("completed", "thanks"), done
    soat.refused("CONFLICT", "submit-agent-tool-outputs", tool_outputs=given, **outputs)


def sessions(soat, agent, ai, restart):
    actor = soat("create-actor", name="Ada", external_id="user-7")
    session = soat("create-agent-session", agent_id=agent, actor_id=actor["id"], name="chat")
    at = {"agent_id": agent, "session_id": session["id"]}
    first = soat("add-session-message", message="Hello", idempotency_key="k", **at)
    assert first["content"] == "Hello", first
    soat("add-session-message", message="Again", idempotency_key="k", **at)
    restart()
    answered = soat("generate-session-response", **at)
    assert answered["message"]["content"] == "changed", answered
    listed = soat("list-agent-session-messages", **at)
    assert [(it["role"], it["content"]) for it in listed["data"]] == [("user", "Hello"), ("assistant", "changed")], listed
    soat("replace-session-tags", tier="gold", **at)
    merged = soat("merge-session-tags", region="eu", **at)
    assert merged == {"tier": "gold", "region": "eu"} == soat("get-session-tags", **at), merged
    assert soat("update-session", status="closed", **at)["status"] == "closed"
    soat.refused("CONFLICT", "add-session-message", message="Late", **at)
    single = soat("create-agent", ai_provider_id=ai, instructions="say hi", single_session_per_actor=True)
    soat("create-agent-session", agent_id=single["id"], actor_id=actor["id"])
    soat.refused("SINGLE_SESSION_CONFLICT", "create-agent-session", agent_id=single["id"], actor_id=actor["id"])


def knowledge(soat, outside, ai):
    memory = soat("create-memory", name="Preferences", tags=["user-7"])
    entry = {"memory_id": memory["id"], "content": "customer prefers email"}
    outcomes = [soat("create-memory-entry", **entry)["action"], soat("create-memory-entry", **entry)["action"]]
    more = soat("create-memory-entry", memory_id=memory["id"], content="customer prefers email always")
    outcomes += [more["action"], soat("create-memory-entry", memory_id=memory["id"], content="lives in Oslo")["action"]]
    assert outcomes == ["created", "skipped", "updated", "created"], outcomes
    assert len(soat("list-memory-entries", memory_id=memory["id"])) == 2
    document = soat("create-document", content="refund policy thirty days", path="/policies/refund.txt")
    reader = soat("create-tool", name="docs", type="soat", actions=["get-document"])
    output = {"type": "tool_output", "tool_id": reader["id"], "action": "get-document",
              "input": {"document_id": document["id"]}, "output_path": ".content"}
    plain = soat("create-agent", ai_provider_id=ai, instructions="say read")
    soat("create-agent-generation", agent_id=plain["id"], messages=user(output))
    assert outside.turns[-1]["messages"][1]["content"] == "refund policy thirty days", outside.turns[-1]
    soat("merge-document-tags", document_id=document["id"], team="care")
    assert soat("get-document-tags", document_id=document["id"]) == {"team": "care"}
    found = soat("search-knowledge", query="refund policy days", memory_ids=[memory["id"]], document_paths=["/policies/"])
    assert [it["source_type"] for it in found["results"]] == ["document"], found
    config = {"memory_ids": [memory["id"]], "document_paths": ["/policies/"], "write_memory_id": memory["id"]}
    script = 'call write_memory {"content": "asked about invoices"}\nsay noted'
    agent = soat("create-agent", ai_provider_id=ai, instructions=script, knowledge_config=config)
    done = soat("create-agent-generation", agent_id=agent["id"], messages=user("refund policy days"))
    assert done["output"]["content"] == "noted", done
    known = outside.turns[-1]["messages"][1]["content"]
    assert "[Document: /policies/refund.txt]\nrefund policy thirty days" in known, known
    entries = [it["content"] for it in soat("list-memory-entries", memory_id=memory["id"])]
    assert "asked about invoices" in entries, entries
    soat("delete-document", document_id=document["id"])


def check(modules, program):
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        folder = home / "project"
        folder.mkdir()
        outside = Outside()
        embedder = f':search {{:embedder {{:base-url "{outside.url}/v1" :model "words"}}}}'
        (folder / "flowstone.edn").write_text(f'{{:allow {{:net ["127.0.0.1"]}} {embedder}}}')
        server = Server(program, folder)
        soat = Client(modules, home)
        soat.use(server)

        def restart():
            nonlocal server
            server.kill()
            server = Server(program, folder)
            soat.use(server)

        try:
            ai = provider(soat, outside)
            agent, trace = tools_and_agents(soat, outside, ai)
            client_tools(soat, ai, restart)
            tree = soat("get-trace-tree", trace_id=trace)
            assert tree["id"] == trace and tree["children"] == [], tree
            assert soat("get-trace", trace_id=trace)["steps"], trace
            sessions(soat, agent, ai, restart)
            knowledge(soat, outside, ai)
        finally:
            server.stop()
            outside.stop()
    print(f"{soat.count} commands of the published client: agents, tools, outputs over a kill, sessions, traces, knowledge, tags")


if __name__ == "__main__":
    check(*sys.argv[1:])
