#!/usr/bin/env python3
"""Runs mem0's own server, unchanged, with a Postgres of its own and a stub of its models.

Usage: serve.py SERVER_DIR DATA_DIR PORT. Prints `ready` when the server answers. It ends with its standard input, and
takes everything that it started along. What it sets is in ENVIRONMENT; nothing of the server's code is changed.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pgserver
from sqlalchemy.engine import make_url

KEY = "memhost-vendors-key"


def main(server, data, port):
    data.mkdir(parents=True, exist_ok=True)
    postgres = pgserver.get_server(str(data / "postgres"))
    postgres.psql("CREATE EXTENSION IF NOT EXISTS vector;")
    if "mem0_app" not in postgres.psql("SELECT datname FROM pg_database;"):
        postgres.psql("CREATE DATABASE mem0_app;")
    address = make_url(postgres.get_uri())
    models = port + 1
    environment = {
        **os.environ,
        # Postgres listens on a socket in its directory only. An empty host makes its library read PGHOST.
        "POSTGRES_HOST": "",
        "POSTGRES_PORT": str(address.port or 5432),
        "POSTGRES_USER": address.username or "postgres",
        "POSTGRES_PASSWORD": address.password or "",
        "PGHOST": address.query["host"],
        "POSTGRES_DB": "postgres",
        "APP_DB_NAME": "mem0_app",
        "OPENAI_API_KEY": "not-used",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{models}/v1",
        "HISTORY_DB_PATH": str(data / "history.db"),
        "MEM0_DIR": str(data / "mem0"),
        "MEM0_TELEMETRY": "false",
        "ADMIN_API_KEY": KEY,
        "JWT_SECRET": "only-for-this-run-only-for-this-run",
    }
    stub = Path(__file__).parent.parent / "models.py"
    log = open(data / "server.log", "ab")
    processes = []

    def start(*arguments, **more):
        more = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **more}
        processes.append(subprocess.Popen([sys.executable, *arguments], **more))

    try:
        start(str(stub), str(models))
        migrate = [sys.executable, "-m", "alembic", "upgrade", "head"]
        subprocess.run(migrate, cwd=server, env=environment, check=True, stdout=log, stderr=log)
        start("-m", "uvicorn", "main:app", "--host", "127.0.0.1", "--port", str(port), cwd=server, env=environment)
        wait(port, processes)
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        postgres.cleanup()


def wait(port, processes):
    for _ in range(300):
        if any(process.poll() is not None for process in processes):
            sys.exit("the server ended; its log is server.log in the data directory")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=2).read()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit("the server does not answer")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3]))
