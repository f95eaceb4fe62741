#!/usr/bin/env python3
"""memhost, one of its providers, a proxy that breaks a third of the exchanges, and the provider's service behind it.

What the host tells as written is at the service exactly once, what it tells as failed at most once, what it tells as
forgotten is not there; and what is repeated gets done.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from proxy import Proxy

TOKEN = "a-token-of-this-run-only"


def ask(url, method="POST", body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def run(memhost, component, port, *, provider, config, secret, texts, ids=None):
    """`config(url)` is the configuration of the binding, `secret` the name, the value and `usedAs` of its secret, if it has
    one, and `texts()` what is at the service, which listens on `port`. `ids` matches the start of an id, which the proxy
    changes."""
    directory = Path(tempfile.mkdtemp())
    (directory / "plugins").mkdir()
    shutil.copy(component, directory / "plugins" / f"{provider}.wasm")
    proxy = Proxy(port, share=1 / 3, seed=17, slow=4, **({"ids": ids} if ids else {}))
    url = f"http://127.0.0.1:{proxy.start()}"
    arguments = [memhost, "serve", "--data-dir", str(directory), "--listen", "127.0.0.1:0", "--token-from-stdin",
                 "--exit-with-stdin", "--print-address", "json"]
    host = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        print(TOKEN, file=host.stdin, flush=True)
        origin = json.loads(host.stdout.readline())["control"]
        bearer = {"authorization": f"Bearer {TOKEN}"}

        def api(path, body=None, method="POST"):
            return ask(f"{origin}{path}", method, body, bearer)

        def fine(path, body, method="POST"):
            status, answer = api(path, body, method)
            assert status < 300, (path, status, answer)
            return answer

        control, runtime = "/control/v1/companies/acme", "/runtime/v1/companies/acme"
        fine(control, {}, "PUT")
        if secret:
            name, value, used_as = secret
            fine(f"{control}/secrets/{name}", {"value": value, "origins": [url], "usedAs": used_as}, "PUT")
        grants = {"storageBytes": 64 << 20, "secrets": [name] if secret else [],
                  "http": [{"origin": url, "privateRanges": ["127.0.0.0/8"]}]}
        binding = {"key": provider, "providerKey": provider, "default": True, "limits": {"callTimeoutMs": 3000},
                   "grants": grants, "config": config(url)}
        for _ in range(100):
            status, answer = api(f"{control}/bindings", binding)
            if status < 300:
                break
            time.sleep(0.3)
        assert status < 300, answer

        def call(path, body):
            """Again while the host does not call a provider that failed too often."""
            while True:
                status, answer = api(f"{runtime}/{path}", {"scope": {"companyId": "acme"}, **body})
                if answer.get("code") != "circuit_open":
                    return status, answer
                api(f"{control}/bindings/{provider}/reset", {})

        told, failed, handles = [], [], {}
        source = {"kind": "manual_note", "companyId": "acme"}
        for n in range(60):
            text = f"Captured {n}, which is number {n * n}."
            status, answer = call("capture", {"source": source, "payload": {"text": text}})
            (told if status < 300 else failed).append(text)
        for n in range(30):
            text, tries = f"Written {n}, which is number {n * n}.", 0
            while True:
                status, answer = call("records", {"records": [{"id": f"fact-{n}", "text": text}]})
                if status < 300:
                    break
                tries += 1
                assert tries < 40, answer
            told.append(text)
            handles[text] = answer["records"][0]
        forgotten = [f"Written {n}, which is number {n * n}." for n in range(10)]
        for text in forgotten:
            while call("forget", {"handles": [handles[text]]})[0] >= 300:
                pass
        there = texts()
        expected = [text for text in told if text not in forgotten]
        lost = [text for text in expected if there.count(text) == 0]
        doubled = sorted({text for text in there if there.count(text) > 1})
        kept = [text for text in forgotten if text in there]
        print(f"{len(told)} told as written, {len(failed)} told as failed ({sum(text in there for text in failed)} of them there), "
              f"{len(forgotten)} forgotten; lost {len(lost)}, doubled {len(doubled)}, not forgotten {len(kept)}")
        print(f"exchanges: {dict(proxy.happened)}")
        assert not lost and not doubled and not kept, (lost, doubled, kept)
    finally:
        host.stdin.close()
        host.wait()
        shutil.rmtree(directory)

