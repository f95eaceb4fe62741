//! Rules of `review`.

mod deciding;
mod waiting;

use super::partition::PARTITIONS;
use crate::rule::{Rule, optional, rules, types};
use memhost_sandbox::OptionalInterface;

const WAITS: &str =
    "The records that wait in this scope, oldest first; at most `limit`, 1 to 1,000.";
const NOT_THERE: &str = "The thing named does not exist in this scope. Not retried.";

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Review);
    "REV-01" "A waiting record is not found"
        "Neither a query with its own words nor the preamble of a run returns a record that waits."
        optional("list-pending", "`provider.query` returns none of them.")
        => binding(waiting::hidden);
    "REV-02" "The record that has waited longest comes first"
        "Three records start to wait, one after the other. `list-pending` returns them in that \
         order."
        optional("list-pending", WAITS)
        => binding(waiting::oldest_first);
    "REV-03" "A page of waiting records has at most the requested number"
        "A page with the limit 2 of three waiting records has at most two."
        optional("list-pending", WAITS)
        => binding(waiting::limit);
    "REV-04" "Each waiting record is listed once"
        "Three records wait. In pages of one, each appears exactly once."
        types("continuation.next", "More follow at this cursor.")
        => binding(waiting::pages);
    "REV-05" "Waiting records separate partitions"
        "What waits for one agent and subject does not appear in another agent's or another \
         subject's scope."
        types("scope", PARTITIONS)
        => binding(waiting::partitions);
    "REV-06" "A waiting record can be forgotten"
        "The suite forgets a waiting record. The effect is not `not-found`, and the record no \
         longer waits."
        optional("list-pending", "They can be forgotten like other records.")
        => binding(waiting::forgotten);
    "REV-07" "An approved record is a normal record"
        "After an approval the record no longer waits, `get-record` returns it, and a query with \
         its words finds it."
        optional("decide", "An approved record is from then on like any other.")
        => binding(deciding::approved);
    "REV-08" "A rejected record is gone"
        "A rejection answers no record. Afterwards the record does not wait, and no list, query or \
         `get-record` returns \
         it."
        optional("decide", "No call returns a rejected record.")
        => binding(deciding::rejected);
    "REV-09" "An edit replaces the text"
        "The suite approves a waiting record with another text. `decide` and `get-record` return \
         that text."
        optional("decision.edit", "Approved in this form")
        => binding(deciding::edited);
    "REV-10" "The id of an edit is ignored"
        "The suite sends an edit with an id. The answer has the id of the waiting record, and no \
         record exists under \
         the other id."
        optional("decision.edit", "an `id` in it is ignored.")
        => binding(deciding::id_is_ignored);
    "REV-11" "A repeated decision gives the same answer"
        "The suite delivers an approval, a rejection and an edit again, to a fresh instance. Each \
         gives the same answer \
         as before."
        optional("decide", "the same decision twice answers the same.")
        => binding(deciding::twice);
    "REV-12" "A decision is final"
        "A different decision on a record that was approved, edited or rejected is an \
         `invalid-request`, and the record \
         is unchanged."
        optional("decide", "Another decision on a decided record is an `invalid-request`.")
        => binding(deciding::stands);
    "REV-13" "An unknown record cannot be decided"
        "An approval and an edit of an id that was never given are refused, with `not-found` or as \
         already decided. A \
         rejection answers no record. No record exists under that id."
        types("error.not-found", NOT_THERE)
        => binding(deciding::unknown);
    "REV-14" "A record of another agent cannot be decided"
        "An agent approves a record that waits for another agent. The call is refused like one \
         with an unknown id, and \
         the record still waits."
        types("error.not-found", NOT_THERE)
        => binding(deciding::foreign);
};
