"""A memory provider in Python: notes in the binding's storage, found by the words that they share with the question.

The world's functions are the methods of `Provider` below; componentize-py finds the class by its name. What each of
them must do is stated in `wit/provider.wit`.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Iterator, NoReturn, Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import provider
from wit_world.imports import storage, types

MEGABYTE = 1 << 20


@dataclass
class Note:
    """A note as it is stored, under `r/` and its id."""

    text: str
    summary: Optional[str]
    metadata: Optional[str]
    source: Optional[dict]
    partition: list
    created_at: str
    updated_at: str
    expires_at: Optional[str] = None

    def is_visible_in(self, scope: types.Scope) -> bool:
        """Whether a scope may see a note: it has no other value in a field that the note has set."""
        asked = partition_of(scope)
        return all(own is None or other is None or own == other for own, other in zip(self.partition, asked))

    def snippet(self, id: str, score: types.Score) -> types.Snippet:
        source = self.source and types.SourceRef(**{**self.source, "kind": kind_of(self.source["kind"])})
        return types.Snippet(
            id=id,
            text=self.text,
            score=score,
            summary=self.summary,
            source=source,
            metadata=self.metadata,
            created_at=self.created_at,
            updated_at=self.updated_at,
            expires_at=self.expires_at,
            scope=None,
        )


def partition_of(scope: types.Scope) -> list:
    return [scope.agent_id, scope.subject_id, scope.namespace]


def source_of(source: Optional[types.SourceRef]) -> Optional[dict]:
    """A source as it is stored: its kind is the name of its class, with the text of a kind that is not known."""
    return source and {**vars(source), "kind": [type(source.kind).__name__, *vars(source.kind).values()]}


def kind_of(stored: list) -> types.SourceKind:
    return getattr(types, stored[0])(*stored[1:])


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def invalid(field: str, message: str) -> NoReturn:
    raise Err(types.Error_InvalidRequest(types.InvalidRequest(field, message)))


def object_of(text: Optional[str], field: str) -> dict:
    """A JSON object, or nothing as an empty one."""
    try:
        value = json.loads(text) if text is not None else {}
    except ValueError as error:
        invalid(field, f"{field} is not JSON: {error}; send a JSON object")
    return value if isinstance(value, dict) else invalid(field, f"{field} is not an object; send a JSON object")


def is_equal(a: object, b: object) -> bool:
    """Equality as in JSON. In Python True equals 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_equal(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_equal, a, b))
    return a == b


def matches(note: Note, wanted: dict) -> bool:
    if not wanted:
        return True
    metadata = object_of(note.metadata, "metadata")
    return all(name in metadata and is_equal(metadata[name], value) for name, value in wanted.items())


# Storage. Everything that lasts is in it: an instance may be dropped after any call.


def stored(call, *arguments):
    """Calls storage and converts its errors into the contract's."""
    try:
        return call(*arguments)
    except Err as error:
        if isinstance(error.value, storage.Error_LimitExceeded):
            raise Err(types.Error_QuotaExceeded(error.value.value)) from error
        raise Err(types.Error_Internal(f"storage: {error.value.value}")) from error


def record_key(id: str) -> bytes:
    return b"r/" + id.encode()


def put(key: bytes, value: object) -> storage.Write:
    return storage.Write_Put(storage.Entry(key, json.dumps(value, ensure_ascii=False).encode()))


def get(id: str, scope: Optional[types.Scope]) -> Optional[Note]:
    """A note that the scope may see; without a scope any."""
    value = stored(storage.get, record_key(id))
    note = Note(**json.loads(value)) if value is not None else None
    return note if note and (scope is None or note.is_visible_in(scope)) else None


def notes_of(scope: types.Scope) -> Iterator[tuple[str, Note]]:
    """All notes that the scope may see, in the order of their ids."""
    cursor = None
    while True:
        page = stored(storage.scan, b"r/", cursor, 0)
        for entry in page.entries:
            note = Note(**json.loads(entry.value))
            if note.is_visible_in(scope):
                yield entry.key[2:].decode(), note
        cursor = page.next
        if cursor is None:
            return


def answered(mark: bytes) -> Optional[list[str]]:
    """The answer to an earlier delivery of this operation."""
    value = stored(storage.get, mark)
    return None if value is None else json.loads(value)


def operation_mark(operation_id: str) -> bytes:
    return b"o/" + operation_id.encode()


