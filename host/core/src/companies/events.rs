//! Events of sessions and tools: accepted once, found by project, session and tool.

use std::collections::HashSet;

use uuid::Uuid;

use crate::Service;
use crate::access::Act;
use crate::access::Caller;
use crate::error::ServiceError;
use crate::paging::Page;
use memhost_ports::new_id;
use memhost_store::{self as store, Change, Expected, Found, StoreError, Table, Transacted};
use memhost_types::{CompanyId, Event, EventFilter, FieldError, NewEvent, OperationKind, Scope, limits};

impl Service {
    /// Takes events in, all or none, durably. One that came before under the same id is answered as it was kept then.
    ///
    /// # Errors
    /// Where a field will not do; it is named with the event's place.
    pub async fn emit(
        &self,
        caller: &Caller,
        company: &CompanyId,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>, ServiceError> {
        if events.is_empty() || events.len() > limits::MAX_ITEMS {
            let message = format!("has {} elements; 1 to {} are allowed", events.len(), limits::MAX_ITEMS);
            return Err(FieldError::new("events", message).into());
        }
        let now = self.clock.now();
        let mut all: Vec<(Event, bool)> = Vec::with_capacity(events.len());
        let mut ids = HashSet::new();
        for (index, mut event) in events.into_iter().enumerate() {
            if let Some(id) = event.event_id.as_ref().filter(|id| !ids.insert((*id).clone())) {
                let field = format!("events.{index}.eventId");
                return Err(
                    FieldError::new(field, format!("is `{id}`, as that of another event of this request")).into()
                );
            }
            let at = |error: FieldError| FieldError::new(format!("events.{index}.{}", error.field), error.message);
            event.check().map_err(at)?;
            let (agent_id, run_id) = (event.agent_id.take(), event.run_id.take());
            let mut scope = Scope { agent_id, run_id, ..Scope::company(company.clone()) };
            if let Err(denied) = caller.may_in(Act::Emit, &mut scope) {
                return Err(self.deny(caller, OperationKind::Control, Some(company), &denied).await);
            }
            (event.agent_id, event.run_id) = (scope.agent_id, scope.run_id);
            let (id, principal) = (new_id(&*self.clock), caller.principal().to_owned());
            all.push((Event { id, company_id: company.clone(), principal, received_at: now, event }, true));
        }
        loop {
            let (mut changes, mut owners) = (Vec::new(), Vec::new());
            for (index, (event, _)) in all.iter().enumerate().filter(|(_, (_, is_new))| *is_new) {
                for change in changes_of(event)? {
                    changes.push(change);
                    owners.push(index);
                }
            }
            if changes.is_empty() {
                break;
            }
            match self.store.transact(&changes)? {
                Transacted::Done(commit) => {
                    commit.await?;
                    break;
                }
                Transacted::Conflict(number) => {
                    let (event, is_new) = &mut all[owners[number]];
                    if let Some(known) = self.known_event(company, event)? {
                        *event = known;
                    }
                    *is_new = false;
                }
            }
        }
        Ok(all.into_iter().map(|(event, _)| event).collect())
    }

    fn known_event(&self, company: &CompanyId, event: &Event) -> Result<Option<Event>, StoreError> {
        let Some(event_id) = &event.event.event_id else { return Ok(None) };
        let Some(id) = self.store.get(Table::EventIndex, &event_key(event, event_id))? else { return Ok(None) };
        let Ok(id) = Uuid::from_slice(&id) else { return Ok(None) };
        let stored = self.store.get(Table::Events, &store::newest_first(company, id))?;
        stored.map(|value| store::decode("event", &value)).transpose()
    }

    /// One page of a company's events, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit will not do.
    pub fn events(
        &self,
        company: &CompanyId,
        filter: &EventFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Event>, ServiceError> {
        self.page("events", company, filter, cursor, limit, |from, limit| {
            let facets = [(b's', &filter.session_id), (b't', &filter.tool_id), (b'p', &filter.project_id)];
            let narrowest = facets.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?)));
            let is_wanted = |event: &Event| filter.matches(event);
            match narrowest {
                None => {
                    let (prefix, table) = (store::company_key(company, b""), (Table::Events, "event"));
                    Ok(store::matching(&*self.store, table, &prefix, from, limit, is_wanted)?)
                }
                Some((name, value)) => Ok(self.by_facet(company, name, value, from, limit, is_wanted)?),
            }
        })
    }

    fn by_facet(
        &self,
        company: &CompanyId,
        name: u8,
        value: &str,
        from: Option<&[u8]>,
        limit: usize,
        is_wanted: impl Fn(&Event) -> bool,
    ) -> Result<Found<Event>, StoreError> {
        const LOOKS: usize = 10_000;
        let (prefix, mut from, mut looks) = (facet(company, name, value), from.map(<[u8]>::to_vec), 0);
        let mut found = Vec::new();
        loop {
            let page = self.store.scan(Table::EventIndex, &prefix, from.as_deref(), 256)?;
            for (key, _) in page.entries {
                if found.len() == limit || looks == LOOKS {
                    return Ok((found, Some(key)));
                }
                looks += 1;
                let key = store::company_key(company, &key[prefix.len()..]);
                let Some(stored) = self.store.get(Table::Events, &key)? else { continue };
                let event = store::decode("event", &stored)?;
                if is_wanted(&event) {
                    found.push(event);
                }
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok((found, None)),
            }
        }
    }
}

fn changes_of(event: &Event) -> Result<Vec<Change>, StoreError> {
    let company = &event.company_id;
    let mut changes = Vec::with_capacity(5);
    if let Some(event_id) = &event.event.event_id {
        changes.push(Change {
            table: Table::EventIndex,
            key: event_key(event, event_id),
            expected: Expected::Absent,
            new: Some(event.id.as_bytes().to_vec()),
        });
    }
    let put = |table, key, new| Change { table, key, expected: Expected::Anything, new: Some(new) };
    let key = store::newest_first(company, event.id);
    let inverted = key[company.as_str().len() + 1..].to_vec();
    let facets = [
        (b'p', Some(&event.event.project_id)),
        (b's', Some(&event.event.session_id)),
        (b't', event.event.tool_id.as_ref()),
    ];
    for (name, value) in facets {
        if let Some(value) = value {
            let key = [facet(company, name, value), inverted.clone()].concat();
            changes.push(put(Table::EventIndex, key, Vec::new()));
        }
    }
    changes.push(put(Table::Events, key, store::encode("event", event)?));
    Ok(changes)
}

/// What tells one event from another: its sender's id of it, for the agent that it is of.
fn event_key(event: &Event, event_id: &str) -> Vec<u8> {
    let agent = event.event.agent_id.as_ref().map_or("", |id| id.as_str());
    facet(&event.company_id, b'e', &format!("{agent}/{event_id}"))
}

/// Ids hold no zero byte, so that one value cannot be the beginning of another.
fn facet(company: &CompanyId, name: u8, value: &str) -> Vec<u8> {
    store::company_key(company, &[&[name], value.as_bytes(), b"\0"].concat())
}
