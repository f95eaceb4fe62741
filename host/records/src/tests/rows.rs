//! Rows and their index by source: what is stored, found, expired and removed.

use super::*;
use crate::source_index::change;
use crate::{Expired, Mark, Selection};
use memhost_store::Table;
use memhost_types::SourceSelector;

fn row_of(id: &str, source: SourceRef) -> RecordRow {
    RecordRow { source: Some(source), ..row(id, &Reader::Nobody) }
}

fn comment(id: &str) -> SourceRef {
    source(|source| {
        source.comment_id = Some(id.to_owned());
        source.issue_id = Some("i1".to_owned());
    })
}

fn of_comment(id: &str) -> SourceSelector {
    SourceSelector { comment_id: Some(id.to_owned()), ..SourceSelector::default() }
}

/// How many entries a change adds and removes.
fn changed(before: Option<&RecordRow>, after: Option<&RecordRow>) -> (usize, usize) {
    let mut writes = Vec::new();
    change(before, after, &mut writes);
    let added = writes.iter().filter(|write| write.new.is_some()).count();
    (added, writes.len() - added)
}

async fn store_row(room: &Room, row: &RecordRow) {
    let before = room.records.row(&room.binding, &row.handle.provider_record_id).await.unwrap();
    room.put(room.records.write(row, before.as_ref()).unwrap()).await;
}

async fn found(room: &Room, sources: &[SourceSelector]) -> Vec<String> {
    let what = Selection::Sources(sources);
    let rows = room.records.select(&room.binding, what, usize::MAX, |_| true).await.unwrap();
    rows.iter().map(|row| row.handle.provider_record_id.to_string()).collect()
}

#[test]
fn a_row_has_an_entry_for_each_field_of_its_source() {
    let (one, other) = (row_of("r", comment("c1")), row_of("r", comment("c2")));
    assert_eq!(changed(None, Some(&one)), (2, 0));
    assert_eq!(changed(Some(&one), Some(&one)), (0, 0));
    assert_eq!(changed(Some(&one), Some(&other)), (1, 1), "the issue is the same");
    assert_eq!(changed(Some(&other), None), (0, 2));
    assert_eq!(changed(Some(&one), Some(&RecordRow { source: None, ..one.clone() })), (0, 2));
}

#[test]
fn every_selector_that_means_a_source_begins_at_one_of_its_entries() {
    let source = SourceRef {
        document_key: Some("plan".to_owned()),
        run_id: Some("run".to_owned()),
        external_ref: Some("elsewhere".to_owned()),
        ..comment("c1")
    };
    let things: Vec<_> = SourceSelector::things_of(&source).collect();
    assert_eq!(things.len(), 5);
    let own = SourceSelector::of(&source);
    for selector in SourceSelector::all_of(&source).chain(own) {
        assert!(things.contains(&selector.thing().unwrap()), "{selector:?}");
    }
}

#[tokio::test]
async fn rows_are_found_by_source() {
    let room = Room::new().await;
    store_row(&room, &row_of("r1", comment("c1"))).await;
    store_row(&room, &row_of("r2", comment("c2"))).await;
    assert_eq!(found(&room, &[of_comment("c1")]).await, ["r1"]);
    let issue = SourceSelector { issue_id: Some("i1".to_owned()), ..SourceSelector::default() };
    assert_eq!(found(&room, &[issue]).await, ["r1", "r2"]);
    assert!(found(&room, &[of_comment("c")]).await.is_empty(), "the beginning of an id");
    assert!(found(&room, &[SourceSelector::default()]).await.is_empty());
}

#[tokio::test]
async fn a_record_that_two_sources_mean_is_found_once() {
    let room = Room::new().await;
    store_row(&room, &row_of("r1", comment("c1"))).await;
    let issue = SourceSelector { issue_id: Some("i1".to_owned()), ..SourceSelector::default() };
    assert_eq!(found(&room, &[of_comment("c1"), issue, of_comment("c1")]).await, ["r1"]);
}

#[tokio::test]
async fn a_record_with_another_source_is_not_found_by_the_old_one() {
    let room = Room::new().await;
    store_row(&room, &row_of("r1", comment("c1"))).await;
    store_row(&room, &row_of("r1", comment("c2"))).await;
    assert!(found(&room, &[of_comment("c1")]).await.is_empty());
    assert_eq!(found(&room, &[of_comment("c2")]).await, ["r1"]);
}

