#!/usr/bin/env python3
"""Records what MemOS's own client sends to the cloud, which nobody can run here: one line of JSON for each request.

The answers are those of MemOS's documentation; the client reads them with its own types.

Usage: record-client.py > plugins/memos/tests/recorded/client.jsonl
"""

import datetime
import importlib.metadata
import importlib.util
import json
import logging
import os
import sys
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

recorded = []

MEMORY = {"id": "00000000-0000-4000-8000-000000000001", "memory_key": "Gate", "memory_value": "The gate is green.",
          "memory_type": "LongTermMemory", "create_time": "2026-11-24 02:00:00", "update_time": "2026-11-24 02:00:00",
          "conversation_id": "memhost-op", "status": "activated", "confidence": 0.95, "tags": ["gate"], "info": {}}
LISTS = {"memory_detail_list": [MEMORY | {"relativity": 0.87}], "preference_detail_list": [], "preference_note": ""}
TASK = {"success": True, "task_id": "task", "status": "running"}
ANSWERS = {
    "/add/message": TASK,
    "/add/feedback": TASK,
    "/get/message": {"message_detail_list": [{"role": "user", "content": "The gate is green."}]},
    "/get/status": {"task_id": "task", "status": "completed"},
    "/get/memory": LISTS | {"total": 1, "size": 50, "current": 1, "pages": 1},
    "/search/memory": LISTS,
    "/update/memory": {"success": True},
    "/delete/memory": {"success": True},
}


class Recorder(BaseHTTPRequestHandler):
    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        recorded.append({"method": self.command, "path": url.path, "query": url.query, "body": body,
                         "authorization": self.headers.get("authorization")})
        answer = json.dumps({"code": 0, "message": "ok", "data": ANSWERS.get(url.path, MEMORY)}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def client_class():
    """The client without the rest of MemOS, whose packages import everything that it could run on."""
    origin = importlib.util.find_spec("memos").origin
    for name, folder in [("memos", ""), ("memos.api", "api")]:
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(os.path.dirname(origin), folder)]
        sys.modules[name] = package
    # Types of what a memory can be in the library; the client has none of them, and they import models.
    for kind, name in [("activation", "Activation"), ("parametric", "Parametric"), ("textual", "Textual")]:
        items = types.ModuleType(f"memos.memories.{kind}.item")
        setattr(items, f"{name}MemoryItem", dict)
        sys.modules[items.__name__] = items
    log = types.ModuleType("memos.log")
    log.get_logger = logging.getLogger
    sys.modules["memos.log"] = log
    from memos.api.client import MemOSClient

    return MemOSClient


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = client_class()(api_key="KEY", base_url=f"http://127.0.0.1:{server.server_port}")
    messages = [{"role": "user", "content": "The gate is green."}]
    client.add_message(messages, user_id="u", conversation_id="memhost-op", info={"topic": "gate"})
    client.get_message("u", "memhost-op")
    client.get_task_status("task")
    client.search_memory("gate", user_id="u", memory_limit_number=10, filter={"and": [{"topic": "gate"}]}, relativity=0.2)
    client.get_memory(user_id="u", page=1, size=50)
    client.get_memory_by_id(MEMORY["id"])
    client.update_memory(MEMORY["id"], content="The gate is blue.")
    client.add_feedback("u", "memhost-op", "The gate is yellow.")
    client.delete_memory(memory_ids=[MEMORY["id"]])
    client.delete_memory(user_id="u")
    server.shutdown()
    head = {"recorded": datetime.date.today().isoformat(), "of": f"MemoryOS {importlib.metadata.version('MemoryOS')}",
            "by": "tests/vendors/memos/record-client.py"}
    for line in [head, *recorded]:
        print(json.dumps(line, sort_keys=True))


if __name__ == "__main__":
    main()
