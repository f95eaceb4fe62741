#!/usr/bin/env python3
"""A stand-in for AWS AgentCore Memory, which nobody can run here. botocore is the oracle.

Usage: serve.py PORT. Prints `ready`, and ends with its standard input. Each request must have a signature that botocore's
signer makes of it, and an input that botocore's model of `bedrock-agentcore` allows; what botocore's client builds of that
input must be the request that came. Each answer must be an output of the model, and botocore's parser must read it. Events
are moto's. A session is extracted from when somebody lists records: each sentence of it becomes a record. An event that
says `impossible` fails, and is extracted from when its job is started again.
"""

import datetime
import json
import re
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import botocore.parsers
import botocore.serialize
import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.validate import ParamValidator
from moto.bedrockagentcore.exceptions import ResourceNotFoundException
from moto.bedrockagentcore.models import BedrockAgentCoreBackend

sys.path.insert(0, str(Path(__file__).parent.parent))
from models import vector  # noqa: E402

MEMORY = "memhost-AbCdEf0123"
SERVICE, REGION = "bedrock-agentcore", "eu-central-1"
ID, SECRET = "AKIDVENDORS", "memhost-vendors-secret-access-key"
KEY = f"{ID}:{SECRET}"
# The metadata keys that the memory resource indexes.
INDEXED = ["memhost_key", "topic"]
MODEL = botocore.session.get_session().get_service_model(SERVICE)
PARSER = botocore.parsers.create_parser(MODEL.protocol)
SERIALIZER = botocore.serialize.create_serializer(MODEL.protocol, include_validation=False)
SEPARATOR = re.compile(r"(?<=\.)\s+")


class Refused(Exception):
    def __init__(self, status, kind, message):
        super().__init__(message)
        self.status, self.kind = status, kind


def invalid(message):
    return Refused(400, "ValidationException", message)


def operations():
    found = []
    for name in MODEL.operation_names:
        operation = MODEL.operation_model(name)
        path = operation.http["requestUri"]
        if path.startswith("/memories/"):
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path))
            found.append((operation.http["method"], re.compile(pattern), operation))
    return found


OPERATIONS = operations()


def check(shape, value, at):
    """Whether a value is of a shape, with its patterns, lengths and names, which botocore leaves to the service."""
    kind, limits = shape.type_name, shape.metadata
    if kind == "structure":
        # A document has no members, and is any JSON.
        if getattr(shape, "is_document_type", False):
            return
        if not isinstance(value, dict) or set(value) - set(shape.members):
            raise invalid(f"{at}: {value!r} has members that are not of {shape.name}")
        if missing := set(shape.required_members) - set(value):
            raise invalid(f"{at}: {missing} is missing")
        if getattr(shape, "is_tagged_union", False) and len(value) != 1:
            raise invalid(f"{at}: is not one of {list(shape.members)}")
        for name, member in value.items():
            check(shape.members[name], member, f"{at}.{name}")
        return
    if kind in ("list", "map"):
        length = len(value)
        items = value.items() if kind == "map" else enumerate(value)
        for name, item in items:
            if kind == "map":
                check(shape.key, name, f"{at}.{name}")
            check(shape.value if kind == "map" else shape.member, item, f"{at}.{name}")
    elif kind == "string":
        length = len(value)
        if "pattern" in limits and not re.fullmatch(limits["pattern"], value):
            raise invalid(f"{at}: {value!r} is not {limits['pattern']}")
        if value not in limits.get("enum", [value]):
            raise invalid(f"{at}: {value!r} is not of {limits['enum']}")
    elif kind in ("integer", "long"):
        length = value
    else:
        return
    if not limits.get("min", length) <= length <= limits.get("max", length):
        raise invalid(f"{at}: {length} is not within {limits}")


