//! Records by where they came from: which things are meant, and what became of what came from them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{Checked, check_context_id, check_reference};
use super::{
    BindingKey, DeliveryId, FieldError, OperationId, Principal, RecordHandle, Scope, SourceKind,
    SourceRef, Visibility, limits,
};

/// The most sources of one request.
pub const MAX_SOURCES: usize = 100;

/// One thing that records came from. It names exactly one of a comment, a document, an issue, a run
/// and an external reference; a document may be told from those of other issues by its issue. What
/// is not set does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SourceSelector {
    /// Only what has this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<SourceKind>,
    /// Records of a comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub comment_id: Option<String>,
    /// Records of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub document_key: Option<String>,
    /// What came from an issue: from itself, its comments, documents and runs. With a document: the
    /// document's issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    /// Records of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// Records of a thing elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::Reference>")]
    pub external_ref: Option<String>,
}

/// The names and values of those fields that are there, the most exact one first.
fn things(fields: [&Option<String>; 5]) -> impl Iterator<Item = (&'static str, &str)> {
    let names = ["commentId", "documentKey", "runId", "externalRef", "issueId"];
    names.into_iter().zip(fields).filter_map(|(name, value)| Some((name, value.as_deref()?)))
}

impl SourceSelector {
    /// Checks that it names one thing.
    ///
    /// # Errors
    /// The field at fault, without the place of the selector.
    pub fn check(&self) -> Checked {
        check_context_id("commentId", self.comment_id.as_deref())?;
        check_reference("documentKey", self.document_key.as_deref())?;
        check_context_id("issueId", self.issue_id.as_deref())?;
        check_context_id("runId", self.run_id.as_deref())?;
        check_reference("externalRef", self.external_ref.as_deref())?;
        let issue = self.issue_id.as_ref().filter(|_| self.document_key.is_none());
        let named = [&self.comment_id, &self.document_key, &self.run_id, &self.external_ref]
            .into_iter()
            .flatten();
        match named.chain(issue).count() {
            1 => Ok(()),
            0 => Err(FieldError::new(
                "",
                "names nothing; give commentId, documentKey, issueId, runId or externalRef",
            )),
            _ => Err(FieldError::new("", "names several things; send a source for each")),
        }
    }

    /// The one thing that a source is, most exactly. `None`: it names nothing.
    pub fn of(source: &SourceRef) -> Option<Self> {
        let kind = Some(source.kind);
        let only = |change: fn(&mut Self, &SourceRef)| {
            let mut selector = Self { kind, ..Self::default() };
            change(&mut selector, source);
            Some(selector)
        };
        match source {
            SourceRef { comment_id: Some(_), .. } => {
                only(|one, from| one.comment_id.clone_from(&from.comment_id))
            }
            SourceRef { document_key: Some(_), .. } => only(|one, from| {
                one.document_key.clone_from(&from.document_key);
                one.issue_id.clone_from(&from.issue_id);
            }),
            SourceRef { external_ref: Some(_), .. } => {
                only(|one, from| one.external_ref.clone_from(&from.external_ref))
            }
            SourceRef { run_id: Some(_), kind: SourceKind::Run, .. } => {
                only(|one, from| one.run_id.clone_from(&from.run_id))
            }
            SourceRef { issue_id: Some(_), .. } => {
                only(|one, from| one.issue_id.clone_from(&from.issue_id))
            }
            SourceRef { run_id: Some(_), .. } => {
                only(|one, from| one.run_id.clone_from(&from.run_id))
            }
            _ => None,
        }
    }

    /// The one field that a selector names a thing by, as its name and its value. `None` if it
    /// names nothing. The issue of a document is not it.
    pub fn thing(&self) -> Option<(&'static str, &str)> {
        things([
            &self.comment_id,
            &self.document_key,
            &self.run_id,
            &self.external_ref,
            &self.issue_id,
        ])
        .next()
    }

    /// The fields of a source that a selector can name, as their names and values. A selector that
    /// matches a source has its [`thing`](Self::thing) among them.
    pub fn things_of(source: &SourceRef) -> impl Iterator<Item = (&'static str, &str)> {
        things([
            &source.comment_id,
            &source.document_key,
            &source.run_id,
            &source.external_ref,
            &source.issue_id,
        ])
    }

    /// Every selector that means this source.
    pub fn all_of(source: &SourceRef) -> impl Iterator<Item = Self> {
        let one = Self::default;
        let document = source
            .document_key
            .as_ref()
            .map(|_| Self { document_key: source.document_key.clone(), ..one() });
        let in_issue = document.clone().filter(|_| source.issue_id.is_some());
        let things = [
            source.comment_id.as_ref().map(|id| Self { comment_id: Some(id.clone()), ..one() }),
            document,
            in_issue.map(|document| Self { issue_id: source.issue_id.clone(), ..document }),
            source.issue_id.as_ref().map(|id| Self { issue_id: Some(id.clone()), ..one() }),
            source.run_id.as_ref().map(|id| Self { run_id: Some(id.clone()), ..one() }),
            source.external_ref.as_ref().map(|id| Self { external_ref: Some(id.clone()), ..one() }),
        ];
        let kind = source.kind;
        things
            .into_iter()
            .flatten()
            .flat_map(move |thing| [Self { kind: Some(kind), ..thing.clone() }, thing])
    }

