//! Captures, upserts and corrections.

use std::collections::HashSet;

use memhost_sdk::types::{
    CaptureMode, CaptureRequest, CaptureResponse, CorrectRequest, CorrectResponse, Error, Patch,
    RecordId, RecordWrite, Scope, UpsertRequest, UpsertResponse,
};
use serde_json::Value;

use crate::fact::{Fact, Source, now};
use crate::list::{List, below, claim, holder, list_of, release, update};
use crate::place::Place;
use crate::provider::Facts;
use crate::request::{Draft, object, own_id};

/// The list that a write changes.
struct Target {
    key: Vec<u8>,
    place: Place,
}

/// One record of a write.
struct Write {
    id: RecordId,
    has_own_id: bool,
    draft: Draft,
}

impl Facts {
    /// Stores one fact. Raw material makes no fact, because without a model it cannot extract any.
    pub(crate) fn write_capture(&self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        if matches!(request.mode, CaptureMode::CaptureResidue) {
            log::info!(
                "raw material is not stored, because facts has no model to extract facts; capture \
                 a fact with the mode capture_record"
            );
            return Ok(CaptureResponse::default());
        }
        let Some(text) = request.payload.text else {
            if !request.payload.turns.is_empty() {
                return Err(Error::unsupported(
                    "a fact is one sentence, not a conversation; send payload.text",
                ));
            }
            return Err(Error::invalid("payload.text", "is missing; a fact is one sentence"));
        };
        let metadata = merged(request.payload.metadata, request.metadata)?;
        let write = RecordWrite { text, metadata, ..RecordWrite::default() };
        let draft = Draft::of(&self.config, &request.scope, "payload.", write)?;
        let target = Self::target(&request.scope, &draft)?;
        let writes = with_ids(&target, &request.operation_id, vec![(None, draft)], |_| None)?;
        let source = Source::from(request.source);
        Ok(self.write(&target, &writes, Some(&source))?.into())
    }

    /// Writes facts unchanged, all of them to one list.
    pub(crate) fn write_all(&self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let mut target: Option<Target> = None;
        let mut drafts = Vec::with_capacity(request.records.len());
        for (number, mut record) in request.records.into_iter().enumerate() {
            let at = format!("records.{number}.");
            let id = record.id.take();
            let draft = Draft::of(&self.config, &request.scope, &at, record)?;
            let own = match &id {
                Some(id) => Self::target_of(&request.scope, &draft, &at, id)?,
                None => Self::target(&request.scope, &draft)?,
            };
            match &target {
                Some(target) if target.key != own.key => {
                    return Err(Error::invalid(
                        &format!("{at}metadata.scope"),
                        "goes to another list than the records before; write them in a request of \
                         their own, so that a \
                         request is done or not",
                    ));
                }
                Some(_) => {}
                None => target = Some(own),
            }
            drafts.push((id, draft));
        }
        let Some(target) = target else { return Ok(Vec::new().into()) };
        let writes = with_ids(&target, &request.operation_id, drafts, Some)?;
        let source = request.source.map(Source::from);
        Ok(self.write(&target, &writes, source.as_ref())?.into())
    }

    /// Replaces the text of a fact.
    pub(crate) fn change(&self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        let Patch::Replacement(record) = request.patch else {
            return Err(Error::unsupported(
                "facts cannot follow instructions; send the corrected fact",
            ));
        };
        let gone = || Error::NotFound(format!("there is no fact `{}` in this scope", request.id));
        let has_metadata = record.metadata.is_some();
        let draft = Draft::of(&self.config, &request.scope, "patch.record.", record)?;
        let (key, List { place, .. }) =
            Self::find(&request.id, &request.scope)?.ok_or_else(gone)?;
        same_kind(&draft, &place, "patch.record.")?;
        let updated = now();
        update(&key, &place, |list| {
            let fact = list.fact_mut(&request.id).ok_or_else(gone)?;
            fact.text.clone_from(&draft.text);
            fact.updated = updated;
            fact.created = draft.created.unwrap_or(fact.created);
            fact.expires = draft.expires.or(fact.expires);
            if draft.source.is_some() {
                fact.source.clone_from(&draft.source);
            }
            // A summary of the text before would keep what was corrected.
            fact.summary.clone_from(&draft.summary);
            if has_metadata {
                fact.metadata.clone_from(&draft.metadata);
                fact.by = draft.by;
            }
            Ok(())
        })?;
        Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
    }

    fn target(scope: &Scope, draft: &Draft) -> Result<Target, Error> {
        let place = Place::of_write(scope, draft.kind)?;
        Ok(Target { key: place.key(), place })
    }

    /// The list of an existing fact, else the one where it would be created.
    fn target_of(scope: &Scope, draft: &Draft, at: &str, id: &str) -> Result<Target, Error> {
        let Some((key, list)) = holder(id)? else { return Self::target(scope, draft) };
        if !list.place.is_seen_by(scope) {
            return Err(taken(at, id));
        }
        same_kind(draft, &list.place, at)?;
        Ok(Target { key, place: list.place })
    }