def read_times(shape, value):
    """Numbers as times, where the model has times."""
    if shape.type_name == "structure" and isinstance(value, dict):
        return {n: read_times(shape.members[n], v) if n in shape.members else v for n, v in value.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [read_times(shape.member, v) for v in value]
    if shape.type_name == "map" and isinstance(value, dict):
        return {n: read_times(shape.value, v) for n, v in value.items()}
    if shape.type_name == "timestamp":
        return datetime.datetime.fromtimestamp(value, datetime.timezone.utc)
    return value


def read(method, target, body):
    """The operation and its input. botocore's serializer must make this request of them."""
    url = urlsplit(target)
    for known, pattern, operation in OPERATIONS:
        found = pattern.fullmatch(url.path)
        if known == method and found:
            break
    else:
        raise Refused(404, "UnknownOperationException", f"{method} {url.path}")
    shape = operation.input_shape
    names = {member.serialization.get("name", name): name for name, member in shape.members.items()}
    given = {names[name]: unquote(value) for name, value in found.groupdict().items()}
    given |= {names[name]: values[0] for name, values in parse_qs(url.query).items()}
    given |= read_times(shape, json.loads(body)) if body else {}
    check(shape, given, operation.name)
    report = ParamValidator().validate(given, shape)
    if report.has_errors():
        raise invalid(report.generate_report())
    built = SERIALIZER.serialize_to_request(given, operation)
    sent = json.loads(built["body"]) if built["body"] else None
    assert (built["method"], built["url_path"], sent) == (method, url.path, json.loads(body) if body else None), (built, target, body)
    return operation, given


def verify(method, target, headers, body):
    """The signature must be what botocore's signer makes."""
    said = headers.get("authorization") or ""
    match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=\w+", said)
    if not match:
        raise Refused(403, "AccessDeniedException", "Missing Authentication Token")
    time = datetime.datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    if abs((datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - time).total_seconds()) > 300:
        raise Refused(403, "AccessDeniedException", "Signature expired")
    signed = {name: headers[name] for name in match[2].split(";")}
    request = AWSRequest(method=method, url=f"http://{headers['host']}{target}", headers=signed, data=body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(ID, SECRET), SERVICE, REGION)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    expected = signer.signature(text, request)
    if match[1] != f"{ID}/{headers['x-amz-date'][:8]}/{REGION}/{SERVICE}/aws4_request" or not said.endswith(expected):
        raise Refused(403, "AccessDeniedException", "The request signature we calculated does not match")


def fits(record, filters):
    for one in filters or []:
        name, operator = one["left"]["metadataKey"], one["operator"]
        if name not in INDEXED:
            raise invalid(f"the metadata key {name} is not indexed")
        assert operator == "EQUALS_TO"
        if record["metadata"].get(name) != one["right"]["metadataValue"]:
            return False
    return True


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class AgentCore:
    def __init__(self):
        self.lock = threading.Lock()
        self.events = BedrockAgentCoreBackend(REGION, "123456789012")
        self.records, self.tokens, self.failed, self.extracted = {}, {}, {}, set()

    def call(self, operation, given):
        if given.pop("memoryId") != MEMORY:
            raise Refused(404, "ResourceNotFoundException", "Memory not found")
        with self.lock:
            return getattr(self, operation.name)(**given)

    # Events

    def CreateEvent(self, actorId, eventTimestamp, payload, sessionId=None, clientToken=None, metadata=None):
        if clientToken in self.tokens:
            return {"event": self.shown(self.tokens[clientToken])}
        event = self.events.create_event(MEMORY, actorId, sessionId, eventTimestamp, payload, None, metadata)
        if clientToken:
            self.tokens[clientToken] = event
        return {"event": self.shown(event)}

    def shown(self, event, payload=True):
        return event.to_dict() if payload else {**event.to_dict(False), "payload": []}

    def GetEvent(self, actorId, sessionId, eventId):
        return {"event": self.shown(self.events.get_event(MEMORY, actorId, sessionId, eventId))}

    def DeleteEvent(self, actorId, sessionId, eventId):
        return {"eventId": self.events.delete_event(MEMORY, actorId, sessionId, eventId)}

    def ListEvents(self, actorId, sessionId, maxResults=20, nextToken=None, includePayloads=True):
        found = self.events.list_events(MEMORY, actorId, sessionId, None)
        page, more = self.page(found, maxResults, nextToken)
        return {"events": [self.shown(event, includePayloads) for event in page], **more}

    def ListActors(self, maxResults=20, nextToken=None):
        names = sorted({actor for _, actor, _ in self.events.events})
        page, more = self.page(names, maxResults, nextToken)
        return {"actorSummaries": [{"actorId": name} for name in page], **more}

    def ListSessions(self, actorId, maxResults=20, nextToken=None):
        names = sorted({session for _, actor, session in self.events.events if actor == actorId})
        page, more = self.page(names, maxResults, nextToken)
        return {"sessionSummaries": [{"sessionId": name, "actorId": actorId, "createdAt": now()} for name in page], **more}

    # Extraction

    def extract(self):
        for (_, actor, session), events in self.events.events.items():
            for event in list(events.values()):
                if event.event_id in self.extracted:
                    continue
                self.extracted.add(event.event_id)
                texts = [part["conversational"]["content"]["text"] for part in event.payload]
                if any("impossible" in text for text in texts):
                    job = f"job-{secrets.token_hex(8)}"
                    self.failed[job] = {"jobID": job, "status": "FAILED", "failureReason": "the model did not answer",
                                        "strategyId": "facts-0123456789", "sessionId": session, "actorId": actor,
                                        "messages": {"messagesList": [{"eventId": event.event_id, "messageIndex": 0}]}}
                else:
                    self.learn(actor, texts)

    def learn(self, actor, texts):
        for text in (sentence for text in texts for sentence in SEPARATOR.split(text) if sentence.strip()):
            self.make([f"/memhost/{actor}/facts"], {"text": text.strip()}, now(), {}, "facts-0123456789")

    def ListMemoryExtractionJobs(self, maxResults=20, nextToken=None, filter=None):
        self.extract()
        wanted = filter or {}
        found = [job for job in self.failed.values() if all(job[name] == value for name, value in wanted.items())]
        page, more = self.page(found, maxResults, nextToken)
        return {"jobs": page, **more}

    def StartMemoryExtractionJob(self, extractionJob, clientToken=None):
        job = self.failed.pop(extractionJob["jobId"], None)
        if job is None:
            raise Refused(404, "ResourceNotFoundException", "Job not found")
        event = self.events.get_event(MEMORY, job["actorId"], job["sessionId"], job["messages"]["messagesList"][0]["eventId"])
        self.learn(job["actorId"], [part["conversational"]["content"]["text"] for part in event.payload])
        return {"jobId": job["jobID"]}

    # Records

    def make(self, namespaces, content, timestamp, metadata, strategy):
        record = {"memoryRecordId": f"mem-{secrets.token_hex(18)}", "content": content, "memoryStrategyId": strategy,
                  "namespaces": namespaces, "createdAt": now(), "timestamp": timestamp, "metadata": metadata}
        self.records[record["memoryRecordId"]] = record
        return record["memoryRecordId"]

    def outcomes(self, records, act):
        done, failed = [], []
        for record in records:
            try:
                done.append({"memoryRecordId": act(record), "status": "SUCCEEDED",
                             **{name: record[name] for name in ["requestIdentifier"] if name in record}})
            except KeyError:
                failed.append({"memoryRecordId": record["memoryRecordId"], "status": "FAILED", "errorCode": 404,
                               "errorMessage": "Memory record not found"})
        return {"successfulRecords": done, "failedRecords": failed}

    def BatchCreateMemoryRecords(self, records, clientToken=None):
        def create(new):
            strategy = new.get("memoryStrategyId", "none-0123456789")
            return self.make(new["namespaces"], new["content"], new["timestamp"], new.get("metadata", {}), strategy)

        return self.outcomes(records, create)

    def BatchUpdateMemoryRecords(self, records):
        def update(new):
            old = self.records[new["memoryRecordId"]]
            old["timestamp"] = new["timestamp"]
            old.update({name: new[name] for name in ["content", "namespaces"] if name in new})
            # What was there before and is not given again stays: whether it does is not told.
            old["metadata"] = {**old["metadata"], **new.get("metadata", {})}
            return old["memoryRecordId"]

        return self.outcomes(records, update)

    def BatchDeleteMemoryRecords(self, records):
        return self.outcomes(records, lambda one: self.records.pop(one["memoryRecordId"])["memoryRecordId"])

    def GetMemoryRecord(self, memoryRecordId):
        if memoryRecordId not in self.records:
            raise Refused(404, "ResourceNotFoundException", "Memory record not found")
        return {"memoryRecord": self.given(self.records[memoryRecordId])}

    def DeleteMemoryRecord(self, memoryRecordId):
        if self.records.pop(memoryRecordId, None) is None:
            raise Refused(404, "ResourceNotFoundException", "Memory record not found")
        return {"memoryRecordId": memoryRecordId}

    def given(self, record):
        return {name: value for name, value in record.items() if name != "metadata" or value}

    def below(self, path, filters):
        self.extract()
        found = [record for record in self.records.values() if any(name.startswith(path) for name in record["namespaces"])]
        return [record for record in found if fits(record, filters)]

    def ListMemoryRecords(self, namespacePath, maxResults=20, nextToken=None, metadataFilters=None):
        page, more = self.page(self.below(namespacePath, metadataFilters), maxResults, nextToken)
        return {"memoryRecordSummaries": [self.given(record) for record in page], **more}

    def RetrieveMemoryRecords(self, namespacePath, searchCriteria, maxResults=20, nextToken=None):
        asked = vector(searchCriteria["searchQuery"], 1_024)
        hits = []
        for record in self.below(namespacePath, searchCriteria.get("metadataFilters")):
            likeness = min(1.0, sum(a * b for a, b in zip(asked, vector(record["content"]["text"], 1_024))))
            if likeness > 0:
                hits.append({**self.given(record), "score": likeness})
        hits.sort(key=lambda hit: -hit["score"])
        page, more = self.page(hits[: searchCriteria.get("topK", 10)], maxResults, nextToken)
        return {"memoryRecordSummaries": page, **more}

    def page(self, items, most, token):
        start = int(token or 0)
        more = {"nextToken": str(start + most)} if start + most < len(items) else {}
        return items[start: start + most], more


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = AgentCore()
    checks_signatures = True

    def exchange(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {"content-type": "application/json"}
        try:
            if self.checks_signatures:
                verify(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            operation, given = read(self.command, self.path, body)
            output = self.service.call(operation, given)
            check(operation.output_shape, output, operation.name)
            status = operation.http["responseCode"]
            said = json.dumps(output, default=lambda time: time.timestamp()).encode()
            parsed = PARSER.parse({"status_code": status, "headers": headers, "body": said}, operation.output_shape)
            parsed.pop("ResponseMetadata")
            assert json.loads(json.dumps(parsed, default=lambda time: time.timestamp())) == json.loads(said), (parsed, said)
        except (Refused, ResourceNotFoundException) as error:
            status = getattr(error, "status", 404)
            headers["x-amzn-errortype"] = getattr(error, "kind", "ResourceNotFoundException")
            said = json.dumps({"message": str(error)}).encode()
        except Exception as error:
            # The provider or this stand-in is wrong: no vendor answers like this.
            print(f"{self.command} {self.path}: {error!r}", file=sys.stderr, flush=True)
            status, said = 418, json.dumps({"message": repr(error)}).encode()
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(said))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_DELETE = exchange

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    # The recorder has no host that signs.
    Handler.checks_signatures = "--unsigned" not in sys.argv
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
