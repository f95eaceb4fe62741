//! Marks: when something is hidden, when it is not any more, and what a crash leaves.

use super::*;
use memhost_types::OperationErrorCode;

/// The completion of a write that made no row.
async fn ends(room: &Room, write: &mut Write, progress: Progress) {
    let writes = write.marks.end(&room.records, progress, at(100)).unwrap();
    room.put(writes.clone()).await;
    room.settle(&mut write.marks, &writes).await;
}

#[tokio::test]
async fn nothing_is_hidden_where_nothing_is_private() {
    let room = Room::new().await;
    room.write(&Reader::All, &["r1"]).await;
    assert!(!room.hides() && !room.records.has_private(room.binding.id));
}

#[tokio::test]
async fn a_private_write_hides_from_its_intent_on() {
    let room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    assert!(room.hides(), "the provider may have a record without a row");
    assert!(!room.records.hides_from(room.binding.id, &agent("ada")));
    assert!(!room.records.hides_from(room.binding.id, &Reader::All));
    room.end(write, &["r1"]).await;
    assert!(room.hides());
}

#[tokio::test]
async fn an_agent_that_owns_records_is_another_owner_for_the_person_of_its_name() {
    for id in AWKWARD {
        let room = Room::new().await;
        room.write(&agent(id), &["r1"]).await;
        assert!(room.records.hides_from(room.binding.id, &person(id)), "{id}");
        assert!(!room.records.hides_from(room.binding.id, &agent(id)), "{id}");
    }
}

