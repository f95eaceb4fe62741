//! Events of sessions and tools: accepted once, found by project, session and tool.

use std::collections::HashSet;

use async_recursion::async_recursion as boxed;
use serde_json::Value;

use crate::Tenancy;
use crate::error::ServiceError;
use crate::paging::Page;
use memhost_access::{Act, Caller};
use memhost_executor::off_executor;
use memhost_oplog::events;
use memhost_pii as pii;
use memhost_ports::new_id;
use memhost_store::Transacted;
use memhost_types::{
    CompanyId, Event, EventFilter, FieldError, JsonObject, NewEvent, OperationKind, Scope, limits,
};

impl Tenancy {
    /// Accepts events, all or none, durably. An event whose id is known is answered as it was
    /// stored the first time.
    ///
    /// # Errors
    /// Where a field is not valid; the error names it with the event's position.
    #[boxed]
    pub async fn emit(
        &self,
        caller: &Caller,
        company: &CompanyId,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>, ServiceError> {
        if events.is_empty() || events.len() > limits::MAX_ITEMS {
            let message =
                format!("has {} elements; 1 to {} are allowed", events.len(), limits::MAX_ITEMS);
            return Err(FieldError::new("events", message).into());
        }
        let now = self.clock.now();
        let mut all: Vec<(Event, bool)> = Vec::with_capacity(events.len());
        let mut ids = HashSet::new();
        for (index, mut event) in events.into_iter().enumerate() {
            if let Some(id) = event.event_id.as_ref().filter(|id| !ids.insert((*id).clone())) {
                let field = format!("events.{index}.eventId");
                return Err(FieldError::new(
                    field,
                    format!("is `{id}`, as that of another event of this request"),
                )
                .into());
            }
            let at = |error: FieldError| {
                FieldError::new(format!("events.{index}.{}", error.field), error.message)
            };
            event.check().map_err(at)?;
            refuse_secrets(&event).map_err(at)?;
            redact_secrets(&mut event);
            let (agent_id, run_id) = (event.agent_id.take(), event.run_id.take());
            let mut scope = Scope { agent_id, run_id, ..Scope::company(company.clone()) };
            if let Err(denied) = caller.may_in(Act::Emit, &mut scope) {
                return Err(self
                    .deny(caller, OperationKind::Control, Some(company), &denied)
                    .await);
            }
            (event.agent_id, event.run_id) = (scope.agent_id, scope.run_id);
            let (id, principal) = (new_id(&*self.clock), caller.principal().clone());
            all.push((
                Event { id, company_id: company.clone(), principal, received_at: now, event },
                true,
            ));
        }
        loop {
            let (mut changes, mut owners) = (Vec::new(), Vec::new());
            for (index, (event, _)) in all.iter().enumerate().filter(|(_, (_, is_new))| *is_new) {
                for change in events::changes(event)? {
                    changes.push(change);
                    owners.push(index);
                }
            }
            if changes.is_empty() {
                break;
            }
            match self.store.transact(&changes).await? {
                Transacted::Done(commit) => {
                    commit.await?;
                    break;
                }
                Transacted::Conflict(number) => {
                    let (event, is_new) = &mut all[owners[number]];
                    if let Some(known) = events::known(&*self.store, event).await? {
                        *event = known;
                    }
                    *is_new = false;
                }
            }
        }
        Ok(all.into_iter().map(|(event, _)| event).collect())
    }

    /// One page of a company's events, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn events(
        &self,
        company: &CompanyId,
        filter: &EventFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Event>, ServiceError> {
        let page = self.page_of("events", company, filter, cursor, limit)?;
        let (from, limit) = (page.from(), page.limit);
        let found = events::page(&*self.store, company, filter, from, limit).await?;
        Ok(self.sealed(&page, found))
    }
}

/// Replaces credentials in what tools said. An event is kept for everybody who may read the log.
fn redact_secrets(event: &mut NewEvent) {
    if event.error.is_none() && event.details.is_none() {
        return;
    }
    off_executor(limits::MAX_EVENT_ERROR_BYTES + limits::MAX_EVENT_DETAILS_BYTES, || {
        event.error.iter_mut().for_each(|text| redact_text("", text));
        event.details.iter_mut().for_each(redact_members);
    });
}

fn redact_text(name: &str, text: &mut String) {
    if let Some(redacted) = pii::redact_member(name, text, pii::redact_secrets) {
        *text = redacted;
    }
}

fn redact_value(name: &str, value: &mut Value) {
    match value {
        Value::String(text) => redact_text(name, text),
        Value::Number(number) if pii::has_secret(&pii::named(name, &number.to_string())) => {
            *value = Value::from(pii::PiiKind::Secret.placeholder());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(name, item)),
        Value::Object(members) => redact_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces credentials in values and in names, by which nobody looks a detail up.
fn redact_members(members: &mut JsonObject) {
    for (name, value) in members.iter_mut() {
        redact_value(name, value);
    }
    if members.keys().any(|name| pii::has_secret(name)) {
        let all = std::mem::take(members).into_iter();
        members.extend(all.map(|(name, value)| (pii::redact_secrets(&name).into_owned(), value)));
    }
}

/// Refuses a credential in an id: an id that was rewritten would be another one.
fn refuse_secrets(event: &NewEvent) -> Result<(), FieldError> {
    match event.ids().into_iter().find(|(_, id)| id.is_some_and(pii::has_secret)) {
        Some((field, _)) => Err(FieldError::new(field, "has a credential: take it out")),
        None => Ok(()),
    }
}
