#!/usr/bin/env python3
"""The provider `supermemory` through a proxy that breaks things, with the stand-in behind it.

Usage: faults.py MEMHOST COMPONENT PORT
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from faults import ask, run  # noqa: E402
from serve import KEY  # noqa: E402

CONTAINER = "faults"


def main(memhost, component, port):
    url, bearer = f"http://127.0.0.1:{port}", {"authorization": f"Bearer {KEY}"}
    ask(f"{url}/v3/documents/bulk", "DELETE", {"containerTags": [CONTAINER]}, bearer)

    def texts():
        found, page = [], 1
        while True:
            body = {"containerTags": [CONTAINER], "page": page, "limit": 100, "sort": "createdAt", "order": "desc"}
            _, answer = ask(f"{url}/v4/memories/list", "POST", body, bearer)
            found += [memory["memory"] for memory in answer["memoryEntries"]]
            if page >= answer["pagination"]["totalPages"]:
                return found
            page += 1

    run(memhost, component, port, provider="supermemory", texts=texts,
        config=lambda url: {"url": url, "containerTag": CONTAINER}, ids=re.compile(rb'(?<="id": ")[A-Za-z0-9]{8}'),
        secret=("SUPERMEMORY_API_KEY", KEY, {"kind": "header", "name": "authorization", "prefix": "Bearer"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