#[tokio::test]
async fn the_mark_is_removed_with_the_last_private_record_of_the_owner() {
    let room = Room::new().await;
    room.write(&agent("ada"), &["r1", "r2"]).await;
    room.remove(&["r1"]).await;
    assert!(room.hides());
    room.remove(&["r2"]).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn owners_do_not_share_a_mark() {
    let room = Room::new().await;
    room.write(&agent("ada"), &["r1"]).await;
    room.write(&person("ada"), &["r2"]).await;
    room.remove(&["r1"]).await;
    assert!(room.records.hides_from(room.binding.id, &agent("ada")));
    assert!(!room.records.hides_from(room.binding.id, &person("ada")));
}

#[tokio::test]
async fn a_mark_is_kept_while_a_private_write_runs() {
    let room = Room::new().await;
    room.write(&agent("ada"), &["r1"]).await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    room.remove(&["r1"]).await;
    assert!(room.hides(), "it may make a record");
    room.end(write, &[]).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn a_write_without_rows_leaves_its_owner_as_it_was() {
    let room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    room.end(write, &[]).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn a_write_that_never_called_its_provider_wrote_nothing() {
    let room = Room::new().await;
    let mut write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    ends(&room, &mut write, Progress::NotCalled).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn a_write_without_an_answer_hides_what_it_may_have_written() {
    for error in [None, Some(OperationErrorCode::TimedOut), Some(OperationErrorCode::Unavailable)] {
        let room = Room::new().await;
        let mut write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
        ends(&room, &mut write, Progress::Called(error)).await;
        assert!(room.hides(), "{error:?}");
        room.records.sweep(&room.binding.company_id).await.unwrap();
        assert!(room.hides(), "the sweep knows no better: {error:?}");
    }
}

#[tokio::test]
async fn a_provider_that_refuses_has_written_nothing() {
    for code in [
        OperationErrorCode::InvalidRequest,
        OperationErrorCode::Unsupported,
        OperationErrorCode::QuotaExceeded,
    ] {
        let room = Room::new().await;
        let mut write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
        ends(&room, &mut write, Progress::Called(Some(code))).await;
        assert!(!room.hides(), "{code:?}");
    }
}

#[tokio::test]
async fn an_answer_whose_rows_are_missing_hides_what_was_written() {
    let room = Room::new().await;
    let mut write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    write.marks.rows_are_missing();
    ends(&room, &mut write, Progress::Answered).await;
    assert!(room.hides());
}

#[tokio::test]
async fn an_intent_that_could_not_be_stored_runs_no_more() {
    let room = Room::new().await;
    let mut write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    write.marks.abandon(&room.records);
    assert!(!room.records.may_be_private(&room.binding, &Reader::Nobody, &[]));
}

#[tokio::test]
async fn a_write_for_the_company_leaves_no_mark() {
    let room = Room::new().await;
    let mut write = room.begin(&agent("ada"), Some(Visibility::Company)).await;
    assert!(write.marks.end(&room.records, Progress::Called(None), at(9)).unwrap().is_empty());
    ends(&room, &mut write, Progress::Called(None)).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn marks_survive_a_restart() {
    let mut room = Room::new().await;
    room.write(&agent("ada"), &["r1"]).await;
    room.reopen(at(50)).await;
    assert!(room.hides() && !room.records.hides_from(room.binding.id, &agent("ada")));
    room.remove(&["r1"]).await;
    room.reopen(at(60)).await;
    assert!(!room.hides());
}

#[tokio::test]
async fn a_crash_in_a_private_write_hides_what_was_made_until_then() {
    let mut room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    let began = write.operation.started_at;
    let crashed = at(10_000);
    room.reopen(crashed).await;
    let may_be = |at: Timestamp| room.records.may_be_private(&room.binding, &Reader::Nobody, &[at]);
    assert!(may_be(began) && may_be(at(5_000)) && may_be(crashed));
    assert!(!may_be(at(20_000)), "it was made by somebody else, later");
    assert!(room.records.may_be_private(&room.binding, &Reader::Nobody, &[]), "of unknown age");
    assert!(!room.records.may_be_private(&room.binding, &agent("ada"), &[at(5_000)]));
}

#[tokio::test]
async fn the_time_of_a_crash_is_noted_once() {
    let mut room = Room::new().await;
    room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    room.reopen(at(10_000)).await;
    room.reopen(at(90_000)).await;
    let late = room.records.may_be_private(&room.binding, &Reader::Nobody, &[at(50_000)]);
    assert!(!late, "the second start extends nothing");
    room.records.sweep(&room.binding.company_id).await.unwrap();
    assert!(room.hides(), "what it wrote before is still not known");
}

#[tokio::test]
async fn a_mark_that_a_crash_left_behind_is_swept() {
    let mut room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    room.put(write.marks.end(&room.records, Progress::Answered, at(9)).unwrap()).await;
    // The process ends before it removes the mark of the owner.
    room.reopen(at(10)).await;
    assert!(room.hides());
    room.records.sweep(&room.binding.company_id).await.unwrap();
    assert!(!room.hides());
}

#[tokio::test]
async fn a_write_that_begins_while_a_mark_is_removed_keeps_it() {
    let room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    let owners = [owner(&agent("ada"))].into();
    let began = room.records.marks.write().disown(room.binding.id, &owners);
    assert_eq!(began, owners.into_iter().collect::<Vec<_>>());
    assert!(room.hides());
    room.end(write, &["r1"]).await;
    assert!(room.hides());
}

#[tokio::test]
async fn a_running_write_says_after_a_crash_that_its_owner_has_records() {
    let room = Room::new().await;
    let operation = operation(2, OperationKind::RecordUpsert, scope_of(&agent("ada")));
    let ownership =
        Ownership::of(&room.binding, &operation.scope, Some(Visibility::Agent)).unwrap();
    let mut marks = OperationMarks::default();
    marks.plan(&operation, &room.binding, &ownership);
    let rows = marks.begin(&room.records).unwrap();
    // Somebody else removed the mark of the owner after the write had stored it.
    let running = rows.into_iter().filter(|row| {
        let mark: serde_json::Value = store::decode("mark", row.new.as_deref().unwrap()).unwrap();
        mark["what"] != "owns"
    });
    room.put(running.collect()).await;
    let again = Records::open(Arc::clone(&room.store), at(10)).await.unwrap();
    assert!(again.hides_from(room.binding.id, &Reader::Nobody));
}

#[tokio::test]
async fn a_deleted_binding_leaves_no_mark() {
    let mut room = Room::new().await;
    room.write(&agent("ada"), &["r1"]).await;
    room.begin(&person("u1"), Some(Visibility::Person)).await;
    let Binding { company_id, id, .. } = room.binding.clone();
    crate::remove_binding(&*room.store, &company_id, id).await.unwrap();
    room.records.forget_binding(id);
    assert!(!room.hides());
    room.reopen(at(9)).await;
    assert!(!room.hides() && room.row("r1").await.is_none());
    assert!(!room.records.has_any(&room.binding).await.unwrap());
}

#[tokio::test]
async fn the_marks_of_one_company_and_binding_are_not_those_of_another() {
    let room = Room::new().await;
    room.write(&agent("ada"), &["r1"]).await;
    assert!(!room.records.hides_from(binding(2, "other").id, &Reader::Nobody));
    room.records.reload(&company("acm"), at(5)).await.unwrap();
    room.records.reload(&company("acme"), at(5)).await.unwrap();
    assert!(room.hides());
}
