#!/usr/bin/env python3
"""Whether the real memsearch indexes and finds what the provider `memsearch` and the bridge write, and the bridge what
memsearch's plugins write.

Usage: real.py MEMHOST COMPONENT PORT, with the Python that memsearch is installed in.
"""

import json
import os
import subprocess
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

sys.path.insert(0, str(Path(__file__).parent.parent))
from host import serving  # noqa: E402
from models import Handler  # noqa: E402

# As memsearch's plugin for Claude Code appends it.
JOURNAL = """
## Session 09:00

### 09:00
<!-- session:5e1f turn:a1 transcript:/home/ada/5e1f.jsonl -->
- The roof was repaired by Carol

"""
TEXTS = {
    "gate": "The gate is locked at nine",
    "tea": "Ada drinks green tea\n\n### 10:00\nand this looks like an entry of its own\n\n## Heading\nwith more",
    "long": "Sailing needs wind. " * 200,
    "chinese": "发布会改到星期五",
}


def main(memhost, component, port):
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    with serving(memhost, component) as (data, run):
        check(data, run, f"http://127.0.0.1:{port}/v1")
    print(f"memsearch: {len(TEXTS)} records are found by the real memsearch, and gone from it after they were forgotten")


def check(data, run, models):
    place = data.parent

    def real(*arguments):
        program = Path(sys.executable).parent / "memsearch"
        at = ["--provider", "openai", "--model", "text-embedding-3-small", "--base-url", models, "--milvus-uri",
              str(place / "milvus.db")]
        environment = {**os.environ, "HOME": str(place), "OPENAI_API_KEY": "unused"}
        done = subprocess.run([program, *arguments, *at], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def hits(question):
        return [hit["content"] for hit in json.loads(real("search", question, "-k", "3", "-j"))]

    # The provider is compiled meanwhile.
    run("binding", "create", "journal", "--provider", "memsearch", "--default", tries=100)
    run("binding", "grant", "journal", "--everything")
    for name, text in TEXTS.items():
        run("record", "create", text, "--id", name, "--session", "standup")
    [file] = data.rglob("????-??-??.md")
    real("index", str(file.parent))
    asked = {"when is the gate locked": "locked at nine", "green tea": "Ada drinks", "wind": "Sailing", TEXTS["chinese"]: "发布会"}
    for question, words in asked.items():
        assert any(words in hit for hit in hits(question)), (question, hits(question))
    run("forget", "gate")
    real("index", str(file.parent))
    assert not any("locked at nine" in hit for hit in hits("when is the gate locked"))

    # The bridge, in both directions.
    out = place / "out"
    run("bridge", "memsearch", "export", str(out))
    real("index", str(out))
    assert any("Ada drinks" in hit for hit in hits("green tea"))
    journals = place / "memory"
    journals.mkdir()
    (journals / "2026-03-01.md").write_text(JOURNAL)
    run("bridge", "memsearch", "import", str(journals))
    assert "repaired by Carol" in run("search", "who repaired the roof?")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
