"""Sends the spans of runs to oteltap, a receiver of OTLP that is not ours.

Usage: check.py PROGRAM, with a Python that has oteltap
"""

import asyncio
import gzip
import http.server
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings

SECONDS = 60
FLOW = """{:slug :tapped
  :flow '(do (flow/step :kv :count {:operation :increment :key "n"})
             (try (flow/step :http :tell {:url "http://127.0.0.1:PORT/x?key=hunter2" :retry {:max-attempts 2 :backoff-ms 1 :jitter 0}})
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


def run(program, folder, port, compression):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": compression,
    }
    command = [program, "run", "flow.edn", "--quiet", "--new"]
    done = subprocess.run(command, cwd=folder, env=environment, timeout=SECONDS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def tapped(program, folder):
    port = free_port()
    settings = OtelTapHttpProtobufReceiverSettings(http_port=port)
    async with OtelTapHttpProtobufReceiver(settings) as receiver:
        # It keeps nothing for those who ask later.
        collecting = asyncio.create_task(collect(receiver, "invoke_workflow tapped"))
        await asyncio.sleep(0)
        await asyncio.to_thread(run, program, folder, port, "none")
        return await asyncio.wait_for(collecting, SECONDS)


def unzipped(program, folder):
    """Oteltap does not take compressed spans, so these are read with the messages of OTLP alone."""
    spans = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.headers["Content-Encoding"] == "gzip"
            body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run(program, folder, server.server_port, "gzip")
        server.shutdown()
    return spans


def check(spans):
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
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "flow.edn").write_text(FLOW.replace("PORT", str(free_port())))
        (folder / "flowstone.edn").write_text('{:allow {:net ["127.0.0.1"]}}')
        check(asyncio.run(tapped(program, folder)))
        check(unzipped(program, folder))
    print("oteltap: the spans of runs arrive, also compressed")


main()
