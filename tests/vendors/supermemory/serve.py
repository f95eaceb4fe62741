#!/usr/bin/env python3
"""A stand-in for supermemory, which nobody can run here: the routes that the provider uses, in memory.

Usage: serve.py PORT. Prints `ready`, and ends with its standard input. It refuses requests that supermemory's SDK would
not send, and `oracle.mjs` checks its answers with that SDK. Each request for a document brings it one state further, and
each of its sentences becomes a memory; a document that says `impossible` fails.
"""

import datetime
import json
import re
import secrets
import string
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))
from models import vector  # noqa: E402

KEY = "memhost-vendors-key"
STATES = ["queued", "extracting", "chunking", "embedding", "indexing", "done"]
LETTERS = string.ascii_letters + string.digits
TAG, CUSTOM = re.compile(r"[a-zA-Z0-9_-]{1,100}"), re.compile(r"[a-zA-Z0-9_.-]{1,100}")
# Texts that have few words in common are still a little alike, as with real models.
THRESHOLD = 0.1


class Refused(Exception):
    pass


def require(is_so, what):
    if not is_so:
        raise Refused(what)


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id():
    return "".join(secrets.choice(LETTERS) for _ in range(22))


def members(body, required, optional=()):
    require(isinstance(body, dict), "the body is no object")
    require(set(required) <= set(body), f"one of {required} is missing")
    require(set(body) <= {*required, *optional}, f"{set(body) - {*required, *optional}} is not known")


def tag(text):
    require(isinstance(text, str) and TAG.fullmatch(text), "containerTag")
    return text


def metadata(given):
    def is_plain(value):
        return isinstance(value, (str, int, float, bool)) or isinstance(value, list) and all(isinstance(v, str) for v in value)

    require(isinstance(given, dict) and all(map(is_plain, given.values())), "metadata is not flat")
    return given


def time(text):
    require(text is None or datetime.datetime.fromisoformat(text), "forgetAfter")
    return text


def fits(have, filters):
    if filters is None:
        return True
    if "AND" in filters or "OR" in filters:
        require(len(filters) == 1, "filters")
        parts = [fits(have, part) for part in filters.get("AND", filters.get("OR"))]
        return all(parts) if "AND" in filters else any(parts)
    require(isinstance(filters.get("value"), str) and isinstance(filters.get("key"), str), "filters")
    members(filters, ["key", "value"], ["filterType", "ignoreCase", "negate", "numericOperator"])
    return have.get(filters["key"]) == filters["value"]


