#!/usr/bin/env python3
"""Records what mem0's own client sends to the hosted API, which nobody can run here: one line of JSON for each request.

Usage: record-client.py > plugins/mem0/tests/recorded/client.jsonl
"""

import datetime
import importlib.metadata
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=os.environ.get("MEM0_DIR", "/tmp/mem0-record-client"))

recorded = []


class Recorder(BaseHTTPRequestHandler):
    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        recorded.append({"method": self.command, "path": url.path, "query": url.query, "body": body,
                         "authorization": self.headers.get("authorization")})
        answer = json.dumps({"results": [], "user_email": None, "org_id": "o", "project_id": "p"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


def main():
    from mem0 import MemoryClient

    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = MemoryClient(api_key="KEY", host=f"http://127.0.0.1:{server.server_port}")
    memory = "00000000-0000-4000-8000-000000000001"
    messages = [{"role": "user", "content": "The gate is green."}]
    client.add(messages, user_id="u", infer=False, metadata={"topic": "gate"}, expiration_date="2030-01-01")
    client.add(messages, user_id="u", infer=True)
    client.search("gate", filters={"AND": [{"user_id": "u"}, {"metadata": {"topic": "gate"}}]}, top_k=10, threshold=0.2)
    client.get_all(filters={"AND": [{"user_id": "u"}]}, page=1, page_size=100)
    client.get(memory)
    client.update(memory, text="The gate is blue.", metadata={"topic": "gate"}, expiration_date=None)
    client.history(memory)
    client.delete(memory)
    client.delete_all(user_id="u")
    server.shutdown()
    head = {"recorded": datetime.date.today().isoformat(), "of": f"mem0ai {importlib.metadata.version('mem0ai')}",
            "by": "tests/vendors/mem0/record-client.py"}
    for line in [head, *recorded]:
        print(json.dumps(line, sort_keys=True))


if __name__ == "__main__":
    main()
