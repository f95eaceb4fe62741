//! Every field of every request has a limit, its check keeps it, and the document says it.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    BrowseRequest, CaptureRequest, CorrectRequest, ExportRequest, FieldError, ForgetRequest,
    ForgetScopeRequest, GetRequest, HookEvent, ImportRequest, ListRequest, NewEvent,
    NewFinanceEvent, QueryRequest, ReviewDecision, UpsertRequest,
};

/// A request: its schema, its check, and an example that has every field.
struct Request {
    schema: Value,
    check: Box<dyn Fn(Value) -> Result<(), Refused>>,
    example: Value,
}

#[derive(Debug)]
enum Refused {
    /// It cannot be read.
    Unread(String),
    Field(FieldError),
}

fn request<T: JsonSchema + DeserializeOwned + 'static>(
    check: fn(&T) -> Result<(), FieldError>,
    example: Value,
) -> Request {
    let check = move |value| {
        let read: T =
            serde_json::from_value(value).map_err(|error| Refused::Unread(error.to_string()))?;
        check(&read).map_err(Refused::Field)
    };
    Request { schema: schema_for!(T).to_value(), check: Box::new(check), example }
}

fn requests() -> Vec<Request> {
    let scope = json!({
        "companyId": "a", "agentId": "a", "projectId": "a", "issueId": "a", "runId": "a",
        "subjectId": "a", "sessionKey": "a", "namespace": "a",
    });
    let source = json!({
        "kind": "run", "companyId": "a", "issueId": "a", "commentId": "a", "documentKey": "a",
        "runId": "a", "activityId": "a", "externalRef": "a", "assertedBy": "a",
    });
    let at = "2026-01-01T00:00:00Z";
    let turn = json!({"role": "a", "name": "a", "text": "a", "at": at});
    let payload =
        json!({"text": "a", "turns": [turn], "mimeType": "a", "metadata": {}, "object": {}});
    let record = json!({
        "id": "a", "text": "a", "summary": "a", "metadata": {}, "source": source, "createdAt": at,
        "expiresAt": at,
    });
    let handle = json!({"providerKey": "a", "providerRecordId": "a"});
    let hook = json!({
        "hookKind": "a", "hookId": "a", "triggeredAt": at, "actorAgentId": "a",
        "heartbeatRunId": "a", "assertedBy": "a",
    });
    let filter = json!({
        "sourceKind": "run", "issueId": "a", "commentId": "a", "documentKey": "a", "runId": "a",
        "projectId": "a", "agentId": "a", "subjectId": "a", "since": at, "until": at, "text": "a",
    });
    let of = |fields: Value| {
        let mut whole = json!({"bindingKey": "a", "scope": scope});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        whole
    };
    vec![
        request(
            CaptureRequest::check,
            of(json!({
                "source": source, "payload": payload, "hook": hook, "mode": "capture_record",
                "metadata": {}, "visibility": "agent", "replacesSource": false,
            })),
        ),
        request(
            UpsertRequest::check,
            of(json!({"source": source, "records": [record], "visibility": "agent"})),
        ),
        request(
            QueryRequest::check,
            of(json!({
                "query": "a", "topK": 1, "intent": "answer", "metadataFilter": {},
                "tokenBudget": 1, "filter": filter,
            })),
        ),
        request(
            ListRequest::check,
            of(json!({"cursor": "a", "limit": 1, "metadataFilter": {}, "filter": filter})),
        ),
        request(BrowseRequest::check, of(json!({"path": "a", "cursor": "a", "limit": 1}))),
        request(GetRequest::check, of(json!({"handle": handle}))),
        request(ForgetRequest::check, of(json!({"handles": [handle]}))),
        request(ForgetScopeRequest::check, of(json!({}))),
        request(
            CorrectRequest::check,
            of(json!({"handle": handle, "patch": {"instruction": "a"}})),
        ),
        request(CorrectRequest::check, of(json!({"handle": handle, "patch": {"record": record}}))),
        request(ExportRequest::check, of(json!({"cursor": "a"}))),
        request(ImportRequest::check, of(json!({"lines": "1"}))),
        request(
            HookEvent::check,
            of(json!({
                "hookKind": "a", "hookId": "a", "triggeredAt": at, "actorAgentId": "a",
                "heartbeatRunId": "a", "source": source, "payload": payload,
                "mode": "capture_record", "metadata": {}, "query": "a", "topK": 1,
                "tokenBudget": 1, "deadlineMs": 1, "waitMs": 1, "visibility": "agent",
                "replacesSource": false,
            })),
        ),
        request(
            NewEvent::check,
            json!({
                "eventId": "a", "type": "tool_call.failed", "projectId": "a", "sessionId": "a",
                "agentKind": "a", "agentId": "a", "runId": "a", "toolId": "a", "status": "a",
                "durationMs": 1, "error": "a", "occurredAt": at, "details": {},
            }),
        ),
        request(
            NewFinanceEvent::check,
            json!({
                "eventKind": "a", "direction": "debit", "biller": "a", "provider": "a",
                "bindingKey": "a", "agentId": "a", "description": "a", "billingCode": "a",
                "issueId": "a", "projectId": "a", "heartbeatRunId": "a",
                "costEventId": "01a206b4-3e83-7045-8000-00000145ac37", "quantity": 1, "unit": "a",
                "amountCents": 1, "currency": "USD", "estimated": true, "externalInvoiceId": "a",
                "metadataJson": {}, "occurredAt": at,
            }),
        ),
        request(ReviewDecision::check, json!({"decision": "edit", "text": "a"})),
    ]
}

