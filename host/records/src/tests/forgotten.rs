//! What was forgotten by source and by scope, and what comes later of material from before.

use super::*;
use crate::{Selection, Since};
use memhost_store::Table;
use memhost_types::SourceSelector;

const YEAR: i64 = 3_600 * 24 * 365;

fn comment(id: &str) -> SourceRef {
    source(|source| source.comment_id = Some(id.to_owned()))
}

fn selector(id: &str) -> SourceSelector {
    SourceSelector { comment_id: Some(id.to_owned()), ..SourceSelector::default() }
}

fn by(sequence: u64) -> OperationId {
    OperationId::new(1, sequence, 1)
}

/// Forgets, with operation 10 and what came before second 1,000.
async fn forget(room: &Room, reader: &Reader, what: Selection<'_>) {
    let times = (at(1_000), at(1_000));
    let rows = room.records.forgets(reader, &room.binding, what, by(10), times).await.unwrap();
    room.put(rows).await;
}

/// Whether material of the comment `c1` in this scope, which an owner's operation 9 captured, is
/// forgotten.
async fn is_gone(room: &Room, scope: &Scope, owner: Option<&Owner>) -> bool {
    is_gone_since(room, scope, owner, Since::Operation(by(9))).await
}

async fn is_gone_since(room: &Room, scope: &Scope, owner: Option<&Owner>, since: Since) -> bool {
    let of = (scope, &comment("c1"));
    let alone = room.records.is_forgotten(&room.binding, of, owner, since).await.unwrap();
    let arrived = vec![(handle("r"), Some(comment("c1")))];
    let many =
        room.records.forgotten_of(&room.binding, scope, owner, since, arrived).await.unwrap();
    assert_eq!(alone, !many.is_empty(), "both say the same");
    alone
}

#[tokio::test]
async fn nothing_is_forgotten_at_first() {
    let room = Room::new().await;
    assert!(!is_gone(&room, &scope_of(&agent("ada")), None).await);
}

#[tokio::test]
async fn what_came_before_is_gone_and_what_comes_after_stays() {
    let (sources, scope) = ([selector("c1")], scope_of(&agent("ada")));
    for what in [Selection::Sources(&sources), Selection::Scope(&scope)] {
        let room = Room::new().await;
        forget(&room, &Reader::All, what).await;
        for (since, gone) in [
            (Since::Operation(by(9)), true),
            (Since::Operation(by(10)), false),
            (Since::Operation(by(11)), false),
            (Since::Happened(at(999)), true),
            (Since::Happened(at(1_000)), false),
        ] {
            assert_eq!(
                is_gone_since(&room, &scope, None, since).await,
                gone,
                "{what:?}, {since:?}"
            );
        }
    }
}

#[tokio::test]
async fn another_source_or_scope_stays() {
    let room = Room::new().await;
    let (sources, scope) = ([selector("c2")], scope_of(&agent("carol")));
    forget(&room, &Reader::All, Selection::Sources(&sources)).await;
    forget(&room, &Reader::All, Selection::Scope(&scope)).await;
    assert!(!is_gone(&room, &scope_of(&agent("ada")), None).await);
    assert!(!is_gone(&room, &scope_of(&person("carol")), None).await);
    assert!(is_gone(&room, &scope, None).await);
}

#[tokio::test]
async fn a_scope_takes_along_what_is_within_it() {
    let room = Room::new().await;
    let ada = scope_of(&agent("ada"));
    forget(&room, &Reader::All, Selection::Scope(&ada)).await;
    let narrower = Scope { issue_id: Some("i1".to_owned()), ..ada.clone() };
    assert!(is_gone(&room, &narrower, None).await);
    let acting = Scope { actor_agent_id: Some("eve".parse().unwrap()), ..narrower };
    assert!(is_gone(&room, &acting, None).await, "who acts is no part of it");
    assert!(!is_gone(&room, &scope_of(&Reader::Nobody), None).await, "a wider one stays");
}

#[tokio::test]
async fn a_selector_takes_along_what_it_matches() {
    let room = Room::new().await;
    let issue = [SourceSelector { issue_id: Some("i1".to_owned()), ..SourceSelector::default() }];
    forget(&room, &Reader::All, Selection::Sources(&issue)).await;
    let company = scope_of(&Reader::Nobody);
    assert!(!is_gone(&room, &company, None).await);
    let of_issue = SourceRef { issue_id: Some("i1".to_owned()), ..comment("c1") };
    let of = (&company, &of_issue);
    let since = Since::Operation(by(9));
    assert!(room.records.is_forgotten(&room.binding, of, None, since).await.unwrap());
}

#[tokio::test]
async fn whoever_reads_a_part_forgets_that_part() {
    let (sources, scope) = ([selector("c1")], scope_of(&Reader::Nobody));
    let scope = Scope { issue_id: Some("i1".to_owned()), ..scope };
    for what in [Selection::Sources(&sources), Selection::Scope(&scope)] {
        for reader in [Reader::All, Reader::Nobody, agent("ada"), person("ada"), agent("carol")] {
            let room = Room::new().await;
            forget(&room, &reader, what).await;
            assert!(is_gone(&room, &scope, None).await, "the company's, by {reader:?}");
            for other in [agent("ada"), person("ada"), agent("carol")] {
                let gone = is_gone(&room, &scope, Some(&owner(&other))).await;
                let may = reader == Reader::All || reader == other;
                assert_eq!(gone, may, "{what:?}: {reader:?} forgets what is {other:?}'s");
            }
        }
    }
}

