#!/usr/bin/env python3
"""A stub of OpenAI's API for memory servers: embeddings of hashed words, and extraction that keeps each sentence.

Usage: models.py PORT. It answers the same for the same text, needs no model and sends nothing anywhere.
"""

import hashlib
import json
import math
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def words(text):
    return re.findall(r"\w+", text.lower())


def vector(text, dimensions):
    """Texts with words in common are near each other: each word adds to one dimension."""
    values = [0.0] * dimensions
    for word in words(text):
        values[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % dimensions] += 1.0
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / length for value in values] if any(values) else [1.0] + [0.0] * (dimensions - 1)


def extracted(prompt):
    """The sentences of the new messages in mem0's prompt, each as one memory. A line that says `nothing` has none."""
    found = re.search(r"## New Messages\n(.*?)\n\n## ", prompt, re.S)
    text = found.group(1) if found else prompt
    lines = [re.sub(r"^\w+: ", "", line) for line in text.splitlines()]
    sentences = [s.strip() for line in lines for s in re.split(r"(?<=\.)\s+", line)]
    return [{"id": str(n), "text": s} for n, s in enumerate(s for s in sentences if s and "nothing" not in s.lower())]


def program(messages):
    """What OpenViking's prompts ask for: a program that keeps each sentence of the users as a memory of its own. Sessions that
    it works on at a time are merged by a second prompt, of patches."""
    text = "\n".join(m["content"] or "" for m in messages[1:])
    lines = re.findall(r"^\[\d+\]\[user\]\[.*?\]: (.*)$", text, re.M)
    lines += re.findall(r"^ *content:\n *@@ -0,0 .*\n *\+(.*)$", text, re.M)
    sentences = [s.strip() for line in lines for s in re.split(r"(?<=\.)\s+", line)]
    kept = [s for s in sentences if s and "nothing" not in s.lower()]
    calls = [f'sdk.create_preferences(user="user", topic="{"_".join(words(s)[-3:])}", content="""{s}""")' for s in kept]
    return "\n".join([*calls, "sdk.commit()"])


def observed(messages):
    """What claude-mem's prompts ask for: an observation of each sentence that a tool put out."""
    found = re.search(r"<outcome>(.*)</outcome>", messages[-1]["content"], re.S)
    text = json.loads(found.group(1)) if found else ""
    text = json.loads(text) if text.startswith('"') else text
    sentences = [s.strip() for line in text.splitlines() for s in re.split(r"(?<=\.)\s+", re.sub(r"^\w+: ", "", line))]
    kept = [s for s in sentences if s and "nothing" not in s.lower()]
    made = [f"<observation><type>discovery</type><title>{s}</title><narrative>{s}</narrative></observation>" for s in kept]
    return "\n".join(made) or '<skip_summary reason="noise" />'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/embeddings"):
            texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
            data = [
                {"object": "embedding", "index": n, "embedding": vector(text, asked.get("dimensions") or 1536)}
                for n, text in enumerate(texts)
            ]
            tokens = sum(len(words(text)) for text in texts)
            answer = {"object": "list", "data": data, "model": asked["model"],
                      "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
        else:
            messages = asked["messages"]
            system = str(messages[0]["content"])
            if "restricted Python memory SDK" in system:
                content = program(messages)
            elif "Claude-Mem" in system:
                content = observed(messages)
            else:
                content = json.dumps({"memory": extracted(messages[-1]["content"])})
            answer = {"id": "chatcmpl-stub", "object": "chat.completion", "created": 0, "model": asked["model"],
                      "choices": [{"index": 0, "finish_reason": "stop",
                                   "message": {"role": "assistant", "content": content}}],
                      "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
