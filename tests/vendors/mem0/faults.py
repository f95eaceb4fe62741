#!/usr/bin/env python3
"""The provider `mem0` through a proxy that breaks things, with mem0's own server behind it.

Usage: faults.py MEMHOST COMPONENT PORT-OF-MEM0
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from faults import ask, run  # noqa: E402
from serve import KEY  # noqa: E402

USER = "faults"


def main(memhost, component, port):
    mem0, key = f"http://127.0.0.1:{port}/memories", {"x-api-key": KEY}
    ask(f"{mem0}?user_id={USER}", "DELETE", None, key)

    def texts():
        _, answer = ask(f"{mem0}?user_id={USER}&top_k=1000", "GET", None, key)
        return [memory["memory"] for memory in answer["results"]]

    run(memhost, component, port, provider="mem0", texts=texts,
        config=lambda url: {"url": url, "api": "self-hosted", "userId": USER},
        secret=("MEM0_API_KEY", KEY, {"kind": "header", "name": "x-api-key"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