#[tokio::test]
async fn awkward_names_are_told_apart() {
    let room = Room::new().await;
    for (number, id) in AWKWARD.iter().enumerate() {
        let (sources, scope) = ([selector(id)], scope_of(&person(id)));
        forget(&room, &agent(id), Selection::Sources(&sources)).await;
        forget(&room, &agent(id), Selection::Scope(&scope)).await;
        for other in &AWKWARD[number + 1..] {
            let of = (&scope_of(&agent("x")), &comment(other));
            let since = Since::Operation(by(9));
            let owner = owner(&agent(other));
            for owner in [None, Some(&owner)] {
                let gone = room.records.is_forgotten(&room.binding, of, owner, since).await;
                assert!(!gone.unwrap(), "{id} is not {other}");
                assert!(!is_gone(&room, &scope_of(&person(other)), owner).await, "{id}, {other}");
            }
        }
    }
}

#[tokio::test]
async fn the_binding_that_forgot_is_meant() {
    let mut room = Room::new().await;
    let (sources, scope) = ([selector("c1")], scope_of(&agent("ada")));
    forget(&room, &Reader::All, Selection::Sources(&sources)).await;
    forget(&room, &Reader::All, Selection::Scope(&scope)).await;
    room.binding = binding(2, "other");
    assert!(!is_gone(&room, &scope, None).await);
    room.binding = Binding { company_id: company("acm"), ..binding(1, "main") };
    assert!(!is_gone(&room, &scope, None).await);
}

#[tokio::test]
async fn forgetting_again_never_goes_back() {
    let room = Room::new().await;
    let (sources, scope) = ([selector("c1")], scope_of(&agent("ada")));
    for what in [Selection::Sources(&sources), Selection::Scope(&scope)] {
        forget(&room, &Reader::All, what).await;
        // An older operation ends later.
        let times = (at(5), at(1_001));
        let rows = room.records.forgets(&Reader::All, &room.binding, what, by(3), times);
        room.put(rows.await.unwrap()).await;
    }
    assert!(is_gone_since(&room, &scope, None, Since::Operation(by(9))).await);
    assert!(is_gone_since(&room, &scope, None, Since::Happened(at(999))).await);
}

#[tokio::test]
async fn of_some_records_those_with_a_forgotten_source_are_named() {
    let room = Room::new().await;
    let sources = [selector("c1")];
    forget(&room, &Reader::All, Selection::Sources(&sources)).await;
    let arrived = vec![
        (handle("r1"), Some(comment("c1"))),
        (handle("r2"), Some(comment("c2"))),
        (handle("r3"), None),
    ];
    let (scope, since) = (scope_of(&agent("ada")), Since::Operation(by(9)));
    let gone = room.records.forgotten_of(&room.binding, &scope, None, since, arrived.clone());
    assert_eq!(gone.await.unwrap(), [handle("r1")]);
    forget(&room, &Reader::All, Selection::Scope(&scope)).await;
    let gone = room.records.forgotten_of(&room.binding, &scope, None, since, arrived);
    assert_eq!(gone.await.unwrap().len(), 3, "with the scope all of them");
    let none = room.records.forgotten_of(&room.binding, &scope, None, since, Vec::new());
    assert!(none.await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_forgotten_is_remembered_for_a_year() {
    let mut room = Room::new().await;
    let (sources, scope) = ([selector("c1")], scope_of(&agent("ada")));
    forget(&room, &Reader::All, Selection::Sources(&sources)).await;
    room.reopen(at(2_000)).await;
    assert!(is_gone(&room, &scope, None).await, "after a restart");
    forget(&room, &Reader::All, Selection::Scope(&scope)).await;
    let sweep = async |second| room.records.sweep_forgotten(&company("acme"), at(second)).await;
    assert_eq!(sweep(1_000 + YEAR).await.unwrap(), 0);
    assert!(is_gone(&room, &scope, None).await);
    assert_eq!(sweep(1_001 + YEAR).await.unwrap(), 3, "the source, the scope and any scope");
    assert!(!is_gone(&room, &scope, None).await);
}

#[tokio::test]
async fn a_deleted_binding_forgets_what_it_forgot() {
    let room = Room::new().await;
    let sources = [selector("c1")];
    forget(&room, &Reader::All, Selection::Sources(&sources)).await;
    crate::remove_binding(&*room.store, &room.binding.company_id, room.binding.id).await.unwrap();
    let prefix = crate::keys::prefix(&room.binding.company_id, room.binding.id);
    let page = room.store.scan(Table::ForgottenSources, &prefix, None, 9).await.unwrap();
    assert!(page.entries.is_empty());
}