    /// Writes to one list, all or nothing.
    fn write(
        &self,
        target: &Target,
        writes: &[Write],
        source: Option<&Source>,
    ) -> Result<Vec<RecordId>, Error> {
        let mut claimed = HashSet::new();
        let mut refused = None;
        for (number, write) in writes.iter().enumerate() {
            match claim(&write.id, &target.key)? {
                Some(true) => drop(claimed.insert(write.id.clone())),
                Some(false) => {}
                None => {
                    refused =
                        refused.or_else(|| Some(taken(&format!("records.{number}."), &write.id)));
                }
            }
        }
        let written = match refused {
            Some(error) => Err(error),
            None => update(&target.key, &target.place, |list| {
                self.put(&target.key, list, writes, source)
            }),
        };
        // Ids that were not needed: the fact was known, or nothing was written.
        let kept: HashSet<&RecordId> = written.iter().flatten().collect();
        release(claimed.iter().filter(|id| !kept.contains(id)).map(String::as_str))?;
        written
    }

    fn put(
        &self,
        key: &[u8],
        list: &mut List,
        writes: &[Write],
        source: Option<&Source>,
    ) -> Result<Vec<RecordId>, Error> {
        let (before, at) = (list.facts.len(), now());
        let mut ids = Vec::with_capacity(writes.len());
        for Write { id, has_own_id, draft } in writes {
            let present = list.fact(id);
            if *has_own_id && present.is_some() {
                ids.push(id.clone());
                continue;
            }
            let is_new = present.is_none() && self.config.detect_duplicates;
            if let Some(same) = list.facts.iter().find(|fact| is_new && draft.says(&fact.text)) {
                log::info!("`{}` says the same already", same.id);
                ids.push(same.id.clone());
                continue;
            }
            let fact = Fact {
                id: id.clone(),
                number: present.map_or(0, |fact| fact.number),
                text: draft.text.clone(),
                summary: draft.summary.clone(),
                metadata: draft.metadata.clone(),
                source: draft.source.as_ref().or(source).cloned(),
                by: draft.by,
                created: draft.created.or_else(|| Some(present?.created)).unwrap_or(at),
                updated: at,
                has_own_id: *has_own_id,
                expires: draft.expires,
                place: None,
            };
            match list.fact_mut(id) {
                Some(present) => *present = fact,
                None => list.push(fact),
            }
            ids.push(id.clone());
        }
        // The limit is the owner's, whoever writes: agents with memory of their own have lists of
        // their own.
        let elsewhere = match list.facts.len() > before {
            true => others(key, &list.place)?,
            false => 0,
        };
        let (after, most) = (list.facts.len() + elsewhere, self.config.max_facts as usize);
        if after > most && list.facts.len() > before {
            let (kind, before) = (list.place.kind().name(), before + elsewhere);
            return Err(Error::QuotaExceeded(format!(
                "this scope has {before} facts of the kind `{kind}`, and {most} are allowed \
                 (`maxFacts` of the binding); \
                 remove some, or raise the limit"
            )));
        }
        Ok(ids)
    }
}

/// How many facts the other lists of the same owner have.
fn others(key: &[u8], place: &Place) -> Result<usize, Error> {
    let lists = below(place.owner.prefix())
        .filter(|entry| entry.as_ref().is_ok_and(|(other, _)| other != key) || entry.is_err());
    lists.map(|entry| Ok(entry?.1.facts.len())).sum()
}

/// Ids for all drafts. `number` distinguishes an operation's records.
fn with_ids(
    target: &Target,
    operation_id: &str,
    drafts: Vec<(Option<RecordId>, Draft)>,
    number: impl Fn(usize) -> Option<usize>,
) -> Result<Vec<Write>, Error> {
    let choose = |(place, (id, draft)): (usize, (Option<RecordId>, Draft))| {
        let has_own_id = id.is_none();
        let id = id.map_or_else(|| free_id(&target.key, operation_id, number(place)), Ok)?;
        Ok(Write { id, has_own_id, draft })
    };
    drafts.into_iter().enumerate().map(choose).collect()
}

/// An id for a new fact of an operation, or the one that the operation gave it before.
fn free_id(list: &[u8], operation_id: &str, number: Option<usize>) -> Result<RecordId, Error> {
    let mut attempt = 0;
    loop {
        let id = own_id(operation_id, number, attempt);
        let is_ours = match holder(&id)? {
            None => list_of(&id)?.is_none_or(|key| key == list),
            Some((key, there)) => {
                key == list && there.fact(&id).is_some_and(|fact| fact.has_own_id)
            }
        };
        if is_ours {
            return Ok(id);
        }
        attempt += 1;
    }
}

fn taken(at: &str, id: &str) -> Error {
    let message =
        format!("`{id}` is the id of a fact that this scope may not see; choose another id");
    Error::invalid(&format!("{at}id"), message)
}

/// A fact stays in its list.
fn same_kind(draft: &Draft, place: &Place, at: &str) -> Result<(), Error> {
    let kind = place.kind();
    if draft.kind.is_none_or(|wanted| wanted == kind) {
        return Ok(());
    }
    let message =
        format!("is not `{}`, where this fact is; remove it there and save it anew", kind.name());
    Err(Error::invalid(&format!("{at}metadata.scope"), message))
}

/// The payload's own metadata and the request's, which wins.
fn merged(payload: Option<String>, request: Option<String>) -> Result<Option<String>, Error> {
    let (Some(payload), Some(request)) = (&payload, &request) else {
        return Ok(payload.or(request));
    };
    let mut members = object("payload.metadata", Some(payload))?;
    members.extend(object("metadata", Some(request))?);
    Ok(Some(Value::Object(members).to_string()))
}
