//! What becomes of a row when its record is written, written again, corrected or imported.

use super::*;
use memhost_types::{RecordWrite, Replacement};

fn replacement(at: Timestamp) -> Replacement {
    Replacement {
        operation_id: OperationId::new(1, 1, 1),
        principal: Principal::Operator,
        happened_at: at,
        of_everybody: false,
    }
}

/// The writer and the owner of a record, as its row says.
async fn ownership_of(room: &Room, id: &str) -> (Visibility, Option<Owner>) {
    let row = room.row(id).await.unwrap();
    (row.visibility, Owner::of_row(&row))
}

/// Another write of `r`, which a reader makes with what it asks for.
async fn rewritten(
    first: &Reader,
    second: &Reader,
    asked: Option<Visibility>,
) -> (Visibility, Option<Owner>) {
    let room = Room::new().await;
    room.write(first, &["r"]).await;
    let write = room.begin(second, asked).await;
    room.end(write, &["r"]).await;
    ownership_of(&room, "r").await
}

#[tokio::test]
async fn a_private_record_stays_its_owners_whoever_writes_it() {
    let ada = (Visibility::Agent, Some(owner(&agent("ada"))));
    for other in [agent("carol"), person("ada"), Reader::Nobody] {
        for asked in [None, Some(Visibility::Company), Some(visibility_of(&other))] {
            assert_eq!(rewritten(&agent("ada"), &other, asked).await, ada, "{other:?}, {asked:?}");
        }
    }
}

#[tokio::test]
async fn the_owner_shares_a_record_by_saying_so() {
    let company = Some(Visibility::Company);
    let ada = agent("ada");
    assert_eq!(rewritten(&ada, &ada, company).await, (Visibility::Company, None));
    assert_eq!(rewritten(&ada, &Reader::All, company).await, (Visibility::Company, None));
}

#[tokio::test]
async fn the_owner_who_says_nothing_keeps_a_record_private() {
    let adas = (Visibility::Agent, Some(owner(&agent("ada"))));
    assert_eq!(rewritten(&agent("ada"), &agent("ada"), None).await, adas);
    let persons = (Visibility::Person, Some(owner(&person("u1"))));
    assert_eq!(rewritten(&person("u1"), &person("u1"), None).await, persons);
}

#[tokio::test]
async fn a_shared_record_becomes_private_to_whoever_says_so() {
    let carols = (Visibility::Agent, Some(owner(&agent("carol"))));
    let asked = Some(Visibility::Agent);
    assert_eq!(rewritten(&Reader::Nobody, &agent("carol"), asked).await, carols);
}

