//! Personal data in a request: held back or redacted where the provider can send it to another
//! system.

use serde_json::Value;

use memhost_executor::{expect_off_executor, off_executor};
use memhost_pii::{self as pii, PiiRisk};
use memhost_registry::versions::Serving;
use memhost_types::{
    CaptureRequest, CorrectRequest, ImportRequest, JsonObject, OperationErrorCode, PiiPolicy,
    QueryRequest, RecordWrite, Refusal, UpsertRequest,
};

/// A request whose texts can be read and rewritten.
pub(crate) trait Texts {
    /// Calls `visit` with every text of the request that comes from people.
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String));
    /// Whether the request only reads.
    fn is_read(&self) -> bool {
        false
    }
}

fn strings(found: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match found {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| strings(item, visit)),
        Value::Object(members) => members.values_mut().for_each(|member| strings(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn object(object: &mut Option<JsonObject>, visit: &mut dyn FnMut(&mut String)) {
    object.iter_mut().flat_map(JsonObject::values_mut).for_each(|member| strings(member, visit));
}

fn record(record: &mut RecordWrite, visit: &mut dyn FnMut(&mut String)) {
    visit(&mut record.text);
    record.summary.iter_mut().for_each(&mut *visit);
    object(&mut record.metadata, visit);
}

impl Texts for CaptureRequest {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String)) {
        self.payload.text.iter_mut().for_each(&mut *visit);
        self.payload.turns.iter_mut().for_each(|turn| visit(&mut turn.text));
        object(&mut self.payload.object, visit);
        object(&mut self.payload.metadata, visit);
        object(&mut self.metadata, visit);
    }
}

impl Texts for UpsertRequest {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String)) {
        self.records.iter_mut().for_each(|one| record(one, visit));
    }
}

impl Texts for QueryRequest {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String)) {
        visit(&mut self.query);
        object(&mut self.metadata_filter, visit);
    }

    fn is_read(&self) -> bool {
        true
    }
}

impl Texts for ImportRequest {
    /// Visits the strings of each line. A line stays JSON.
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String)) {
        let mut changed = String::with_capacity(self.lines.len());
        let mut is_changed = false;
        for line in self.lines.lines() {
            let Ok(mut value) = serde_json::from_str::<Value>(line) else { continue };
            let mut touched = false;
            strings(&mut value, &mut |text| {
                let before = text.clone();
                visit(text);
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
}

impl Texts for CorrectRequest {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String)) {
        self.patch.instruction.iter_mut().for_each(&mut *visit);
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
    request.texts(&mut |text| bytes = bytes.saturating_add(text.len()));
    bytes
}

/// The risk of one text.
pub(crate) fn risk_of(text: &str) -> PiiRisk {
    expect_off_executor("the search for personal data", text.len());
    pii::risk(text)
}

/// The highest risk in a request's texts.
fn risk(request: &mut impl Texts) -> PiiRisk {
    let mut highest = PiiRisk::None;
    off_executor(bytes(request), || {
        request.texts(&mut |text| highest = highest.max(risk_of(text)));
    });
    highest
}

/// Whether a request must wait for a person before it goes to this binding's provider.
pub(crate) fn must_wait(serving: &Serving, request: &mut impl Texts) -> bool {
    serving.binding.policy.pii == PiiPolicy::Hold
        && leaves(serving)
        && risk(request) == PiiRisk::High
}

/// Applies the binding's policy to a request that cannot wait.
pub(crate) fn private(serving: &Serving, request: &mut impl Texts) -> Result<(), Refusal> {
    let policy = serving.binding.policy.pii;
    if policy == PiiPolicy::Allow || !leaves(serving) {
        return Ok(());
    }
    if policy == PiiPolicy::Hold && !request.is_read() {
        if risk(request) < PiiRisk::High {
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
    Ok(())
}

/// Replaces personal data by its kind, such as `[EMAIL]`.
fn redact(request: &mut impl Texts) {
    let redact = |text: &mut String| {
        expect_off_executor("redacting personal data", text.len());
        if let std::borrow::Cow::Owned(redacted) = pii::redact(text) {
            *text = redacted;
        }
    };
    off_executor(bytes(request), || request.texts(&mut { redact }));
}
