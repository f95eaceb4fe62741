//! The rows of an event: the event itself, and what finds it by session, tool and project. Only
//! this module builds keys of the tables `Events` and `EventIndex`.

use jiff::Timestamp;
use uuid::Uuid;

use memhost_store::{self as store, Change, Found, FoundPage, Old, Store, StoreError, Table};
use memhost_types::{CompanyId, Event, EventFilter};

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

/// The event that was stored for the same sender's id.
///
/// # Errors
/// Where it cannot be read.
pub async fn known(store: &dyn Store, event: &Event) -> Result<Option<Event>, StoreError> {
    let Some(event_id) = &event.event.event_id else { return Ok(None) };
    let id = store.get(Table::EventIndex, &key(event, event_id)).await?;
    let Some(id) = id.and_then(|id| Uuid::from_slice(&id).ok()) else { return Ok(None) };
    let stored = store.get(Table::Events, &store::newest_first(&event.company_id, id)).await?;
    stored.map(|value| store::decode("event", &value)).transpose()
}

/// One page of a company's events, newest first, and where the next page begins.
///
/// # Errors
/// Where they cannot be read.
pub async fn page(
    store: &dyn Store,
    company: &CompanyId,
    filter: &EventFilter,
    from: Option<&[u8]>,
    limit: usize,
) -> Result<Found<Event>, StoreError> {
    let facets = [(b's', &filter.session_id), (b't', &filter.tool_id), (b'p', &filter.project_id)];
    let narrowest = facets.into_iter().find_map(|(name, value)| Some((name, value.as_ref()?)));
    let Some((name, value)) = narrowest else {
        let (prefix, table) = (store::company_key(company, b""), (Table::Events, "event"));
        let is_wanted = |event: &Event| filter.matches(event);
        return store::matching(store, table, &prefix, from, limit, is_wanted).await;
    };
    let prefix = facet(company, name, value);
    let mut index = store::scan_all(store, Table::EventIndex, &prefix).from(from);
    let mut page = FoundPage::new(limit);
    while let Some((key, _)) = index.next().await? {
        if page.is_full() {
            return Ok(page.before(key));
        }
        let own = store::company_key(company, &key[prefix.len()..]);
        let stored = store.get(Table::Events, &own).await?;
        let bytes = stored.as_ref().map_or(0, Vec::len);
        let event: Option<Event> =
            stored.map(|value| store::decode("event", &value)).transpose()?;
        page.add(event.filter(|event| filter.matches(event)), bytes);
    }
    Ok(page.last())
}

/// Removes a company's events from before `cutoff`, with their rows of the index. Answers how many
/// went.
///
/// # Errors
/// Where the store fails.
pub async fn sweep(
    store: &dyn Store,
    company: &CompanyId,
    cutoff: Timestamp,
) -> Result<u64, StoreError> {
    let old = |value: &[u8]| {
        let event: Event = store::decode("event", value)?;
        let gone = |change: Change| Change::always(change.table, change.key, None);
        Ok(Old::Removed(index(&event)?.into_iter().map(gone).collect()))
    };
    store::sweep(store, (Table::Events, b""), company, cutoff, old).await
}

/// The rows of the index that find an event.
///
/// # Errors
/// Where one cannot be encoded.
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
fn key(event: &Event, event_id: &str) -> Vec<u8> {
    let agent = event.event.agent_id.as_ref().map_or("", |id| id.as_str());
    facet(&event.company_id, b'e', &format!("{agent}/{event_id}"))
}

/// The prefix of a facet value. Ids contain no zero byte, so no value is the beginning of another.
fn facet(company: &CompanyId, name: u8, value: &str) -> Vec<u8> {
    store::company_key(company, &[&[name], value.as_bytes(), b"\0"].concat())
}