    /// Whether a source is what is meant.
    pub fn matches(&self, source: &SourceRef) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        self.kind.is_none_or(|kind| kind == source.kind)
            && is(&self.comment_id, &source.comment_id)
            && is(&self.document_key, &source.document_key)
            && is(&self.issue_id, &source.issue_id)
            && is(&self.run_id, &source.run_id)
            && is(&self.external_ref, &source.external_ref)
    }
}

/// What a record, or what a job brings, takes the place of once it counts: what came from the same
/// source before. Nobody must approve what counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// The capture that asked for it.
    pub operation_id: OperationId,
    /// The principal that asked for it.
    pub principal: Principal,
    /// When its event happened, or else when the material came. What is of a later event stays.
    pub happened_at: Timestamp,
    /// Whether everything from the source goes. Otherwise the records of the company go, and the
    /// private ones of the agent or the person of the scope.
    #[serde(default)]
    pub of_everybody: bool,
}

/// The records of some sources, in all bindings of a company.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourcesRequest {
    /// The company; to list, also whose records. Nothing else may be set, and to forget, no agent
    /// and no person.
    pub scope: Scope,
    /// 1 to 100 sources.
    #[schemars(length(min = 1, max = 100))]
    pub sources: Vec<SourceSelector>,
}

impl SourcesRequest {
    /// Checks the scope and each source.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        if self.sources.is_empty() || self.sources.len() > MAX_SOURCES {
            let message =
                format!("has {} items; 1 to {MAX_SOURCES} are allowed", self.sources.len());
            return Err(FieldError::new("sources", message));
        }
        for (number, source) in self.sources.iter().enumerate() {
            source.check().map_err(|error| {
                let below = if error.field.is_empty() {
                    String::new()
                } else {
                    format!(".{}", error.field)
                };
                FieldError { field: format!("sources.{number}{below}"), ..error }
            })?;
        }
        Ok(())
    }
}

/// The result of forgetting some sources.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenSources {
    /// One for each binding of the company.
    pub bindings: Vec<ForgottenAt>,
    /// Deliveries of material from these sources that had not been captured; they are discarded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<DeliveryId>,
    /// Whether all of it is done. Otherwise send the same request again.
    pub is_complete: bool,
}

/// The result at one binding.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenAt {
    /// The binding.
    pub binding_key: BindingKey,
    /// The operations that did it: one, a further one for each 1,000 records, and for a scope one
    /// where the provider forgets it at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operation_ids: Vec<OperationId>,
    /// Records that are gone.
    pub forgotten: u32,
    /// Records that the provider only hides, or keeps in a history elsewhere.
    pub hidden: u32,
    /// Records that stay, because the binding keeps those of administrators from the caller. They
    /// are no error: the same request would leave them again.
    #[serde(default)]
    pub protected: u32,
    /// Why the binding has not forgotten everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The records of some sources.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecords {
    /// The first of them, at most 1,000, binding by binding.
    pub records: Vec<SourceRecord>,
    /// Whether there are further ones: ask for fewer sources.
    pub more: bool,
}

/// A record of a source, without its text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecord {
    /// The binding that has it.
    pub binding_key: BindingKey,
    /// The record.
    pub handle: RecordHandle,
    /// Where it came from.
    pub source: SourceRef,
    /// The scope that it was written in.
    pub scope: Scope,
    /// The operation that wrote it last.
    pub operation_id: OperationId,
    /// When it was first written.
    pub created_at: Timestamp,
    /// Its readers.
    pub visibility: Visibility,
}

/// The most records of an answer.
pub const MAX_SOURCE_RECORDS: usize = limits::MAX_ITEMS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_names_one_thing() {
        let check =
            |json: &str| serde_json::from_str::<SourceSelector>(json).unwrap().check().is_ok();
        for fine in [
            r#"{"commentId":"c"}"#,
            r#"{"issueId":"i","documentKey":"d"}"#,
            r#"{"kind":"run","runId":"r"}"#,
        ] {
            assert!(check(fine), "{fine}");
        }
        for wrong in
            ["{}", r#"{"kind":"run"}"#, r#"{"commentId":"c","issueId":"i"}"#, r#"{"commentId":""}"#]
        {
            assert!(!check(wrong), "{wrong}");
        }
    }

    #[test]
    fn every_selector_of_a_source_is_sound_and_matches_it() {
        let source = SourceRef {
            issue_id: Some("i".to_owned()),
            comment_id: Some("c".to_owned()),
            document_key: Some("d".to_owned()),
            run_id: Some("r".to_owned()),
            external_ref: Some("e".to_owned()),
            ..SourceRef::new(SourceKind::IssueDocument, "acme".parse().unwrap())
        };
        let all: Vec<SourceSelector> = SourceSelector::all_of(&source).collect();
        assert_eq!(all.len(), 12);
        for selector in all {
            assert!(selector.check().is_ok() && selector.matches(&source), "{selector:?}");
        }
        let other = SourceRef { issue_id: Some("j".to_owned()), ..source.clone() };
        let document = SourceSelector::of(&SourceRef { comment_id: None, ..source }).unwrap();
        assert!(!document.matches(&other), "a document is its issue's");
    }
}