/// What a field may be at most.
#[derive(Debug, Clone, PartialEq)]
enum Limit {
    Text(u64),
    Items(u64),
    /// Bytes and levels of free-form JSON.
    Json(u64, u64),
    Number(String),
    /// One of a few words, a time, an amount: always short.
    Short,
}

impl Limit {
    fn words(&self) -> Option<String> {
        let bytes = |count: u64| match count {
            count if count >= 1 << 20 && count.is_multiple_of(1 << 20) => {
                format!("{} MiB", count >> 20)
            }
            count if count >= 1 << 10 && count.is_multiple_of(1 << 10) => {
                format!("{} KiB", count >> 10)
            }
            count => format!("{count} bytes"),
        };
        match self {
            Self::Text(most) => Some(bytes(*most)),
            Self::Items(most) => Some(format!("{most} elements")),
            Self::Json(most, levels) => Some(format!("{} as JSON, {levels} levels", bytes(*most))),
            Self::Number(range) => Some(range.clone()),
            Self::Short => None,
        }
    }
}

/// A field of a type: its limit, and where it is in the request.
struct Field {
    of: String,
    name: String,
    pointer: String,
    limit: Limit,
}

struct Walk<'a> {
    root: &'a Value,
    fields: Vec<Field>,
}

impl Walk<'_> {
    fn object(&mut self, schema: &Value, of: &str, pointer: &str) {
        for (name, field) in schema["properties"].as_object().unwrap() {
            self.field(field, (of, name), &format!("{pointer}/{name}"));
        }
    }

    fn field(&mut self, schema: &Value, (of, name): (&str, &str), pointer: &str) {
        if let Some(name_of_type) = schema["$ref"].as_str() {
            let short = name_of_type.rsplit('/').next().unwrap();
            let mut found = self.root["$defs"][short].clone();
            if found["properties"].is_object() {
                return self.object(&found, short, pointer);
            }
            // What is beside the reference also holds.
            let beside = schema.as_object().unwrap().iter().filter(|(word, _)| *word != "$ref");
            found
                .as_object_mut()
                .unwrap()
                .extend(beside.map(|(word, value)| (word.clone(), value.clone())));
            return self.field(&found, (of, name), pointer);
        }
        if let Some(some) = schema["anyOf"].as_array() {
            let present = some.iter().find(|one| one["type"] != "null").unwrap();
            return self.field(present, (of, name), pointer);
        }
        let kind = schema["type"]
            .as_str()
            .or_else(|| schema["type"].as_array()?.first()?.as_str())
            .unwrap_or_default();
        let number = |word: &str| schema[word].as_u64();
        let is_chosen =
            schema["enum"].is_array() || schema["oneOf"].is_array() || schema["const"].is_string();
        let is_formatted = matches!(schema["format"].as_str(), Some("date-time" | "uuid"));
        let limit = match kind {
            "" | "string" if is_chosen => Limit::Short,
            "string" if is_formatted => Limit::Short,
            "string" => match (number("maxLength"), schema["pattern"].as_str()) {
                (Some(most), _) => Limit::Text(most),
                (None, Some("^[A-Z]{3}$")) => Limit::Text(3),
                _ => {
                    panic!("{of}.{name} has no limit; give its schema one and keep it in its check")
                }
            },
            "array" => {
                self.field(&schema["items"], (of, &format!("{name}[]")), &format!("{pointer}/0"));
                Limit::Items(
                    number("maxItems").unwrap_or_else(|| panic!("{of}.{name} has no limit")),
                )
            }
            "object" => {
                let most =
                    number("x-max-bytes").unwrap_or_else(|| panic!("{of}.{name} has no limit"));
                Limit::Json(most, number("x-max-depth").unwrap())
            }
            "integer" | "number" => match (number("minimum"), number("maximum")) {
                (Some(least), Some(most)) => Limit::Number(format!("{least} to {most}")),
                // A number takes eight bytes, whatever it is.
                _ => Limit::Short,
            },
            "boolean" => Limit::Short,
            other => panic!("{of}.{name} is {other:?}"),
        };
        self.fields.push(Field {
            of: of.to_owned(),
            name: name.to_owned(),
            pointer: pointer.to_owned(),
            limit,
        });
    }
}

