"""A host of its own for a script, and memhost's command line against it."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

TOKEN = "a-token-of-this-run-only"


@contextlib.contextmanager
def serving(memhost, component=None):
    """A host with the company `acme` and with this provider, if there is one. Yields its directory and `run`, which runs a
    command of memhost and answers what it printed."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        (data / "plugins").mkdir(parents=True)
        if component:
            shutil.copy(component, data / "plugins")
        arguments = [memhost, "serve", "--data-dir", str(data), "--listen", "127.0.0.1:0", "--token-from-stdin",
                     "--exit-with-stdin", "--print-address", "json"]
        host = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            print(TOKEN, file=host.stdin, flush=True)
            url = json.loads(host.stdout.readline())["control"]
            environment = {**os.environ, "HOME": place, "MEMHOST_TOKEN": TOKEN, "MEMHOST_URL": url, "MEMHOST_COMPANY": "acme"}

            def run(*command, tries=1):
                for _ in range(tries):
                    done = subprocess.run([memhost, *command], capture_output=True, text=True, env=environment)
                    if done.returncode == 0:
                        return done.stdout
                    time.sleep(0.2)
                raise AssertionError((command, done.stderr))

            run("company", "create")
            yield data, run
        finally:
            host.stdin.close()
            host.wait(30)
