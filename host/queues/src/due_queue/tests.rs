//! The due queue: what is taken, in which order, how often, and what is accepted once.

use serde::Deserialize;
use tempfile::TempDir;

use super::*;
use memhost_ports::SystemClock;
use memhost_store::{SledOptions, SledStore};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Chore {
    company: CompanyId,
    number: u32,
    binding: u128,
    due_at: Option<Timestamp>,
}

impl Due for Chore {
    type Filter = ();
    const KIND: DueKind = DueKind::Job;
    const TABLE: Table = Table::Jobs;
    const PREFIX: &'static [u8] = b"";
    const NAME: &'static str = "chore";

    fn company_id(&self) -> &CompanyId {
        &self.company
    }

    fn id(&self) -> Uuid {
        Uuid::from_u128(self.number.into())
    }

    fn binding_id(&self) -> BindingId {
        BindingId(Uuid::from_u128(self.binding))
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.due_at
    }

    fn mark(&self) -> (Table, Vec<u8>) {
        (
            Table::JobIndex,
            store::company_key(&self.company, &(self.number % 1_000_000).to_be_bytes()),
        )
    }

    fn matches(&self, (): &()) -> bool {
        true
    }

    fn not_found(id: Uuid) -> BackgroundError {
        BackgroundError::NoJob { id }
    }
}

fn queue() -> (TempDir, DueQueue<Chore>) {
    let directory = TempDir::new().unwrap();
    let store = SledStore::open(directory.path(), SledOptions::default()).unwrap();
    (directory, DueQueue::new(Arc::new(store), Arc::new(SystemClock)))
}

fn chore(number: u32, binding: u128, second: i64) -> Chore {
    let company = "acme".parse().unwrap();
    Chore { company, number, binding, due_at: Some(Timestamp::from_second(second).unwrap()) }
}

async fn write(queue: &DueQueue<Chore>, before: Option<&Chore>, after: &Chore) {
    let changes: Vec<Change> =
        DueQueue::writes(before, after).unwrap().into_iter().map(Change::from).collect();
    drop(queue.store.transact(&changes).await.unwrap());
}

fn numbers(round: &Round<Chore>) -> Vec<u32> {
    round.0.iter().map(|taken| taken.item.number).collect()
}

#[tokio::test]
async fn due_records_are_taken_once_in_the_order_of_time() {
    let (_directory, queue) = queue();
    let later = Timestamp::now().as_second() + 3_600;
    for (number, second) in [(1, 30), (2, 10), (3, later), (4, 20)] {
        write(&queue, None, &chore(number, 1, second)).await;
    }
    let first = queue.take_due(10, |_| 10).await.unwrap();
    assert_eq!((numbers(&first), first.1.map(Timestamp::as_second)), (vec![2, 4, 1], Some(later)));
    assert_eq!(queue.in_flight(), 3);
    assert!(numbers(&queue.take_due(10, |_| 10).await.unwrap()).is_empty());
    drop(first);
    assert_eq!(queue.in_flight(), 0);
    assert_eq!(numbers(&queue.take_due(10, |_| 10).await.unwrap()), [2, 4, 1]);
}

#[tokio::test]
async fn limits_hold_in_all_and_for_each_binding() {
    let (_directory, queue) = queue();
    for (number, binding) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)] {
        write(&queue, None, &chore(number, binding, i64::from(number))).await;
    }
    let of_each = queue.take_due(10, |chore| if chore.binding == 1 { 2 } else { 1 }).await.unwrap();
    assert_eq!(numbers(&of_each), [1, 2, 4]);
    let in_all = queue.take_due(4, |_| 10).await.unwrap();
    assert_eq!((numbers(&in_all), in_all.1), (vec![3], None));
}

#[tokio::test]
async fn the_next_record_is_of_the_same_binding_and_nobody_works_on_it() {
    let (_directory, queue) = queue();
    let later = Timestamp::now().as_second() + 3_600;
    for (number, binding, second) in
        [(1, 1, 10), (2, 2, 20), (3, 1, 30), (4, 1, 40), (5, 1, 50), (6, 1, later)]
    {
        write(&queue, None, &chore(number, binding, second)).await;
    }
    let mut round =
        queue.take_due(10, |chore| if chore.binding == 1 { 2 } else { 0 }).await.unwrap().0;
    let (third, first) = (round.pop().unwrap(), round.pop().unwrap());
    assert_eq!((first.item.number, third.item.number), (1, 3));
    let place = first.place().unwrap();
    assert!(queue.take_next(&place, 10, 2).await.unwrap().is_none(), "the limit is reached");
    // The record itself is not the next one, although it is still due.
    drop(first);
    let next = queue.take_next(&place, 10, 2).await.unwrap().unwrap();
    assert_eq!(next.item.number, 4);
    let place = next.place().unwrap();
    drop(next);
    assert!(queue.take_next(&place, 2, 2).await.unwrap().is_none(), "the oldest comes first");
    let last = queue.take_next(&place, 10, 2).await.unwrap().unwrap();
    assert_eq!(last.item.number, 5);
    let place = last.place().unwrap();
    drop(last);
    assert!(queue.take_next(&place, 10, 2).await.unwrap().is_none(), "it is not due yet");
}