fn fields(request: &Request) -> Vec<Field> {
    let title = request.schema["title"].as_str().unwrap().to_owned();
    let mut walk = Walk { root: &request.schema, fields: Vec::new() };
    walk.object(&request.schema, &title, "");
    walk.fields
}

fn with(example: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = example.clone();
    *changed.pointer_mut(pointer).unwrap() = value;
    changed
}

/// A value as large as the limit allows, and one that is a little larger.
fn around(limit: &Limit, at: &Value) -> Option<(Value, Value)> {
    let text = |length: u64| json!("1".repeat(usize::try_from(length).unwrap()));
    let list = |count: u64| Value::Array(vec![at[0].clone(); usize::try_from(count).unwrap()]);
    // `{"a":"…"}` has eight bytes beside the text.
    let object = |bytes: u64| json!({"a": "x".repeat(usize::try_from(bytes - 8).unwrap())});
    Some(match limit {
        Limit::Text(most) => (text(*most), text(most + 1)),
        Limit::Items(most) => (list(*most), list(most + 1)),
        Limit::Json(most, _) => (object(*most), object(most + 1)),
        Limit::Number(range) => {
            let (_, most) = range.split_once(" to ").unwrap();
            let most: u64 = most.parse().unwrap();
            (json!(most), json!(most + 1))
        }
        Limit::Short => return None,
    })
}

#[test]
fn every_field_of_every_request_has_a_limit_that_its_check_keeps() {
    let mut tried = 0;
    for request in requests() {
        (request.check)(request.example.clone()).unwrap();
        for field in fields(&request) {
            let Some(at) = request.example.pointer(&field.pointer) else {
                // The other half of a correction.
                assert!(
                    field.pointer.starts_with("/patch/"),
                    "the example of {} has no {}",
                    field.of,
                    field.pointer
                );
                continue;
            };
            let Some((fits, too_large)) = around(&field.limit, at) else { continue };
            let path = field.pointer[1..].replace('/', ".");
            tried += 1;
            // These are more than texts: a currency, lines of JSON, and companies that must be the
            // same.
            if !["currency", "lines"].contains(&path.as_str()) && !path.ends_with("companyId") {
                let refused = (request.check)(with(&request.example, &field.pointer, fits)).err();
                assert!(
                    refused.is_none(),
                    "{}: {path} as long as it may be is refused: {refused:?}",
                    field.of
                );
            }
            match (request.check)(with(&request.example, &field.pointer, too_large)) {
                Ok(()) => panic!("{}: {path} may be longer than {:?}", field.of, field.limit),
                Err(Refused::Field(error)) => {
                    assert_eq!(error.field, path);
                    assert!(error.message.len() < 200, "{} repeats what was sent", error.field);
                }
                // Ids are checked while they are read.
                Err(Refused::Unread(message)) => assert!(message.len() < 300, "{path}: {message}"),
            }
        }
    }
    assert!(tried > 150, "only {tried} fields were tried");
}

#[test]
fn free_form_json_is_not_deeper_than_it_may_be() {
    let deep = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    for request in requests() {
        for field in fields(&request) {
            let Limit::Json(_, levels) = field.limit else { continue };
            let levels = usize::try_from(levels).unwrap();
            if request.example.pointer(&field.pointer).is_none() {
                continue;
            }
            let check =
                |levels| (request.check)(with(&request.example, &field.pointer, deep(levels)));
            check(levels).unwrap();
            assert!(check(levels + 1).is_err(), "{}{}", field.of, field.pointer);
        }
    }
}

/// `UPDATE_DOCS=1` writes the table into the document.
#[test]
fn the_document_has_the_limit_of_each_field() {
    let mut rows: BTreeMap<(String, String), String> = BTreeMap::new();
    for field in requests().iter().flat_map(fields) {
        if let Some(words) = field.limit.words() {
            rows.insert((field.of, field.name), words);
        }
    }
    let mut table = "| type | field | at most |\n| --- | --- | --- |\n".to_owned();
    for ((of, name), words) in rows {
        table.push_str(&format!("| {of} | `{name}` | {words} |\n"));
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limits.md");
    let text = std::fs::read_to_string(page).unwrap();
    let from = text.find("| type | field |").unwrap();
    let end = text[from..].find("\n\n").map_or(text.len(), |end| from + end + 1);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page, format!("{}{table}{}", &text[..from], &text[end..])).unwrap();
        return;
    }
    assert!(
        text[from..end] == table,
        "{page} differs from the limits of the fields; UPDATE_DOCS=1 writes it anew"
    );
}
