//! The records of one owner (a user, a drive, a project), and what every route does with them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde_json::Value;

use memhost_core::{Caller, Service};
use memhost_http::{Problem, ProblemCode};
use memhost_types::{
    ActsFor, BindingKey, ForgetRequest, GetRequest, JsonObject, ListRequest, OperationKind,
    Principal, RecordHandle, RecordRow, RecordWrite, Scope, Snippet, SourceRef, UpsertRequest,
    Writer, check_id, is_mcp,
};

use super::options::{PageSpaceOptions, ScopeField};

/// The records of one page.
const PAGE: u32 = 1_000;
/// The most pages that one request reads.
const MAX_PAGES: usize = 10;
/// The same for those of nobody: the list has those of everybody.
const MAX_PAGES_OF_ALL: usize = 100;
/// Once the owner's records of one request have so many bytes, no further page is read.
const MAX_BYTES: usize = 16 << 20;

/// The records of one owner, for one request: their scope, and the metadata that names the owner.
pub(super) struct OwnerRecords {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    pub(super) binding: Option<BindingKey>,
    pub(super) scope: Scope,
    /// The metadata field that names the owner, and the owner's id in it.
    pub(super) owner: (&'static str, String),
    /// The field of the scope that names the owner.
    pub(super) field: ScopeField,
    /// By which rules a scope says whose its facts are. `None`: these are no facts.
    pub(super) facts: Option<PageSpaceOptions>,
}

/// The metadata fields that name an owner. A record that has one of them belongs to nobody else.
pub(super) const OWNERS: [&str; 3] = ["userId", "driveId", "projectId"];

/// The metadata field that names who made a fact.
pub(super) const CREATED_BY: &str = "createdBy";

/// In the place of such a field: the records of nobody, which everybody in the company gets.
pub(super) const COMPANY: &str = "companyId";

/// A page of an owner's records.
pub(super) struct OwnerPage {
    pub(super) items: Vec<Snippet>,
    pub(super) next_cursor: Option<String>,
}

impl OwnerRecords {
    /// Whether a record belongs to this owner: its metadata says so or, where it names no owner,
    /// because a tool or a program wrote it, its scope.
    pub(super) fn owns(&self, record: &Snippet) -> bool {
        if self.owner.0 == COMPANY {
            return is_nobodys(record);
        }
        owner_of(record, self.owner.0, self.field).as_deref() == Some(self.owner.1.as_str())
    }

    /// The handle of a record that is named by its id alone, as tools and the explorer name it.
    pub(super) async fn handle(&self, given: &str) -> Result<Option<RecordHandle>, Problem> {
        let Ok(provider_record_id) = given.parse() else { return Ok(None) };
        let (mut scope, named) = (self.scope.clone(), self.binding.as_ref());
        let abilities = self
            .service
            .control()
            .abilities(&self.caller, OperationKind::Get, &mut scope, named)
            .await?;
        Ok(abilities
            .provider_key
            .map(|provider_key| RecordHandle { provider_key, provider_record_id }))
    }

    /// A record by its id, if this scope sees it.
    pub(super) async fn get(&self, given: &str) -> Result<Option<Snippet>, Problem> {
        let Some(handle) = self.handle(given).await? else { return Ok(None) };
        let get =
            GetRequest { binding_key: self.binding.clone(), scope: self.scope.clone(), handle };
        let found = self.service.operations().get(&self.caller, get).await?;
        Ok(found.record.map(|record| self.believed(record, found.row.as_ref())))
    }

    /// The records of an answer with what may be believed of their metadata.
    pub(super) async fn checked(&self, found: Vec<Snippet>) -> Result<Vec<Snippet>, Problem> {
        if found.is_empty() {
            return Ok(found);
        }
        let rows = self
            .service
            .operations()
            .rows_of(&self.caller, &self.scope, self.binding.as_ref(), &found)
            .await?;
        Ok(found
            .into_iter()
            .zip(rows)
            .map(|(record, row)| self.believed(record, row.as_ref()))
            .collect())
    }