#[tokio::test]
async fn what_is_added_may_be_older_so_a_round_looks_for_it() {
    let (_directory, queue) = queue();
    for (number, second) in [(1, 10), (2, 30)] {
        queue.accept(vec![chore(number, 1, second)]).await.unwrap();
    }
    let first = queue.take_due(10, |_| 1).await.unwrap().0.pop().unwrap();
    queue.accept(vec![chore(3, 1, 20)]).await.unwrap();
    let place = first.place().unwrap();
    drop(first);
    assert!(queue.take_next(&place, 10, 1).await.unwrap().is_none());
    assert_eq!(numbers(&queue.take_due(10, |_| 1).await.unwrap()), [1]);
}

#[tokio::test]
async fn a_record_that_moved_is_due_at_its_new_time_only() {
    let (_directory, queue) = queue();
    let (before, after) = (chore(1, 1, 10), chore(1, 1, 20));
    write(&queue, None, &before).await;
    write(&queue, Some(&before), &after).await;
    // An entry that a crash left behind.
    write(&queue, None, &chore(2, 1, 5)).await;
    write(&queue, None, &Chore { due_at: None, ..chore(2, 1, 5) }).await;
    let round = queue.take_due(10, |_| 10).await.unwrap();
    assert_eq!(round.0.iter().map(|taken| taken.item.clone()).collect::<Vec<_>>(), [after]);
    let left = queue.store.scan(Table::Due, b"", None, 10).await.unwrap();
    assert_eq!(left.entries.len(), 1, "the entry of what is not due is removed");
}

#[tokio::test]
async fn a_change_is_refused_where_the_record_has_changed() {
    let (_directory, queue) = queue();
    let (first, second, third) = (chore(1, 1, 10), chore(1, 1, 20), chore(1, 1, 30));
    write(&queue, None, &first).await;
    write(&queue, Some(&first), &second).await;
    let changes = queue.changes(&first, &third).await.unwrap();
    assert!(matches!(queue.store.transact(&changes).await.unwrap(), Transacted::Conflict(_)));
    let changes = queue.changes(&second, &third).await.unwrap();
    assert!(matches!(queue.store.transact(&changes).await.unwrap(), Transacted::Done(_)));
    assert_eq!(queue.get(&first.company, first.id()).await.unwrap(), third);
}

#[tokio::test]
async fn a_record_is_accepted_once_even_where_a_mark_was_left_without_one() {
    let (_directory, queue) = queue();
    // The second has the mark of the first.
    let (first, second) = (chore(1, 1, 10), chore(1_000_001, 1, 10));
    assert_eq!(queue.accept(vec![first.clone()]).await.unwrap(), [(first.clone(), true)]);
    assert_eq!(queue.accept(vec![second.clone()]).await.unwrap(), [(first.clone(), false)]);
    let row = Change::always(Table::Jobs, key::<Chore>(&first.company, first.id()), None);
    drop(queue.store.transact(&[row]).await.unwrap());
    assert_eq!(queue.accept(vec![second.clone()]).await.unwrap(), [(second, true)]);
}

#[tokio::test]
async fn nothing_is_accepted_beside_a_known_record_that_may_not_be_answered() {
    let (_directory, queue) = queue();
    let (first, same, other) = (chore(1, 1, 10), chore(1_000_001, 1, 10), chore(2, 1, 10));
    queue.accept(vec![first.clone()]).await.unwrap();
    let refused =
        queue.accept_if(vec![other.clone(), same.clone()], |known| *known != first).await.unwrap();
    assert_eq!(refused, None);
    assert!(queue.get(&other.company, other.id()).await.is_err());
    let accepted =
        queue.accept_if(vec![other.clone(), same], |known| *known == first).await.unwrap();
    assert_eq!(accepted, Some(vec![(other, true), (first, false)]));
}

#[tokio::test]
async fn a_round_that_stops_early_is_continued_by_the_next_one() {
    let (_directory, queue) = queue();
    let count = u32::try_from(MOST_READ).unwrap() + 1;
    for number in 0..count {
        write(&queue, None, &chore(number, 1, i64::from(number))).await;
    }
    write(&queue, None, &chore(count, 2, i64::from(count))).await;
    let first = queue.take_due(10, |_| 1).await.unwrap();
    assert_eq!(numbers(&first), [0]);
    assert!(first.1.is_some());
    assert_eq!(numbers(&queue.take_due(10, |_| 1).await.unwrap()), [count]);
}