class Supermemory:
    def __init__(self):
        self.lock = threading.Lock()
        self.documents, self.memories = {}, []

    def answer(self, method, path, body):
        with self.lock:
            parts = [unquote(part) for part in path.strip("/").split("/")]
            name = "_".join([method.lower(), *parts[:2]])
            if method == "GET" and parts[:2] == ["v3", "documents"] and len(parts) == 3:
                return self.get_document(parts[2])
            if parts[2:]:
                name += "_" + parts[2]
            handler = getattr(self, name, None)
            return handler(body) if handler and len(parts) <= 3 else (404, {"error": "Not Found"})

    # Documents

    def post_v3_documents(self, body):
        members(body, ["content"], ["containerTag", "customId", "metadata", "entityContext", "filepath", "taskType"])
        require(isinstance(body["content"], str) and body["content"], "content")
        require(CUSTOM.fullmatch(body["customId"]), "customId")
        metadata(body.get("metadata", {}))
        of = tag(body["containerTag"])
        for document in self.documents.values():
            if (document.get("customId"), document["tag"]) == (body["customId"], of):
                return 200, {"id": document["id"], "status": document["status"]}
        document = {**body, "id": new_id(), "status": "queued", "tag": of, "at": now()}
        self.documents[document["id"]] = document
        return 200, {"id": document["id"], "status": "queued"}

    def get_document(self, key):
        document = self.documents.get(key)
        if document is None:
            return 404, {"error": "Document not found"}
        if document["status"] in STATES[:-1]:
            document["status"] = STATES[STATES.index(document["status"]) + 1]
            if "impossible" in document["content"]:
                document["status"] = "failed"
            if document["status"] == "done":
                for text in filter(None, map(str.strip, re.split(r"(?<=\.)\s+", document["content"]))):
                    self.make(document["tag"], text, {}, document["id"])
        return 200, self.shown(document, {"content": document["content"], "raw": None, "ogImage": None, "source": None,
                                          "spatialPoint": None, "taskType": "memory"})

    def shown(self, document, more):
        return {"id": document["id"], "connectionId": None, "createdAt": document["at"], "customId": document.get("customId"),
                "filepath": None, "metadata": document.get("metadata"), "status": document["status"], "summary": None,
                "title": None, "type": "text", "updatedAt": document["at"], "containerTags": [document["tag"]], "url": None,
                **more}

    def post_v3_documents_list(self, body):
        members(body, [], ["containerTags", "filters", "includeContent", "limit", "order", "page", "sort"])
        all_of_them = [self.shown(document, {}) for document in self.documents.values()]
        page, pagination = self.page(all_of_them, body)
        return 200, {"memories": page, "pagination": pagination}

    def delete_v3_documents_bulk(self, body):
        members(body, [], ["containerTags", "ids", "filepath"])
        tags = [tag(one) for one in body["containerTags"]]
        gone = [document["id"] for document in self.documents.values() if document["tag"] in tags]
        for document in gone:
            del self.documents[document]
        self.memories = [memory for memory in self.memories if memory["tag"] not in tags]
        return 200, {"success": True, "deletedCount": len(gone), "containerTags": tags}

    # Memories

    def make(self, of, text, given, document, **more):
        memory = {"id": new_id(), "memory": text, "version": 1, "isLatest": True, "isForgotten": False, "isStatic": False,
                  "isInference": False, "createdAt": now(), "updatedAt": now(), "parentMemoryId": None,
                  "rootMemoryId": None, "forgetAfter": None, "forgetReason": None, "metadata": given,
                  "documentIds": [document], "tag": of, **more}
        self.memories.insert(0, memory)
        return memory

    def there(self, tags):
        def is_there(memory):
            expires = memory["forgetAfter"]
            return memory["tag"] in tags and memory["isLatest"] and not memory["isForgotten"] and \
                (expires is None or datetime.datetime.fromisoformat(expires) > datetime.datetime.now(datetime.timezone.utc))

        return [memory for memory in self.memories if is_there(memory)]

    def post_v4_memories(self, body):
        members(body, ["memories", "containerTag"])
        of = tag(body["containerTag"])
        require(1 <= len(body["memories"]) <= 100, "memories")
        for memory in body["memories"]:
            members(memory, ["content"], ["isStatic", "metadata", "forgetAfter", "forgetReason", "temporalContext"])
            require(1 <= len(memory["content"]) <= 10_000, "content has 1 to 10,000 characters")
            metadata(memory.get("metadata", {}))
            time(memory.get("forgetAfter"))
        source = {"id": new_id(), "status": "done", "tag": of, "at": now(), "content": ""}
        self.documents[source["id"]] = source
        made = [self.make(of, memory["content"], memory.get("metadata", {}), source["id"],
                          isStatic=memory.get("isStatic", False), forgetAfter=memory.get("forgetAfter"))
                for memory in body["memories"]]
        names = ["id", "memory", "isStatic", "createdAt", "forgetAfter", "forgetReason"]
        return 201, {"documentId": source["id"], "memories": [{name: memory[name] for name in names} for memory in made]}

    def post_v4_memories_list(self, body):
        members(body, ["containerTags"], ["filters", "limit", "order", "page", "sort"])
        require((body["sort"], body["order"]) == ("createdAt", "desc"), "the stand-in lists the newest first only")
        found = [memory for memory in self.there([tag(one) for one in body["containerTags"]])
                 if fits(memory["metadata"], body.get("filters"))]
        page, pagination = self.page(found, body)
        names = ["id", "memory", "version", "createdAt", "updatedAt", "parentMemoryId", "rootMemoryId", "isLatest",
                 "isForgotten"]

        def history(memory):
            root = memory["rootMemoryId"]
            older = [m for m in self.memories if root and not m["isLatest"] and root in (m["id"], m["rootMemoryId"])]
            return [{name: m[name] for name in names} for m in older]

        entries = [{**{name: value for name, value in memory.items() if name != "tag"}, "history": history(memory)}
                   for memory in page]
        return 200, {"memoryEntries": entries, "pagination": pagination}

    def named(self, body):
        found = [memory for memory in self.there([tag(body["containerTag"])]) if memory["id"] == body["id"]]
        return found[0] if found else None

    def patch_v4_memories(self, body):
        members(body, ["containerTag", "newContent", "id"], ["metadata", "forgetAfter", "forgetReason", "temporalContext"])
        require(1 <= len(body["newContent"]) <= 10_000, "newContent has 1 to 10,000 characters")
        old = self.named(body)
        if old is None:
            return 404, {"error": "Memory not found"}
        old["isLatest"] = False
        new = self.make(old["tag"], body["newContent"], metadata(body.get("metadata", old["metadata"])),
                        old["documentIds"][0], version=old["version"] + 1, parentMemoryId=old["id"],
                        rootMemoryId=old["rootMemoryId"] or old["id"], isStatic=old["isStatic"],
                        forgetAfter=time(body.get("forgetAfter", old["forgetAfter"])))
        names = ["id", "createdAt", "forgetAfter", "forgetReason", "memory", "parentMemoryId", "rootMemoryId", "version"]
        return 200, {name: new[name] for name in names}

    def delete_v4_memories(self, body):
        members(body, ["containerTag", "id"], ["reason"])
        memory = self.named(body)
        if memory is None:
            return 404, {"error": "Memory not found"}
        memory["isForgotten"] = True
        return 200, {"id": memory["id"], "forgotten": True}

    # Search

    def post_v4_search(self, body):
        members(body, ["q"], ["containerTag", "filters", "include", "limit", "rerank", "rewriteQuery", "searchMode", "threshold"])
        require(1 <= body.get("limit", 10) <= 100 and body.get("searchMode") == "memories", "limit or searchMode")
        members(body.get("include", {}), [], ["documents", "forgottenMemories", "relatedMemories", "summaries"])
        asked, hits = vector(body["q"], 1_024), []
        for memory in self.there([tag(body["containerTag"])]):
            likeness = min(1.0, sum(a * b for a, b in zip(asked, vector(memory["memory"], 1_024))))
            if likeness >= body.get("threshold", THRESHOLD) and fits(memory["metadata"], body.get("filters")):
                document = self.documents[memory["documentIds"][0]]
                source = {"id": document["id"], "createdAt": document["at"], "updatedAt": document["at"], "type": "text",
                          "metadata": document.get("metadata"), "title": ""}
                hits.append({"id": memory["id"], "memory": memory["memory"], "metadata": memory["metadata"],
                             "similarity": likeness, "updatedAt": memory["updatedAt"], "version": memory["version"],
                             **({"documents": [source]} if body.get("include", {}).get("documents") else {})})
        hits.sort(key=lambda hit: -hit["similarity"])
        return 200, {"results": hits[: body.get("limit", 10)], "timing": 1, "total": len(hits[: body.get("limit", 10)])}

    def post_v4_profile(self, body):
        members(body, ["containerTag"], ["filters", "q", "threshold"])
        known = [m for m in self.there([tag(body["containerTag"])]) if fits(m["metadata"], body.get("filters"))]
        static = [memory["memory"] for memory in known if memory["isStatic"]]
        return 200, {"profile": {"static": static, "dynamic": [m["memory"] for m in known if not m["isStatic"]][:20]}}

    def page(self, items, body):
        limit, page = int(body.get("limit", 50)), int(body.get("page", 1))
        require(1 <= limit <= 200 and page >= 1, "limit or page")
        total = max(1, -(-len(items) // limit))
        pagination = {"currentPage": page, "limit": limit, "totalItems": len(items), "totalPages": total}
        return items[(page - 1) * limit: page * limit], pagination


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = Supermemory()

    def exchange(self):
        said = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("authorization") != f"Bearer {KEY}":
            status, answer = 401, {"error": "Unauthorized", "details": "Invalid or missing API key"}
        else:
            try:
                body = json.loads(said) if said else None
                status, answer = self.service.answer(self.command, urlsplit(self.path).path, body)
            except (Refused, KeyError, TypeError, ValueError) as error:
                status, answer = 400, {"error": "Bad Request", "details": repr(error)}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = exchange

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
