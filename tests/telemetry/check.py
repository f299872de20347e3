"""Sends the spans of runs to oteltap, a receiver of OTLP that is not ours.

Usage: check.py PROGRAM, with a Python that has oteltap
"""

import asyncio
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

SECONDS = 60
FLOW = """{:slug :tapped
  :flow '(do (flow/step :kv :count {:operation :increment :key "n"})
             (try (flow/step :http :tell {:url "http://127.0.0.1:PORT/x?key=hunter2" :retry {:max-attempts 2 :base-ms 1 :jitter 0}})
                  (catch Exception e nil))
             {:done true})}"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def attributes(span):
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}


async def collect(receiver, until):
    spans = []
    async for span in receiver.stream_traces():
        spans.append(span)
        if span.name == until:
            return spans
    raise AssertionError(f"{until} is missing: {[span.name for span in spans]}")


async def check(program, folder, compression):
    port = free_port()
    settings = OtelTapHttpProtobufReceiverSettings(http_port=port)
    async with OtelTapHttpProtobufReceiver(settings) as receiver:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
        }
        run = [program, "run", "flow.edn", "--quiet", "--new"]
        done = await asyncio.to_thread(
            subprocess.run, run, cwd=folder, env=environment, timeout=SECONDS, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        spans = await asyncio.wait_for(collect(receiver, "invoke_workflow tapped"), SECONDS)
    names = sorted(span.name for span in spans)
    expected = ["attempt 1", "attempt 2", "invoke_workflow tapped", "step count", "step tell"]
    assert names == expected, names
    by_name = {span.name: span for span in spans}
    root = by_name["invoke_workflow tapped"]
    assert len({span.trace_id for span in spans}) == 1 and len({span.span_id for span in spans}) == 5
    assert not root.parent_span_id and len(root.trace_id) == 16
    tell = by_name["step tell"]
    assert tell.parent_span_id == root.span_id and tell.status.code == 2
    assert by_name["attempt 1"].parent_span_id == tell.span_id
    assert by_name["attempt 1"].kind == 3
    assert attributes(root)["flowstone.status"] == "completed"
    assert attributes(tell)["flowstone.step.attempts"] == 2
    assert root.start_time_unix_nano <= tell.start_time_unix_nano <= tell.end_time_unix_nano <= root.end_time_unix_nano
    assert "hunter2" not in "".join(str(span) for span in spans)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    for compression in ["none", "gzip"]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "flow.edn").write_text(FLOW.replace("PORT", str(free_port())))
            (folder / "flowstone.edn").write_text('{:allow {:net ["127.0.0.1"]}}')
            asyncio.run(check(program, folder, compression))
    print("oteltap: the spans of runs arrive, also compressed")


main()