    /// A record without what its writer says of its owner and of who made it, where the host knows
    /// otherwise: an agent writes any metadata, and so does a member. They own what they wrote, and
    /// its scope names the other owners that they may write for.
    fn believed(&self, mut record: Snippet, row: Option<&RecordRow>) -> Snippet {
        let Some(row) = row else { return record };
        // Not every provider returns the scope.
        record.scope.get_or_insert_with(|| row.scope.clone());
        let writer = Writer::of(&row.written_by);
        if let Some(facts) = &self.facts {
            facts.tell_owner(&row.scope, &mut record.metadata);
        }
        if let (Some(writer), Some(metadata)) =
            (writer.filter(|writer| writer.is_confined), &mut record.metadata)
        {
            for name in OWNERS {
                let is_known = |owner: &str| match name {
                    "userId" if self.owner.0 == "userId" => {
                        owner == writer.id || self.field.get(&row.scope) == Some(owner)
                    }
                    // Another kind of owner than the request's, or shared with whoever names it.
                    _ => names(&row.scope, owner) || (name == "userId" && owner == writer.id),
                };
                if metadata.get(name).and_then(Value::as_str).is_some_and(|owner| !is_known(owner))
                {
                    metadata.remove(name);
                }
            }
        }
        if self.owner.0 != "projectId" {
            self.tell_maker(record.metadata.get_or_insert_default(), row, writer);
        }
        record
    }

    /// Puts into a fact's metadata who made it. What nobody may claim is what the host knows; of
    /// the rest the metadata say it, if they do.
    fn tell_maker(&self, metadata: &mut JsonObject, row: &RecordRow, writer: Option<Writer<'_>>) {
        let is_users = self.owner.0 == "userId";
        // Nobody's hand: neither an agent's nor, in a drive, that of a member, who adds nothing by
        // hand there.
        let is_ai = |by: &Principal, client: Option<&str>| {
            is_mcp(client) || by.agent().is_some() || (by.is_confined() && !is_users)
        };
        let source = |is_ai: bool| Value::from(if is_ai { "ai" } else { "user" });
        let created_by = if let Some(by) = &row.corrected_by {
            // The words are the corrector's.
            let is_ai = is_ai(by, row.corrected_via.as_deref());
            metadata.insert("source".to_owned(), source(is_ai));
            metadata.remove(CREATED_BY);
            // An integration that says only in which role it acts names nobody.
            let is_nobody = matches!(by, Principal::Integration { acts_for: ActsFor::Role(_), .. });
            let named = Writer::of(by).map(|who| who.id.to_owned());
            named.or_else(|| (!is_nobody).then(|| by.to_string()))
        } else {
            let client = row.source.as_ref().and_then(|source| source.external_ref.as_deref());
            let wrote_for_others =
                writer.is_some_and(|writer| writer.is_confined && self.owner.1 != writer.id);
            if wrote_for_others || is_mcp(client) || !metadata.contains_key("source") {
                let is_ai = is_ai(&row.written_by, client) || wrote_for_others;
                metadata.insert("source".to_owned(), source(is_ai));
            }
            row.created_by.clone().or_else(|| writer.map(|writer| writer.id.to_owned()))
        };
        if let Some(by) = created_by.filter(|_| !is_users) {
            metadata.insert(CREATED_BY.to_owned(), by.into());
        }
    }

    /// Forgets a record.
    pub(super) async fn forget(&self, handle: RecordHandle) -> Result<(), Problem> {
        let (binding_key, scope) = (self.binding.clone(), self.scope.clone());
        self.service
            .operations()
            .forget(&self.caller, ForgetRequest { binding_key, scope, handles: vec![handle] })
            .await?;
        Ok(())
    }

    /// The metadata filter that finds this owner's records.
    pub(super) fn filter(&self) -> JsonObject {
        let (name, value) = &self.owner;
        if *name == COMPANY {
            return JsonObject::new();
        }
        JsonObject::from_iter([((*name).to_owned(), value.as_str().into())])
    }