#[tokio::test]
async fn an_entry_whose_row_is_gone_finds_nothing() {
    let room = Room::new().await;
    room.put(Records::index_of(&row_of("r1", comment("c1")))).await;
    assert!(found(&room, &[of_comment("c1")]).await.is_empty());
}

#[tokio::test]
async fn a_selection_stops_at_the_most_that_is_wanted() {
    let room = Room::new().await;
    for id in ["r1", "r2", "r3"] {
        store_row(&room, &row_of(id, comment("c1"))).await;
    }
    let (sources, scope) = ([of_comment("c1")], Scope::company(company("acme")));
    for what in [Selection::Sources(&sources), Selection::Scope(&scope)] {
        let is_wanted = |row: &RecordRow| row.handle != handle("r1");
        let rows = room.records.select(&room.binding, what, 1, is_wanted).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].handle, handle("r2"));
    }
}

#[tokio::test]
async fn a_scope_selects_what_is_within_it() {
    let room = Room::new().await;
    for (id, reader) in [("r1", agent("ada")), ("r2", agent("carol")), ("r3", person("u1"))] {
        store_row(&room, &row(id, &reader)).await;
    }
    let within = async |scope: &Scope| {
        let what = Selection::Scope(scope);
        room.records.select(&room.binding, what, usize::MAX, |_| true).await.unwrap().len()
    };
    assert_eq!(within(&scope_of(&agent("ada"))).await, 1);
    assert_eq!(within(&scope_of(&person("u1"))).await, 1);
    assert_eq!(within(&scope_of(&Reader::Nobody)).await, 3);
    assert_eq!(within(&scope_of(&agent("u1"))).await, 0);
}

#[tokio::test]
async fn awkward_record_ids_have_rows_of_their_own() {
    let room = Room::new().await;
    let ids: Vec<&str> = AWKWARD.into_iter().chain(["r", "r r", "r:r", "R"]).collect();
    for id in &ids {
        store_row(&room, &row_of(id, comment(id))).await;
    }
    for id in &ids {
        assert_eq!(room.row(id).await.unwrap().handle, handle(id));
        assert_eq!(found(&room, &[of_comment(id)]).await, [*id]);
    }
    let mut rows = room.records.rows(&room.binding.company_id, room.binding.id);
    let mut count = 0;
    while rows.next().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, ids.len());
}

#[tokio::test]
async fn the_rows_of_another_binding_or_company_are_not_this_ones() {
    let room = Room::new().await;
    store_row(&room, &row_of("r1", comment("c1"))).await;
    let other = binding(2, "other");
    let foreign = Binding { company_id: company("acm"), ..binding(1, "main") };
    for elsewhere in [&other, &foreign] {
        assert!(room.records.row(elsewhere, &record("r1")).await.unwrap().is_none());
        assert!(!room.records.has_any(elsewhere).await.unwrap());
        let (selectors, scope) = ([of_comment("c1")], scope_of(&Reader::Nobody));
        for what in [Selection::Sources(&selectors), Selection::Scope(&scope)] {
            let rows = room.records.select(elsewhere, what, 9, |_| true).await.unwrap();
            assert!(rows.is_empty());
        }
    }
    assert!(room.records.has_any(&room.binding).await.unwrap());
}

fn expiring(id: &str, seconds: Option<i64>) -> RecordRow {
    RecordRow { expires_at: seconds.map(at), ..row_of(id, comment("c1")) }
}

async fn due(room: &Room, seconds: i64) -> Vec<Expired> {
    room.records.expired(&room.binding, at(seconds), 99).await.unwrap()
}

fn names(found: &[Expired]) -> Vec<&str> {
    found.iter().map(|one| one.record.as_str()).collect()
}

