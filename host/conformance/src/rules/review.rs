//! `review`: what waits for a person, and what becomes of it.

mod deciding;
mod waiting;

use super::partition::PARTITIONS;
use crate::rule::{Rule, Run, optional, types};
use memhost_sandbox::OptionalInterface;

const WAITS: &str = "What waits in this scope, oldest first; at most `limit`, 1 to 1,000.";
const NOT_THERE: &str = "The thing named does not exist in this scope. Not retried.";

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "REV-01",
        "What waits is not found",
        "A record waits: neither a query with its own words nor the preamble of a run answers it.",
        optional("list-pending", "Nothing of it is returned by `provider.query`."),
        Run::Binding(|subject| Box::pin(waiting::hidden(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-02",
        "Who waits longest comes first",
        "Three records come to wait, one after the other: `list-pending` has them in that order.",
        optional("list-pending", WAITS),
        Run::Binding(|subject| Box::pin(waiting::oldest_first(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-03",
        "A page of what waits is no longer than was asked for",
        "Of three records that wait a page with the limit 2 has two at most.",
        optional("list-pending", WAITS),
        Run::Binding(|subject| Box::pin(waiting::limit(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-04",
        "Everything that waits is seen",
        "Three records wait: in pages of one each of them is there exactly once.",
        types("continuation.next", "More follow at this cursor."),
        Run::Binding(|subject| Box::pin(waiting::pages(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-05",
        "What waits keeps partitions apart",
        "What waits for one agent and subject waits neither in another agent's nor in another subject's scope.",
        types("scope", PARTITIONS),
        Run::Binding(|subject| Box::pin(waiting::partitions(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-06",
        "What waits can be forgotten",
        "A record that waits is forgotten: the effect is not `not-found`, and it waits no longer.",
        optional("list-pending", "What waits can be forgotten like what counts."),
        Run::Binding(|subject| Box::pin(waiting::forgotten(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-07",
        "What is approved counts",
        "After an approval the record waits no longer, `get-record` has it, and a query with its words finds it.",
        optional("decide", "What was approved is a record like any other from then on"),
        Run::Binding(|subject| Box::pin(deciding::approved(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-08",
        "What is rejected is gone",
        "A rejection answers no record; afterwards the record does not wait, and no list, query or `get-record` \
         answers it.",
        optional("decide", "what was rejected is returned by no call."),
        Run::Binding(|subject| Box::pin(deciding::rejected(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-09",
        "What was edited holds",
        "A record that waits is approved with another text: `decide` and `get-record` answer that text.",
        optional("decision.edit", "Approved in this form"),
        Run::Binding(|subject| Box::pin(deciding::edited(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-10",
        "An edit's id is ignored",
        "An edit with an id of its own: the answer has the id of the record that waited, and there is no record under \
         the other.",
        optional("decision.edit", "an `id` in it is ignored."),
        Run::Binding(|subject| Box::pin(deciding::id_is_ignored(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-11",
        "The same decision twice is one",
        "An approval, a rejection and an edit are delivered again, to a fresh instance: each answers what it answered \
         before.",
        optional("decide", "the same decision twice answers the same."),
        Run::Binding(|subject| Box::pin(deciding::twice(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-12",
        "A decision stands",
        "Another decision on a record that was approved, edited or rejected: `invalid-request`, and the record is as \
         it was.",
        optional("decide", "Another decision on a decided record is an `invalid-request`."),
        Run::Binding(|subject| Box::pin(deciding::stands(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-13",
        "What is not there cannot be decided",
        "An approval and an edit of an id that was never given are refused, with `not-found` or as decided otherwise; a \
         rejection answers no record; and there is none under that id.",
        types("error.not-found", NOT_THERE),
        Run::Binding(|subject| Box::pin(deciding::unknown(subject))),
    )
    .of(OptionalInterface::Review),
    Rule::new(
        "REV-14",
        "Nobody decides what is another one's",
        "An agent approves what waits for another agent: it is refused like an id that was never given, and still waits.",
        types("error.not-found", NOT_THERE),
        Run::Binding(|subject| Box::pin(deciding::foreign(subject))),
    )
    .of(OptionalInterface::Review),
];