    /// One page of the owner's records.
    pub(super) async fn page(
        &self,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<OwnerPage, Problem> {
        let request = ListRequest {
            binding_key: self.binding.clone(),
            scope: self.scope.clone(),
            cursor,
            limit: Some(limit),
            metadata_filter: None,
            filter: None,
        };
        let page = self.service.operations().list(&self.caller, request).await?;
        let found = self.checked(page.items).await?;
        let items =
            found.into_iter().filter(|record| self.owns(record) || self.shares(record)).collect();
        Ok(OwnerPage { items, next_cursor: page.next_cursor })
    }

    /// Whether a record of another project is for every project.
    pub(super) fn shares(&self, record: &Snippet) -> bool {
        self.owner.0 == "projectId"
            && text(record.metadata.as_ref(), "visibility").as_deref() == Some("global")
    }

    /// The owner's records out of 10,000 that the scope sees, from a cursor on, or nobody's out of
    /// 100,000. Fewer, once they have 16 MiB.
    pub(super) async fn all(&self, cursor: Option<String>) -> Result<OwnerPage, Problem> {
        let (mut all, mut bytes) = (OwnerPage { items: Vec::new(), next_cursor: cursor }, 0);
        let pages = if self.owner.0 == COMPANY { MAX_PAGES_OF_ALL } else { MAX_PAGES };
        for _ in 0..pages {
            let page = self.page(all.next_cursor.take(), PAGE).await?;
            let own = page.items.into_iter().filter(|record| self.owns(record));
            all.items.extend(own.inspect(|record| bytes += record.weight()));
            all.next_cursor = page.next_cursor;
            if all.next_cursor.is_none() || bytes >= MAX_BYTES {
                break;
            }
        }
        Ok(all)
    }

    /// Writes records, and returns a handle for each.
    pub(super) async fn write(
        &self,
        source: Option<SourceRef>,
        records: Vec<RecordWrite>,
    ) -> Result<Vec<RecordHandle>, Problem> {
        let (binding_key, scope) = (self.binding.clone(), self.scope.clone());
        let request = UpsertRequest { binding_key, scope, source, records, visibility: None };
        Ok(self.service.operations().upsert(&self.caller, request).await?.records)
    }

    /// Writes one record.
    pub(super) async fn write_one(
        &self,
        source: Option<SourceRef>,
        record: RecordWrite,
    ) -> Result<RecordHandle, Problem> {
        let written = self.write(source, vec![record]).await?.into_iter().next();
        written.ok_or_else(|| Problem::new(ProblemCode::BadAnswer, "the provider wrote no record"))
    }
}

/// Whether a scope has an id in one of the fields that may hold owners.
fn names(scope: &Scope, owner: &str) -> bool {
    let fields = [&scope.subject_id, &scope.namespace, &scope.project_id, &scope.session_key];
    fields.into_iter().any(|field| field.as_deref() == Some(owner))
}

/// Who owns a record, by the metadata field or the scope field that names owners of this kind.
pub(super) fn owner_of(record: &Snippet, name: &str, field: ScopeField) -> Option<String> {
    let metadata = record.metadata.as_ref();
    if OWNERS.into_iter().any(|owner| text(metadata, owner).is_some()) {
        return text(metadata, name);
    }
    let scope = record.scope.as_ref()?;
    // A user's record that was written in a drive is the user's, and an agent without a user counts
    // as one.
    if name == "driveId" && field != ScopeField::SubjectId && scope.subject_id.is_some() {
        return None;
    }
    let is_agents_own = name == "userId" && scope.project_id.is_none() && scope.namespace.is_none();
    let agent = scope.agent_id.as_ref().filter(|_| is_agents_own).map(|agent| agent.as_str());
    field.get(scope).or(agent).map(str::to_owned)
}

/// Whether a record names no owner, neither in its metadata nor in its scope.
fn is_nobodys(record: &Snippet) -> bool {
    let is_open = |scope: &Scope| {
        let ids = [&scope.subject_id, &scope.namespace, &scope.project_id, &scope.session_key];
        scope.agent_id.is_none() && ids.into_iter().all(Option::is_none)
    };
    let metadata = record.metadata.as_ref();
    OWNERS.into_iter().all(|owner| text(metadata, owner).is_none())
        && record.scope.as_ref().is_some_and(is_open)
}

/// The options of an integration.
pub(super) async fn options<O: Clone + Send + Sync + 'static>(
    parts: &mut Parts,
    service: &Arc<Service>,
) -> Result<Arc<O>, Problem> {
    let options = Extension::<Arc<O>>::from_request_parts(parts, service).await;
    Ok(options.map_err(|error| Problem::new(ProblemCode::Host, error.to_string()))?.0)
}

/// The id in the address.
pub(super) async fn path_id(parts: &mut Parts, service: &Arc<Service>) -> Result<String, Problem> {
    let id = Path::<String>::from_request_parts(parts, service).await;
    Ok(id.map_err(|error| Problem::invalid(error.to_string()))?.0)
}

/// Checks an id of another system by the host's rules for ids.
pub(super) fn id(field: &str, text: &str) -> Result<String, Problem> {
    check_id(field, text).map_err(|error| invalid(&error.field, error.message.clone()))?;
    Ok(text.to_owned())
}

/// A problem with a field of the request.
pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> Problem {
    Problem::invalid(format!("{field} {message}")).at(field)
}

/// A text in a record's metadata.
pub(super) fn text(metadata: Option<&JsonObject>, name: &str) -> Option<String> {
    metadata?.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_weighs_about_what_it_has() {
        let record: Snippet = serde_json::from_value(serde_json::json!({
            "handle": {"providerKey": "p", "providerRecordId": "r"}, "text": "x".repeat(1_000),
            "summary": "y".repeat(100),
            "metadata": {"vector": vec![0.5; 1_000], "a": {"b": ["z".repeat(500), null]}},
        }))
        .unwrap();
        assert!((9_600..9_700).contains(&record.weight()), "{}", record.weight());
    }
}