class Provider(exports.Provider):
    """The exported functions. Each raises `Err` of the contract's error; anything else that is raised is a trap."""

    def describe(self) -> provider.Description:
        return provider.Description(
            provider_key="notes-python",
            name="Notes in Python",
            version="0.1.0",
            summary="Notes, found by their words; an example in Python",
            config_schema=None,
            capabilities=provider.Capabilities(False, False),
            # A mark is looked up and then written. Two instances at once could both find none.
            max_concurrency=1,
            permissions=[
                provider.PermissionRequest(
                    provider.Permission_Storage(64 * MEGABYTE), "The notes are kept in it", False
                )
            ],
            # It does everything itself.
            declarations=provider.Declarations(None, None, [], []),
        )

    def validate_config(self, config: str) -> None:
        if object_of(config, "config"):
            complaint = "this provider has no configuration; leave it out"
            raise Err([provider.ConfigError("", complaint)])

    def capture(self, request: provider.CaptureRequest) -> provider.CaptureResponse:
        mark = operation_mark(request.operation_id)
        ids = answered(mark)
        if ids is None:
            said = "\n\n".join(f"{turn.role}: {turn.text}" for turn in request.payload.turns)
            texts = (request.payload.text, said or None, request.payload.object)
            text = next((text for text in texts if text is not None), None)
            if text is None:
                invalid("payload.text", "the payload has neither a text nor turns nor an object; send one of them")
            metadata = {
                **object_of(request.payload.metadata, "payload.metadata"),
                **object_of(request.metadata, "metadata"),
            }
            time = request.hook.triggered_at if request.hook else now()
            note = Note(
                text=text,
                summary=None,
                metadata=json.dumps(metadata, ensure_ascii=False) if metadata else None,
                source=source_of(request.source),
                partition=partition_of(request.scope),
                created_at=time,
                updated_at=time,
            )
            ids = [f"{request.operation_id}.0"]
            # One batch, so that after a crash either the note and its mark exist or neither.
            stored(storage.apply, [put(record_key(ids[0]), vars(note)), put(mark, ids)])
        return provider.CaptureResponse(ids, [], [])

    def upsert_records(self, request: provider.UpsertRequest) -> provider.UpsertResponse:
        mark = operation_mark(request.operation_id)
        ids = answered(mark)
        if ids is None:
            ids, writes, time = [], [], now()
            for n, record in enumerate(request.records):
                id = record.id if record.id is not None else f"{request.operation_id}.{n}"
                old = get(id, None)
                if old and not old.is_visible_in(request.scope):
                    invalid(f"records.{n}.id", "another agent, subject or namespace has this id; choose another one")
                note = Note(
                    text=record.text,
                    summary=record.summary,
                    metadata=record.metadata,
                    source=source_of(record.source or request.source),
                    partition=partition_of(request.scope),
                    created_at=record.created_at or (old.created_at if old else time),
                    updated_at=time,
                    expires_at=record.expires_at,
                )
                writes.append(put(record_key(id), vars(note)))
                ids.append(id)
            stored(storage.apply, [*writes, put(mark, ids)])
        return provider.UpsertResponse(ids, [])

    def query(self, request: types.QueryRequest) -> provider.ContextBundle:
        wanted = object_of(request.metadata_filter, "metadataFilter")
        words = set(request.query.lower().split())
        found = []
        for id, note in notes_of(request.scope):
            text = note.text.lower()
            share = sum(word in text for word in words) / len(words) if words else 0.0
            if (share > 0.0 or not words) and matches(note, wanted):
                found.append((share, note.updated_at, id, note))
        # Of equal hits the newest comes first, which is the order for an empty question.
        found.sort(key=lambda hit: hit[:3], reverse=True)
        snippets = [note.snippet(id, types.Score_Similarity(share)) for share, _, id, note in found[: request.top_k]]
        return provider.ContextBundle(snippets, None, [])

    def list_records(self, request: provider.ListRequest) -> types.ListPage:
        wanted = object_of(request.metadata_filter, "metadataFilter")
        items: list[types.Snippet] = []
        for id, note in notes_of(request.scope):
            # The cursor is the last id of the page before: it stays valid when that note is removed.
            if (request.cursor is not None and id.encode() <= request.cursor.encode()) or not matches(note, wanted):
                continue
            if len(items) == request.limit:
                return types.ListPage(items, types.Continuation_Next(items[-1].id), [])
            items.append(note.snippet(id, types.Score_None_()))
        return types.ListPage(items, types.Continuation_End(), [])

    def get_record(self, id: str, scope: types.Scope) -> provider.GetResponse:
        note = get(id, scope)
        return provider.GetResponse(note.snippet(id, types.Score_None_()) if note else None, [])

    def forget(self, request: provider.ForgetRequest) -> provider.ForgetResponse:
        gone, outcomes = set(), []
        for id in request.ids:
            is_there = id not in gone and get(id, request.scope) is not None
            effect = provider.ForgetEffect.HARD if is_there else provider.ForgetEffect.NOT_FOUND
            outcomes.append(provider.ForgetOutcome(id, effect))
            if is_there:
                gone.add(id)
        stored(storage.apply, [storage.Write_Delete(record_key(id)) for id in gone])
        return provider.ForgetResponse(outcomes, [])
