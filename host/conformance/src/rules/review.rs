//! `review`: what waits for a person, and what becomes of it.

mod deciding;
mod waiting;

use super::partition::PARTITIONS;
use crate::rule::{Rule, Run, optional, types};
use memhost_sandbox::OptionalInterface;

const WAITS: &str = "The records that wait in this scope, oldest first; at most `limit`, 1 to 1,000.";
const NOT_THERE: &str = "The thing named does not exist in this scope. Not retried.";

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "REV-01",
        "A waiting record is not found",
        "Neither a query with its own words nor the preamble of a run returns a record that waits.",
        optional("list-pending", "`provider.query` returns none of them."),
        Run::Binding(|subject| Box::pin(waiting::hidden(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-02",
        "The record that has waited longest comes first",
        "Three records start to wait, one after the other. `list-pending` returns them in that order.",
        optional("list-pending", WAITS),
        Run::Binding(|subject| Box::pin(waiting::oldest_first(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-03",
        "A page of waiting records has at most the requested number",
        "Of three waiting records, a page with the limit 2 has at most two.",
        optional("list-pending", WAITS),
        Run::Binding(|subject| Box::pin(waiting::limit(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-04",
        "Each waiting record is listed once",
        "Three records wait. In pages of one, each appears exactly once.",
        types("continuation.next", "More follow at this cursor."),
        Run::Binding(|subject| Box::pin(waiting::pages(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-05",
        "Waiting records separate partitions",
        "What waits for one agent and subject does not appear in another agent's or another subject's scope.",
        types("scope", PARTITIONS),
        Run::Binding(|subject| Box::pin(waiting::partitions(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-06",
        "A waiting record can be forgotten",
        "The suite forgets a waiting record. The effect is not `not-found`, and the record no longer waits.",
        optional("list-pending", "They can be forgotten like other records."),
        Run::Binding(|subject| Box::pin(waiting::forgotten(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-07",
        "An approved record is a normal record",
        "After an approval the record no longer waits, `get-record` returns it, and a query with its words finds it.",
        optional("decide", "An approved record is from then on like any other."),
        Run::Binding(|subject| Box::pin(deciding::approved(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-08",
        "A rejected record is gone",
        "A rejection answers no record. Afterwards the record does not wait, and no list, query or `get-record` \
         returns it.",
        optional("decide", "No call returns a rejected record."),
        Run::Binding(|subject| Box::pin(deciding::rejected(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-09",
        "An edit replaces the text",
        "The suite approves a waiting record with another text. `decide` and `get-record` return that text.",
        optional("decision.edit", "Approved in this form"),
        Run::Binding(|subject| Box::pin(deciding::edited(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-10",
        "The id of an edit is ignored",
        "The suite sends an edit with an id. The answer has the id of the waiting record, and no record exists under \
         the other id.",
        optional("decision.edit", "an `id` in it is ignored."),
        Run::Binding(|subject| Box::pin(deciding::id_is_ignored(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-11",
        "A repeated decision gives the same answer",
        "The suite delivers an approval, a rejection and an edit again, to a fresh instance. Each gives the same \
         answer as before.",
        optional("decide", "the same decision twice answers the same."),
        Run::Binding(|subject| Box::pin(deciding::twice(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-12",
        "A decision is final",
        "A different decision on a record that was approved, edited or rejected is an `invalid-request`, and the \
         record is unchanged.",
        optional("decide", "Another decision on a decided record is an `invalid-request`."),
        Run::Binding(|subject| Box::pin(deciding::stands(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-13",
        "An unknown record cannot be decided",
        "An approval and an edit of an id that was never given are refused, with `not-found` or as already decided. A \
         rejection answers no record. No record exists under that id.",
        types("error.not-found", NOT_THERE),
        Run::Binding(|subject| Box::pin(deciding::unknown(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-14",
        "A record of another agent cannot be decided",
        "An agent approves a record that waits for another agent. The call is refused like one with an unknown id, \
         and the record still waits.",
        types("error.not-found", NOT_THERE),
        Run::Binding(|subject| Box::pin(deciding::foreign(subject))),
    )
    .of(OptionalInterface::Review),
];
