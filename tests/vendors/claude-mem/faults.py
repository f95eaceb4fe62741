#!/usr/bin/env python3
"""The provider `claude-mem` through a proxy that breaks things, with the real worker behind it.

Usage: faults.py MEMHOST COMPONENT PORT-OF-THE-WORKER
"""

import re
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parent.parent))
from faults import ask, run  # noqa: E402


def main(memhost, component, port):
    api = f"http://127.0.0.1:{port}/api"

    # Captures as records, and as sessions that are extracted from.
    for infer in "never", "residue":
        project = f"faults-{infer}"

        def texts():
            """The narrative of every observation, once the worker has nothing to do."""
            while ask(f"{api}/processing-status", "GET")[1]["isProcessing"]:
                time.sleep(0.5)
            found = []
            while True:
                page = ask(f"{api}/observations?{urlencode({'project': project, 'limit': 100, 'offset': len(found)})}", "GET")[1]
                found += [seen["narrative"] for seen in page["items"]]
                if not page["hasMore"]:
                    return found

        run(memhost, component, port, provider="claude-mem", texts=texts,
            config=lambda url: {"url": url, "infer": infer, "project": project},
            secret=None, ids=re.compile(rb'(?<="id":)\d+'))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
