//! The rows of an event: the event itself, and what finds it by session, tool and project. Only
//! this module builds keys of the tables `Events` and `EventIndex`.

use memhost_store::{self as store, Change, StoreError, Table};
use memhost_types::{CompanyId, Event};

/// Writes an event and the rows of the index that find it.
///
/// # Errors
/// Where it cannot be encoded.
pub fn changes(event: &Event) -> Result<Vec<Change>, StoreError> {
    let mut changes = index(event)?;
    let key = store::newest_first(&event.company_id, event.id);
    changes.push(Change::always(Table::Events, key, Some(store::encode("event", event)?)));
    Ok(changes)
}

/// The rows of the index that find an event.
///
/// # Errors
/// Where one cannot be made.
pub fn index(event: &Event) -> Result<Vec<Change>, StoreError> {
    let company = &event.company_id;
    let mut changes = Vec::with_capacity(5);
    if let Some(event_id) = &event.event.event_id {
        changes.push(Change::insert(
            Table::EventIndex,
            key(event, event_id),
            event.id.as_bytes().to_vec(),
        ));
    }
    let own = store::newest_first(company, event.id);
    let inverted = own[company.as_str().len() + 1..].to_vec();
    let facets = [
        (b'p', Some(&event.event.project_id)),
        (b's', Some(&event.event.session_id)),
        (b't', event.event.tool_id.as_ref()),
    ];
    for (name, value) in facets {
        if let Some(value) = value {
            let key = [facet(company, name, value), inverted.clone()].concat();
            changes.push(Change::always(Table::EventIndex, key, Some(Vec::new())));
        }
    }
    Ok(changes)
}

/// Identifies an event: its sender's id for it, and its agent.
pub fn key(event: &Event, event_id: &str) -> Vec<u8> {
    let agent = event.event.agent_id.as_ref().map_or("", |id| id.as_str());
    facet(&event.company_id, b'e', &format!("{agent}/{event_id}"))
}

/// The prefix of a facet value. Ids contain no zero byte, so no value is the beginning of another.
pub fn facet(company: &CompanyId, name: u8, value: &str) -> Vec<u8> {
    store::company_key(company, &[&[name], value.as_bytes(), b"\0"].concat())
}
