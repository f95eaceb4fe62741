#!/usr/bin/env python3
"""Runs the server of OpenViking, unchanged, with its local storage and a stub of its models.

Usage: serve.py DATA_DIR PORT. Prints `ready` when the server answers, and leaves the key of a user in DATA_DIR/key. It
ends with its standard input, and takes everything that it started along.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT_KEY = "memhost-vendors-root-key"


def main(data, port):
    data.mkdir(parents=True, exist_ok=True)
    models = f"http://127.0.0.1:{port + 1}/v1"
    model = {"provider": "openai", "api_base": models, "api_key": "not-used", "model": "stub"}
    config = {
        "server": {"host": "127.0.0.1", "port": port, "auth_mode": "api_key", "root_api_key": ROOT_KEY},
        "storage": {"workspace": str(data / "workspace"), "vectordb": {"backend": "local"}, "agfs": {"backend": "local"}},
        "embedding": {"dense": {**model, "dimension": 1536}},
        "vlm": model,
    }
    (data / "ov.conf").write_text(json.dumps(config))
    log = open(data / "server.log", "ab")
    processes = []

    def start(*command):
        environment = {**os.environ, "HOME": str(data)}
        processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=data, env=environment))

    try:
        start(sys.executable, str(Path(__file__).resolve().parent.parent / "models.py"), str(port + 1))
        start(str(Path(sys.executable).parent / "openviking-server"), "--config", str(data / "ov.conf"))
        (data / "key").write_text(key(f"http://127.0.0.1:{port}", processes))
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def key(url, processes):
    """The key of a new user, once the server answers."""
    body = json.dumps({"account_id": "vendors", "admin_user_id": "memhost"}).encode()
    headers = {"x-api-key": ROOT_KEY, "content-type": "application/json"}
    for _ in range(300):
        if any(process.poll() is not None for process in processes):
            sys.exit("the server ended; its log is server.log in the data directory")
        try:
            urllib.request.urlopen(f"{url}/ready", timeout=2).read()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
            continue
        request = urllib.request.Request(f"{url}/api/v1/admin/accounts", body, headers)
        return json.load(urllib.request.urlopen(request, timeout=60))["result"]["user_key"]
    sys.exit("the server does not answer")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
