"""Serves a small model and has flows/summarize.edn describe one note with it.

Nothing is expected of what the model says; that it says it in the shape of the schema, streamed, is the test.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import xllamacpp

SECONDS = 1200


def serve(model):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 2048
    params.n_parallel = 1
    params.port = 0
    return xllamacpp.Server(params)


def project(folder, address):
    shutil.copytree("flows", folder / "flows")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "water.md").write_text("# Water\n\nThe pump needs a new seal.\n")
    (folder / "flowstone.edn").write_text(
        '{:connections {:ai {:type :http-api :backend "openai-compatible" :model "smollm2"'
        f' :base-url "{address}/v1" :auth {{:type :none}}}}}}}}'
    )


def main():
    model, program = sys.argv[1:]
    server = serve(model)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        project(folder, server.listening_address)
        ran = subprocess.run(
            [program, "run", "flows/summarize.edn", "--json", "--input", '{:path "notes"}'],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
        )
    answer = json.loads(ran.stdout)
    assert ran.returncode == 0 and answer["status"] == "completed", answer
    report = answer["result"]
    assert report.startswith("# Summary of notes\n") and "`water.md`" in report and "Topics:" in report, report
    print(report)
    print("a real model: ok")


main()