#[tokio::test]
async fn an_owner_who_gives_a_record_to_all_may_have_none_left() {
    let room = Room::new().await;
    room.write(&agent("ada"), &["r"]).await;
    let write = room.begin(&agent("ada"), Some(Visibility::Company)).await;
    room.end(write, &["r"]).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn a_record_that_the_policy_keeps_keeps_its_row() {
    let room = Room::new().await;
    room.write(&Reader::Nobody, &["r"]).await;
    let before = room.row("r").await.unwrap();
    let write = room.begin(&agent("carol"), Some(Visibility::Agent)).await;
    let made = [Made { handle: &handle("r"), origin: None, write: None, created_by: None }];
    let by = (&write.writer, &write.ownership);
    let changes = room
        .records
        .written(&write.operation, &room.binding, by, &made, (false, |_: &RecordRow| true))
        .await
        .unwrap();
    room.put(changes.writes).await;
    assert_eq!(room.row("r").await.unwrap(), before);
}

#[tokio::test]
async fn a_write_without_a_source_keeps_the_one_before() {
    let room = Room::new().await;
    let from = source(|source| source.comment_id = Some("c1".to_owned()));
    let mut write = room.begin(&Reader::Nobody, None).await;
    write.operation.source = Some(from.clone());
    write.ownership = write.ownership.of_material(Some(at(3)), Some(replacement(at(3))));
    room.end(write, &["r"]).await;
    room.write(&Reader::Nobody, &["r"]).await;
    let row = room.row("r").await.unwrap();
    assert_eq!((row.source.as_ref(), row.happened_at), (Some(&from), Some(at(3))));
    assert_eq!(row.replaces, Some(replacement(at(3))));
    assert_eq!(row.created_at, at(2), "when it was first written");
}

#[tokio::test]
async fn a_write_from_another_source_replaces_nothing_any_more() {
    let room = Room::new().await;
    let mut write = room.begin(&Reader::Nobody, None).await;
    write.operation.source = Some(source(|source| source.comment_id = Some("c1".to_owned())));
    write.ownership = write.ownership.of_material(Some(at(3)), Some(replacement(at(3))));
    room.end(write, &["r"]).await;
    let mut write = room.begin(&Reader::Nobody, None).await;
    let other = source(|source| source.comment_id = Some("c2".to_owned()));
    write.operation.source = Some(other.clone());
    room.end(write, &["r"]).await;
    let row = room.row("r").await.unwrap();
    assert_eq!((row.source, row.replaces), (Some(other), None));
}

#[tokio::test]
async fn the_source_and_the_end_of_one_record_come_before_those_of_the_request() {
    let room = Room::new().await;
    let own = source(|source| source.comment_id = Some("c1".to_owned()));
    let asked = RecordWrite {
        source: Some(own.clone()),
        expires_at: Some(at(99)),
        ..RecordWrite::default()
    };
    let mut write = room.begin(&Reader::Nobody, None).await;
    write.operation.source = Some(source(|source| source.run_id = Some("run".to_owned())));
    let made = [Made { handle: &handle("r"), origin: None, write: Some(&asked), created_by: None }];
    let by = (&write.writer, &write.ownership);
    let rules = (false, |_: &RecordRow| false);
    let changes =
        room.records.written(&write.operation, &room.binding, by, &made, rules).await.unwrap();
    room.put(changes.writes).await;
    let row = room.row("r").await.unwrap();
    assert_eq!((row.source, row.expires_at), (Some(own), Some(at(99))));
}

#[tokio::test]
async fn a_correction_says_who_corrected_and_keeps_where_the_record_came_from() {
    let room = Room::new().await;
    let origin = row("old", &agent("ada"));
    let mut operation = operation(5, OperationKind::Correct, scope_of(&agent("ada")));
    let ada = Principal::Agent("ada".parse().unwrap());
    operation.principal = ada.clone();
    operation.source = Some(source(|source| source.external_ref = Some("mcp:x/1".to_owned())));
    let ownership = Ownership::like(&origin);
    let made =
        [Made { handle: &handle("new"), origin: Some(&origin), write: None, created_by: None }];
    let by = (&agent("ada"), &ownership);
    let rules = (false, |_: &RecordRow| false);
    let changes = room.records.written(&operation, &room.binding, by, &made, rules).await.unwrap();
    assert!(changes.lock.is_some(), "it is private");
    room.put(changes.writes).await;
    let row = room.row("new").await.unwrap();
    assert_eq!(row.corrected_by, Some(ada));
    assert_eq!(row.corrected_via.as_deref(), Some("mcp:x/1"));
    assert_eq!((row.scope, row.visibility), (origin.scope, Visibility::Agent));
}

#[tokio::test]
async fn the_import_of_a_company_carries_rows_over() {
    let room = Room::new().await;
    let origin = RecordRow { written_by: Principal::System, ..row("old", &agent("ada")) };
    room.put(room.records.write(&origin, None).unwrap()).await;
    let write = room.begin(&Reader::All, None).await;
    let made =
        [Made { handle: &handle("new"), origin: Some(&origin), write: None, created_by: None }];
    let by = (&write.writer, &write.ownership);
    let rules = (true, |_: &RecordRow| false);
    let changes =
        room.records.written(&write.operation, &room.binding, by, &made, rules).await.unwrap();
    room.put(changes.writes).await;
    assert_eq!(room.row("new").await.unwrap(), RecordRow { handle: handle("new"), ..origin });
    assert!(room.row("old").await.is_none(), "the provider gave another name");
}

#[tokio::test]
async fn an_operation_without_records_changes_nothing() {
    let room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    let changes = room.rows_of(&write, &[]).await;
    assert!(changes.writes.is_empty() && changes.taken_from.is_empty() && changes.lock.is_none());
}

#[tokio::test]
async fn rows_are_locked_only_where_something_may_be_private() {
    let room = Room::new().await;
    let locks = async |reader: &Reader| {
        let operation = operation(9, OperationKind::RecordUpsert, scope_of(reader));
        let asked = Some(visibility_of(reader));
        let ownership = Ownership::of(&room.binding, &operation.scope, asked).unwrap();
        let made = [Made { handle: &handle("r"), origin: None, write: None, created_by: None }];
        let rules = (false, |_: &RecordRow| false);
        let by = (reader, &ownership);
        room.records.written(&operation, &room.binding, by, &made, rules).await.unwrap().lock
    };
    assert!(locks(&Reader::Nobody).await.is_none());
    assert!(locks(&agent("ada")).await.is_some());
    room.write(&agent("ada"), &["r2"]).await;
    assert!(locks(&Reader::Nobody).await.is_some());
}

#[tokio::test]
async fn a_record_in_an_agents_partition_is_imported_as_that_agents() {
    let room = Room::new().await;
    let operation = operation(7, OperationKind::Import, scope_of(&Reader::All));
    let of_ada = visible::snippet("r1", Some(scope_of(&agent("ada"))));
    let of_all = visible::snippet("r2", None);
    let of_person = visible::snippet("r3", Some(scope_of(&person("u1"))));
    let snippets = [of_ada, of_all, of_person];
    let rows = room.records.imported(&operation, &room.binding, &snippets).await.unwrap();
    assert!(room.hides(), "before the rows are on disk");
    room.put(rows).await;
    assert_eq!(ownership_of(&room, "r1").await, (Visibility::Agent, Some(owner(&agent("ada")))));
    assert_eq!(ownership_of(&room, "r2").await, (Visibility::Company, None));
    assert_eq!(ownership_of(&room, "r3").await, (Visibility::Company, None));
}

#[tokio::test]
async fn a_record_that_has_a_row_is_not_imported_again() {
    let mut room = Room::new().await;
    room.write(&agent("ada"), &["r1"]).await;
    let operation = operation(7, OperationKind::Import, scope_of(&Reader::All));
    let snippets = [visible::snippet("r1", None)];
    let rows = room.records.imported(&operation, &room.binding, &snippets).await.unwrap();
    assert!(rows.is_empty());
    room.reopen(at(9)).await;
    assert!(room.hides());
}

#[tokio::test]
async fn removing_a_record_without_a_row_takes_from_nobody() {
    let room = Room::new().await;
    let changes = room.records.remove(&room.binding, [record("r")].iter()).await.unwrap();
    assert!(changes.taken_from.is_empty());
    assert_eq!(changes.writes.len(), 1);
}