#[tokio::test]
async fn what_has_expired_is_found_in_its_order_and_is_gone_once_its_provider_has_forgotten_it() {
    let room = Room::new().await;
    assert!(due(&room, 99).await.is_empty() && !room.records.has_expired(room.binding.id, at(99)));
    for (id, seconds) in
        [("now", Some(20)), ("past", Some(10)), ("long", Some(-5)), ("later", Some(21))]
    {
        store_row(&room, &expiring(id, seconds)).await;
    }
    store_row(&room, &expiring("never", None)).await;
    let found = due(&room, 20).await;
    assert_eq!(names(&found), ["long", "past", "now"]);
    assert_eq!(room.records.expired(&room.binding, at(20), 2).await.unwrap().len(), 2);
    let is_gone = |record: &RecordId| record.as_str() != "past";
    room.records.asked_to_forget(&room.binding, found, at(20), is_gone).await.unwrap();
    assert!(room.row("now").await.is_none() && room.row("long").await.is_none());
    assert!(room.row("past").await.is_some(), "its provider still has it");
    let month = 30 * 24 * 3_600;
    assert_eq!(names(&due(&room, 19 + month).await), ["later"], "not so soon again");
    assert_eq!(names(&due(&room, 20 + month).await), ["later", "past"]);
}

/// Its provider only hid it, and will be asked again. Until then it got a new text without an end.
#[tokio::test]
async fn a_record_that_expires_no_more_is_not_forgotten_later() {
    let room = Room::new().await;
    store_row(&room, &expiring("r1", Some(10))).await;
    let asked = due(&room, 20).await;
    assert!(room.records.has_expired(room.binding.id, at(20)));
    room.records.asked_to_forget(&room.binding, asked, at(20), |_| false).await.unwrap();
    assert!(!room.records.has_expired(room.binding.id, at(20)), "it was asked");
    store_row(&room, &expiring("r1", None)).await;
    assert!(due(&room, 20 + 31 * 24 * 3_600).await.is_empty());
    let prefix = crate::keys::prefix(&room.binding.company_id, room.binding.id);
    let left = room.store.scan(Table::RecordExpiries, &prefix, None, 9).await.unwrap();
    assert!(left.entries.is_empty(), "its entry is gone");
}

#[tokio::test]
async fn a_record_that_is_written_again_expires_when_its_new_row_says_so() {
    let room = Room::new().await;
    let before = expiring("r1", Some(10));
    store_row(&room, &before).await;
    let writes = room.records.write(&expiring("r1", Some(30)), Some(&before)).unwrap();
    room.put(writes).await;
    assert!(due(&room, 29).await.is_empty());
    assert_eq!(names(&due(&room, 30).await), ["r1"]);
    let removed = room.records.remove(&room.binding, [&record("r1")].into_iter()).await.unwrap();
    room.put(removed.writes).await;
    assert!(due(&room, 99).await.is_empty());
}

#[tokio::test]
async fn the_bindings_with_records_that_expire_are_known_after_a_restart() {
    let room = Room::new().await;
    store_row(&room, &expiring("r1", Some(10))).await;
    let again = Records::open(Arc::clone(&room.store), at(1)).await.unwrap();
    assert!(again.has_expired(room.binding.id, at(10)));
    assert!(!again.has_expired(room.binding.id, at(9)));
    crate::remove_binding(&*room.store, &room.binding.company_id, room.binding.id).await.unwrap();
    assert!(!room.records.has_any(&room.binding).await.unwrap());
    let again = Records::open(Arc::clone(&room.store), at(1)).await.unwrap();
    assert!(!again.has_expired(room.binding.id, at(99)));
}

#[test]
fn an_imported_row_has_its_own_key_only() {
    let (one, other) = (row("r1", &Reader::Nobody), row("r2", &Reader::Nobody));
    let key = crate::keys::key_of(&one);
    assert!(Records::is_key_of(&one, &key) && !Records::is_key_of(&other, &key));
    let foreign = RecordRow { company_id: company("other"), ..one };
    assert!(!Records::is_key_of(&foreign, &key));
}

#[test]
fn an_imported_mark_has_its_own_key_only() {
    let binding = binding(1, "main");
    let of = |reader: &Reader| Mark::owns(&binding.company_id, binding.id, owner(reader));
    for id in AWKWARD {
        let (agents, persons) = (of(&agent(id)), of(&person(id)));
        let key = agents.write().unwrap().key;
        assert!(agents.has_key(&key) && !persons.has_key(&key), "{id}");
    }
}
