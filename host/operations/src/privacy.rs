//! Personal data in a request: held back or redacted where the provider can send it to another
//! system. All of a request is looked at, and only texts are rewritten: an id, a source, a key or a
//! number that was rewritten would be another one.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use memhost_executor::{expect_off_executor, off_executor};
use memhost_pii::{self as pii, PiiRisk};
use memhost_registry::versions::Serving;
use memhost_types::{
    CaptureRequest, CorrectRequest, FieldError, ImportRequest, JsonObject, OperationErrorCode,
    PiiPolicy, QueryRequest, RecordWrite, Refusal, UpsertRequest, texts_in,
};

/// The shortest checksum, in hexadecimal digits; a UUID without hyphens has as many.
const MIN_HASH: usize = 32;

/// A text of a request and the member that it is the value of, if it has a name there.
type Visit<'a> = &'a mut dyn FnMut(&str, &mut String);

/// A request whose texts can be read and rewritten.
pub(crate) trait Texts: Serialize {
    /// Calls `visit` with every text of the request that comes from people.
    fn texts(&mut self, visit: Visit<'_>);

    /// All of the request as JSON, in the parts that can be looked at one by one.
    fn parts(&self) -> Vec<Value> {
        serde_json::to_value(self).into_iter().collect()
    }

    /// Whether the request only reads.
    fn is_read(&self) -> bool {
        false
    }
}

fn object(object: &mut Option<JsonObject>, visit: Visit<'_>) {
    for (name, member) in object.iter_mut().flatten() {
        texts_in(name, member, visit);
    }
}

fn record(record: &mut RecordWrite, visit: Visit<'_>) {
    visit("", &mut record.text);
    record.summary.iter_mut().for_each(|summary| visit("", summary));
    object(&mut record.metadata, visit);
}

impl Texts for CaptureRequest {
    fn texts(&mut self, visit: Visit<'_>) {
        self.payload.text.iter_mut().for_each(|text| visit("", text));
        for turn in &mut self.payload.turns {
            turn.name.iter_mut().for_each(|name| visit("", name));
            visit("", &mut turn.text);
        }
        object(&mut self.payload.object, visit);
        object(&mut self.payload.metadata, visit);
        object(&mut self.metadata, visit);
    }
}

impl Texts for UpsertRequest {
    fn texts(&mut self, visit: Visit<'_>) {
        self.records.iter_mut().for_each(|one| record(one, visit));
    }
}

impl Texts for QueryRequest {
    fn texts(&mut self, visit: Visit<'_>) {
        visit("", &mut self.query);
        object(&mut self.metadata_filter, visit);
    }

    fn is_read(&self) -> bool {
        true
    }
}

impl Texts for ImportRequest {
    /// Visits the strings of each line. A line stays JSON.
    fn texts(&mut self, visit: Visit<'_>) {
        let mut changed = String::with_capacity(self.lines.len());
        let mut is_changed = false;
        for line in self.lines.lines() {
            let Ok(mut value) = serde_json::from_str::<Value>(line) else {
                changed.push_str(line);
                changed.push('\n');
                continue;
            };
            let mut touched = false;
            texts_in("", &mut value, &mut |name, text| {
                if names_something(name) {
                    return;
                }
                let before = text.clone();
                visit(name, text);
                touched |= *text != before;
            });
            // A line is written anew only where a text changed: JSON numbers may come back in
            // another form.
            changed.push_str(&if touched { value.to_string() } else { line.to_owned() });
            changed.push('\n');
            is_changed |= touched;
        }
        if is_changed {
            self.lines = changed;
        }
    }

