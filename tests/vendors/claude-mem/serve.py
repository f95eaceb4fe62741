#!/usr/bin/env python3
"""Runs the worker of claude-mem, unchanged, without Chroma and with a stub of its model.

Usage: serve.py INSTALLED_DIR DATA_DIR PORT. Prints `ready` when the worker answers. It ends with its standard input, and
takes everything that it started along. What it sets is in ENVIRONMENT.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path


def main(installed, data, port):
    home = data / "home"
    home.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "HOME": str(home),
        "CLAUDE_MEM_DATA_DIR": str(data / "claude-mem"),
        "CLAUDE_MEM_WORKER_HOST": "127.0.0.1",
        "CLAUDE_MEM_WORKER_PORT": str(port),
        "CLAUDE_MEM_CHROMA_ENABLED": "false",
        "CLAUDE_MEM_PROVIDER": "openrouter",
        "CLAUDE_MEM_OPENROUTER_API_KEY": "not-used",
        "CLAUDE_MEM_OPENROUTER_BASE_URL": f"http://127.0.0.1:{port + 1}/v1",
        "CLAUDE_MEM_TELEMETRY": "false",
        "DO_NOT_TRACK": "1",
    }
    log = open(data / "worker.log", "ab")
    processes = []

    def start(*command):
        processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=data, env=environment))

    try:
        start(sys.executable, str(Path(__file__).resolve().parent.parent / "models.py"), str(port + 1))
        worker = installed / "package/plugin/scripts/worker-service.cjs"
        start(str(installed / "bun/package/bin/bun"), str(worker), "--daemon")
        wait(port, processes)
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def wait(port, processes):
    for _ in range(300):
        if any(process.poll() is not None for process in processes):
            sys.exit("the worker ended; its log is worker.log in the data directory")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/readiness", timeout=2).read()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit("the worker does not answer")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3]))
