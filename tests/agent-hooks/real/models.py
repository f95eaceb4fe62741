"""Stand-ins for the models' services on loopback: enough of Anthropic's Messages and OpenAI's Responses for a session.

What the model says follows from the last thing that a person asked: `calls N` asks for N tool calls of 28 KB first,
`fails` for one that ends with code 3, and `broken tool` for one of MCP. `slowly` gets the beginning of an answer that never
ends, and `in vain` an error. Every other answer is `Answer to: …`."""
import json, re, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEGINNING = "I have renamed two of the five."
# Set when the beginning of an answer was sent.
BEGAN = threading.Event()
LONG = "python3 -c \"print('y' * 28000)\""


class Models(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(b'{"models": [], "data": []}', "application/json")

    def do_HEAD(self):
        self.answer(b"", "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if "count_tokens" in self.path:
            return self.answer(b'{"input_tokens": 100}', "application/json")
        if self.path.split("?")[0].endswith("/messages"):
            return self.anthropic(body)
        if self.path.split("?")[0].endswith("/responses"):
            return self.openai(body)
        self.answer(b"{}", "application/json")

    def answer(self, data, kind, status=200):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self, events):
        text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        self.answer(text.encode(), "text/event-stream")

    def begin_and_stop(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode())
        self.wfile.flush()
        BEGAN.set()
        try:
            self.rfile.read(1)
        except OSError:
            pass

    def anthropic(self, body):
        asked, done = "", 0
        for message in body.get("messages", []):
            if message["role"] != "user":
                continue
            parts = message["content"]
            parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
            done += sum(part["type"] == "tool_result" for part in parts)
            texts = [p["text"] for p in parts if p["type"] == "text" and not p["text"].startswith("<system-reminder>")]
            if texts:
                asked, done = texts[-1], 0
        # No model answers at once, and Claude Code writes its transcript a moment late.
        time.sleep(0.3)
        if "in vain" in asked:
            return self.answer(b'{"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}', "application/json", 400)
        offered = {tool["name"] for tool in body.get("tools", [])}
        call = command(asked, done) if "Bash" in offered else None
        if call:
            block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": "Bash", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": call, "description": "test"})}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": f"Answer to: {asked[-60:]}"}
        message = {"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant", "model": body.get("model", "m"),
                   "content": [], "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 10, "output_tokens": 1}}
        end = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        if not body.get("stream"):
            whole = {**message, "content": [{"type": "text", "text": "title"}], "stop_reason": "end_turn"}
            return self.answer(json.dumps(whole).encode(), "application/json")
        if "slowly" in asked:
            return self.begin_and_stop([
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": BEGINNING}},
            ])
        self.events([
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ])

    def openai(self, body):
        asked, done = "", 0
        for item in body.get("input", []):
            if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                done += 1
            if item.get("type") == "message" and item.get("role") == "user":
                text = "\n".join(part.get("text", "") for part in item["content"])
                if not text.lstrip().startswith(("<", "# AGENTS.md")):
                    asked, done = text, 0
        names = {tool.get("name") for tool in body.get("tools", [])}
        name = next((n for n in ("exec_command", "shell_command", "shell") if n in names), None)
        call = command(asked, done) if name else None
        if "broken tool" in asked and done == 0:
            item = {"type": "function_call", "id": f"fc_{time.time_ns()}", "call_id": f"call_{time.time_ns()}",
                    "name": "fail", "namespace": "mcp__broken", "arguments": "{}"}
        elif call:
            key = "cmd" if name == "exec_command" else "command"
            item = {"type": "function_call", "id": f"fc_{time.time_ns()}", "call_id": f"call_{time.time_ns()}",
                    "name": name, "arguments": json.dumps({key: call})}
        else:
            item = {"type": "message", "id": f"msg_{time.time_ns()}", "role": "assistant",
                    "content": [{"type": "output_text", "text": f"Answer to: {asked[-60:]}", "annotations": []}]}
        usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 5, "output_tokens_details": None,
                 "total_tokens": 15}
        self.events([
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": f"resp_{time.time_ns()}", "usage": usage}},
        ])


def command(asked, done):
    """The shell command that the model wants to run now, if any."""
    calls = re.search(r"calls (\d+)", asked)
    if calls and done < int(calls[1]):
        return LONG
    if "fails" in asked and done == 0:
        return "exit 3"
    return None


def start():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