    fn parts(&self) -> Vec<Value> {
        let rest = serde_json::to_value(Self { lines: String::new(), ..self.clone() });
        let lines = self.lines.lines().filter_map(|line| serde_json::from_str(line).ok());
        rest.into_iter().chain(lines).collect()
    }
}

impl Texts for CorrectRequest {
    fn texts(&mut self, visit: Visit<'_>) {
        self.patch.instruction.iter_mut().for_each(|text| visit("", text));
        self.patch.record.iter_mut().for_each(|one| record(one, visit));
    }
}

/// Whether the binding's provider can send what it gets to another system.
fn leaves(serving: &Serving) -> bool {
    !serving.grants.http.is_empty()
}

/// How long the texts of a request are together.
fn bytes(request: &mut impl Texts) -> usize {
    let mut bytes = 0_usize;
    request.texts(&mut |_, text| bytes = bytes.saturating_add(text.len()));
    bytes
}

/// Whether a text is an id that no person has: a UUID, a checksum or a time.
fn is_id(text: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = || {
        text.len() == 36
            && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
            && text.split('-').all(is_hex)
    };
    is_uuid() || (text.len() >= MIN_HASH && is_hex(text)) || text.parse::<jiff::Timestamp>().is_ok()
}

/// Whether a member of a provider's line has an id or a source, by its name.
fn names_something(member: &str) -> bool {
    member == "id" || member.ends_with("Id") || member.ends_with("_id") || member == "externalRef"
}

/// The risk of one text.
fn risk_of(name: &str, text: &str) -> PiiRisk {
    expect_off_executor("the search for personal data", text.len());
    match is_id(text) {
        true => PiiRisk::None,
        false => pii::risk(&pii::named(name, text)),
    }
}

/// The highest risk in a JSON value, its keys and numbers included, and the JSON pointer of the
/// first value that has it.
fn risk_in(found: &Value) -> (PiiRisk, String) {
    let (mut highest, mut at) = (PiiRisk::None, String::new());
    // The pointer to each value, the name of the member that it is in, and the value.
    let mut left = vec![(String::new(), "", found)];
    while let Some((pointer, name, value)) = left.pop() {
        let mut note = |risk: PiiRisk, pointer: &str| {
            if risk > highest {
                (highest, at) = (risk, pointer.to_owned());
            }
        };
        match value {
            Value::String(text) => note(risk_of(name, text), &pointer),
            Value::Number(number) => note(risk_of(name, &number.to_string()), &pointer),
            Value::Array(items) => left.extend(
                items.iter().enumerate().map(|(n, item)| (format!("{pointer}/{n}"), name, item)),
            ),
            Value::Object(members) => {
                for (key, member) in members {
                    note(risk_of("", key), &pointer);
                    left.push((format!("{pointer}/{key}"), key, member));
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
    (highest, at)
}

/// The risk of a record as it is shown.
pub(crate) fn risk_of_record(text: &str, metadata: Option<&JsonObject>) -> PiiRisk {
    let of_metadata = |metadata: &JsonObject| {
        let risks = metadata.iter().map(|(name, value)| match value {
            Value::String(text) => risk_of("", name).max(risk_of(name, text)),
            value => risk_of("", name).max(risk_in(value).0),
        });
        risks.max().unwrap_or_default()
    };
    off_executor(text.len(), || risk_of("", text).max(metadata.map_or(PiiRisk::None, of_metadata)))
}

/// The highest risk in a request, and where.
fn risk(request: &mut impl Texts) -> (PiiRisk, String) {
    off_executor(bytes(request), || {
        let risks = request.parts().into_iter().map(|part| risk_in(&part));
        risks.reduce(|one, other| if other.0 > one.0 { other } else { one }).unwrap_or_default()
    })
}

/// Whether a request must wait for a person before it goes to this binding's provider.
pub(crate) fn must_wait(serving: &Serving, request: &mut (impl Texts + Clone)) -> bool {
    let is_high = |request: &mut _| risk(request).0 == PiiRisk::High;
    leaves(serving)
        && match serving.binding.policy.pii {
            PiiPolicy::Allow => false,
            PiiPolicy::Hold => is_high(request),
            // What redacting leaves.
            PiiPolicy::Redact => {
                is_high(request) && {
                    let mut redacted = request.clone();
                    redact(&mut redacted);
                    is_high(&mut redacted)
                }
            }
        }
}

/// Applies the binding's policy to a request that cannot wait.
pub(crate) fn private(serving: &Serving, request: &mut impl Texts) -> Result<(), Refusal> {
    let policy = serving.binding.policy.pii;
    if policy == PiiPolicy::Allow || !leaves(serving) {
        return Ok(());
    }
    if policy == PiiPolicy::Hold && !request.is_read() {
        if risk(request).0 < PiiRisk::High {
            return Ok(());
        }
        let message = format!(
            "there is personal data in it, and the binding `{}` holds that back before it leaves \
             for another system; \
             take it out, or capture it: captures wait for a person",
            serving.binding.key
        );
        return Err(Refusal::new(OperationErrorCode::ReviewRequired, message));
    }
    redact(request);
    match risk(request) {
        (PiiRisk::High, at) => {
            let field = at.trim_start_matches('/').replace('/', ".");
            let message = format!(
                "has personal data, and the binding `{}` sends what it gets to another system; \
                 texts are redacted, and ids, sources, keys and numbers are not: take it out",
                serving.binding.key
            );
            Err(FieldError::new(field, message).into())
        }
        _ => Ok(()),
    }
}

/// What a person has approved of a binding that redacts is the ids and names that cannot be.
pub(crate) fn redact_approved(serving: &Serving, request: &mut impl Texts) {
    if serving.binding.policy.pii == PiiPolicy::Redact && leaves(serving) {
        redact(request);
    }
}

/// Replaces personal data by its kind, such as `[EMAIL]`.
fn redact(request: &mut impl Texts) {
    rewrite(request, pii::redact);
}

/// Replaces credentials. What was said may become a record that every agent reads, and nobody says
/// a password to all of them.
pub(crate) fn redact_secrets(request: &mut impl Texts) {
    rewrite(request, pii::redact_secrets);
}

/// Refuses a capture with a credential where nothing is rewritten: in its source, its scope or its
/// hook, in a key, or as a number behind its name.
pub(crate) fn refuse_secrets(request: &mut CaptureRequest) -> Result<(), FieldError> {
    let size = bytes(request);
    let CaptureRequest { source, scope, hook, payload, metadata, .. } = &*request;
    let ids = || {
        let parts = [
            ("source", serde_json::to_value(source)),
            ("scope", serde_json::to_value(scope)),
            ("hook", serde_json::to_value(hook)),
        ];
        parts.into_iter().find_map(|(field, part)| {
            Some(format!("{field}{}", secret_in(&part.ok()?, "", Strings::Ids)?))
        })
    };
    let objects = || {
        let parts = [
            ("payload.object", &payload.object),
            ("payload.metadata", &payload.metadata),
            ("metadata", metadata),
        ];
        parts.into_iter().find_map(|(field, part)| {
            let mut members = part.iter().flatten();
            let at =
                members.find_map(|(name, value)| secret_at(name, value, Strings::Rewritten))?;
            Some(format!("{field}{at}"))
        })
    };
    match off_executor(size, || ids().or_else(objects)) {
        None => Ok(()),
        Some(field) => Err(FieldError::new(
            field,
            "has a credential, and credentials are replaced in texts only; take it out",
        )),
    }
}

/// What the texts in a part of a capture are.
#[derive(Clone, Copy, PartialEq)]
enum Strings {
    /// Ids: a credential in one is refused.
    Ids,
    /// What people wrote: credentials in it are replaced.
    Rewritten,
}

/// Where a member has a credential that is not replaced, if its name is not one itself.
fn secret_at(name: &str, value: &Value, strings: Strings) -> Option<String> {
    if pii::has_secret(name) {
        return Some(String::new());
    }
    secret_in(value, name, strings).map(|at| format!(".{name}{at}"))
}

fn secret_in(value: &Value, name: &str, strings: Strings) -> Option<String> {
    let is_secret = match value {
        Value::String(id) => strings == Strings::Ids && !is_id(id) && pii::has_secret(id),
        Value::Number(number) => pii::has_secret(&pii::named(name, &number.to_string())),
        Value::Array(items) => {
            return items
                .iter()
                .enumerate()
                .find_map(|(n, item)| Some(format!(".{n}{}", secret_in(item, name, strings)?)));
        }
        Value::Object(members) => {
            return members.iter().find_map(|(name, value)| secret_at(name, value, strings));
        }
        Value::Null | Value::Bool(_) => false,
    };
    is_secret.then(String::new)
}

fn rewrite(request: &mut impl Texts, redact: fn(&str) -> Cow<'_, str>) {
    let one = |name: &str, text: &mut String| {
        expect_off_executor("redacting personal data", text.len());
        if is_id(text) {
            return;
        }
        if let Some(redacted) = pii::redact_member(name, text, redact) {
            *text = redacted;
        }
    };
    off_executor(bytes(request), || request.texts(&mut { one }));
}

#[cfg(test)]
mod tests {
    use memhost_types::{SourceKind, SourceRef};
    use serde_json::json;

    use super::*;

    fn upsert(record: &Value) -> UpsertRequest {
        let body = json!({"scope": {"companyId": "acme"}, "records": [record]});
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn all_of_a_request_is_looked_at() {
        for (record, at) in [
            (json!({"text": "write to jerry@mit.edu"}), "/records/0/text"),
            (json!({"text": "x", "summary": "jerry@mit.edu"}), "/records/0/summary"),
            (json!({"text": "x", "metadata": {"jerry@mit.edu": 1}}), "/records/0/metadata"),
            (
                json!({"text": "x", "metadata": {"a": {"b": ["jerry@mit.edu"]}}}),
                "/records/0/metadata/a/b/0",
            ),
            (
                json!({"text": "x", "metadata": {"card": 4_111_111_111_111_111_u64}}),
                "/records/0/metadata/card",
            ),
            (
                json!({"text": "x", "metadata": {"phone": 6_172_531_000_u64}}),
                "/records/0/metadata/phone",
            ),
            (
                json!({"text": "x", "metadata": {"password": "hunter2x9"}}),
                "/records/0/metadata/password",
            ),
            (json!({"text": "x", "id": "jerry@mit.edu"}), "/records/0/id"),
            (
                json!({"text": "x", "source": SourceRef {
                    external_ref: Some("mailto:jerry@mit.edu".to_owned()),
                    ..SourceRef::new(SourceKind::ExternalDocument, "acme".parse().unwrap())
                }}),
                "/records/0/source/externalRef",
            ),
        ] {
            assert_eq!(risk(&mut upsert(&record)), (PiiRisk::High, at.to_owned()), "{record}");
        }
    }

    #[test]
    fn an_imports_lines_keep_their_ids_and_what_is_no_json() {
        let lines = "{\"id\":\"jerry@mit.edu\",\"text\":\"ask jerry@mit.edu\"}\nno JSON\n";
        let body = json!({"scope": {"companyId": "acme"}, "lines": lines});
        let mut request: ImportRequest = serde_json::from_value(body).unwrap();
        redact(&mut request);
        let after: Vec<&str> = request.lines.lines().collect();
        assert_eq!(after, [r#"{"id":"jerry@mit.edu","text":"ask [EMAIL]"}"#, "no JSON"]);
        assert_eq!(risk(&mut request), (PiiRisk::High, "/id".to_owned()));
    }

    #[test]
    fn ids_that_no_person_has_are_no_finding() {
        let mut random = 7_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u128::from(random) << 64 | u128::from(random.rotate_left(29))
        };
        for _ in 0..5_000 {
            let id = format!("{:032x}", next());
            let cuts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
            assert_eq!(risk_of("id", &cuts.join("-")), PiiRisk::None, "{id}");
            let hash = format!("{:032x}{:08x}", next(), next() >> 96);
            assert_eq!(risk_of("commit", &hash), PiiRisk::None, "{hash}");
        }
        let metadata = json!({
            "issue": "PAP-7", "at": "2026-11-20T10:00:00Z", "ms": 1_732_780_800_000_u64, "n": 0.85,
            "path": "src/main.rs:10", "version": "1.2.3", "runId": "run_01J9ZK3", "count": 12_345,
            "us": 1_732_780_800_123_456_u64, "day": "2026-11-20", "ratio": 1e21,
        });
        assert_eq!(risk_in(&metadata), (PiiRisk::None, String::new()));
    }

    #[test]
    fn texts_are_rewritten_and_names_are_not() {
        let card = 4_111_111_111_111_111_u64;
        let mut request = upsert(&json!({
            "text": "write to jerry@mit.edu", "id": "jerry@mit.edu",
            "metadata": {"password": "hunter2x9", "by": "jerry@mit.edu", "card": card},
        }));
        redact(&mut request);
        let record = &request.records[0];
        let metadata = Value::Object(record.metadata.clone().unwrap());
        assert_eq!(record.text, "write to [EMAIL]");
        assert_eq!(metadata["password"], "[SECRET]");
        assert_eq!((&metadata["by"], &metadata["card"]), (&json!("[EMAIL]"), &json!(card)));
        assert_eq!(record.id.as_ref().unwrap().as_str(), "jerry@mit.edu");
        let mut said = upsert(&json!({"text": "my password is hunter2x9, mail jerry@mit.edu"}));
        redact_secrets(&mut said);
        assert_eq!(said.records[0].text, "my password is [SECRET], mail jerry@mit.edu");
    }
}
