#!/usr/bin/env python3
"""The provider `openviking` through a proxy that breaks things, with OpenViking behind it.

Usage: faults.py MEMHOST COMPONENT PORT-OF-OPENVIKING KEY
"""

import re
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))
from faults import ask, run  # noqa: E402

ROOTS = ["viking://~/memories", "viking://~/peers"]


def main(memhost, component, port, key):
    api, headers = f"http://127.0.0.1:{port}/api/v1", {"x-api-key": key}

    def get(path, **query):
        return ask(f"{api}/{path}?{urlencode(query)}", "GET", None, headers)[1]

    def texts():
        """The content of every memory, once OpenViking has done what it was given."""
        while any(get("tasks", status=status, limit=200)["result"] for status in ("pending", "running")):
            time.sleep(1)
        found = [get("fs/tree", uri=root, level_limit=10, limit=1000).get("result") or [] for root in ROOTS]
        files = [entry["uri"] for entries in found for entry in entries if not entry["isDir"]]
        texts = [get("content/read", uri=uri)["result"] for uri in files]
        return [text for text in texts if text.startswith(("Captured", "Written"))]

    # Captures as records, and as sessions that are extracted from.
    for infer in "never", "residue":
        for root in ROOTS:
            ask(f"{api}/fs?{urlencode({'uri': root, 'recursive': 'true', 'wait': 'true'})}", "DELETE", None, headers)
        run(memhost, component, port, provider="openviking", texts=texts, config=lambda url: {"url": url, "infer": infer},
            secret=("OPENVIKING_API_KEY", key, {"kind": "header", "name": "x-api-key"}),
            ids=re.compile(rb"(?<=/memories/memhost/)[a-z0-9_-]{8}"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
