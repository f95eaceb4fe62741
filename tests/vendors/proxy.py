#!/usr/bin/env python3
"""A proxy in front of a memory server that breaks some of the exchanges, by a seed. `Proxy(port).start()`."""

import collections
import http.client
import random
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ["limited", "fails-before", "fails-after", "slow-before", "slow-after", "cut-before", "cut-after", "cut-in-body",
          "nonsense", "other-shape", "other-ids"]
ID = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-4[0-9a-f]{3}-)")


class Proxy:
    def __init__(self, server, share, seed, slow, ids=ID):
        """`share` of the exchanges are broken; `slow` is longer than anybody waits, in seconds. `ids` matches the first
        eight characters of an id."""
        self.ids = ids
        self.server, self.share, self.slow = server, share, slow
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.happened = collections.Counter()
        self.wait = None

    def fault(self):
        with self.lock:
            fault = self.random.choice(FAULTS) if self.random.random() < self.share else None
            self.happened[fault or "none"] += 1
            return fault

    def start(self):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def exchange(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                proxy.handle(self, body)
                self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = exchange

            def log_message(self, *_):
                pass

        listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        listener.daemon_threads = True
        # Whoever asked has gone away.
        listener.handle_error = lambda *_: None
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        return listener.server_port

    def handle(self, handler, body):
        fault = self.fault()
        if fault == "limited":
            return answer(handler, 429, b'{"detail":"Rate limit"}', {"retry-after": "0"})
        if fault == "fails-before":
            return answer(handler, 500, b'{"detail":"Upstream provider error."}')
        if fault == "cut-before":
            return cut(handler)
        if fault == "slow-before":
            time.sleep(self.slow)
            return cut(handler)
        status, said = self.ask(handler, body)
        if fault == "slow-after":
            time.sleep(self.slow)
            return cut(handler)
        if fault == "fails-after":
            return answer(handler, 500, b'{"detail":"Upstream provider error."}')
        if fault == "cut-after":
            return cut(handler)
        if fault == "cut-in-body":
            return answer(handler, status, said[: len(said) // 2], {"content-length": str(len(said))})
        if fault == "nonsense":
            said = b"<html>It works!</html>"
        if fault == "other-shape":
            said = b'{"status":"ok"}'
        if fault == "other-ids":
            said = self.ids.sub(b"ffffffff", said)
        answer(handler, status, said)

    def ask(self, handler, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server, timeout=60)
        # A signature is of the host that was asked.
        signed = handler.headers.get("authorization", "").startswith("AWS4")
        left_out = ("connection",) if signed else ("host", "connection")
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in left_out}
        connection.request(handler.command, handler.path, body or None, headers)
        response = connection.getresponse()
        return response.status, response.read()


def answer(handler, status, body, more=None):
    handler.send_response(status)
    for name, value in {"content-type": "application/json", "content-length": str(len(body)), **(more or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def cut(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
