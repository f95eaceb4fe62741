#!/usr/bin/env python3
"""Imports a database of Memori twice, and asks for a fact of it.

Usage: check.py MEMHOST DATABASE
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from host import serving  # noqa: E402


def main(memhost, database):
    with serving(memhost) as (_, run):
        first, again = (json.loads(run("bridge", "memori", "import", database, "-o", "json")) for _ in range(2))
        assert (first["imported"], first["unchanged"], first["messages"]) == (6, 0, 2), first
        assert (again["imported"], again["unchanged"]) == (0, 6), again
        found = run("search", "green tea")
        assert "Ada drinks green tea" in found, found
    print("memori: 6 records were imported once, and are found")


if __name__ == "__main__":
    main(*sys.argv[1:])
