//! Rules of `transfer`.

mod export;
mod import;
mod moving;

use super::partition::PARTITIONS;
use crate::rule::{Rule, optional, rules, types};
use memhost_sandbox::OptionalInterface;

const LOSSLESS: &str =
    "Lossless: importing the lines into an empty binding gives the same records.";

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Transfer);
    "TRF-01" "An export loses nothing"
        "The suite exports records and imports them into an empty binding. Its list has the same \
         records, with the same \
         text, summary, metadata, source and times."
        optional("export-records", LOSSLESS)
        => binding(import::lossless);
    "TRF-02" "An export consists of whole lines"
        "The export of a scope with records has lines. Each is JSON and ends with a line feed."
        optional("chunk.lines", "Whole lines, each ended by a line feed; at most 1 MiB.")
        => binding(export::whole_lines);
    "TRF-03" "An export without a cursor starts from the beginning"
        "Two exports without a cursor, the second one by a fresh instance, have the same lines."
        optional("export-records", "From the start without a cursor.")
        => binding(export::anew);
    "TRF-04" "A long export has several parts"
        "The suite exports records of more than one MiB together in several parts. After importing \
         all parts, each \
         record exists."
        optional("chunk.next-cursor", "None: these were the last ones.")
        => binding(export::to_the_end).thorough();
    "TRF-05" "An export separates partitions"
        "The export of another agent, subject or namespace contains nothing of this agent's record."
        types("scope", PARTITIONS)
        => binding(export::partitions);
    "TRF-06" "An export contains nothing that was forgotten"
        "The suite forgets one of two records, whatever the effect is. The export contains nothing \
         of its text."
        optional(
            "export-records",
            "Records that wait for a person are included; forgotten records are not.",
        )
        => binding(export::forgotten);
    "TRF-07" "Waiting records are exported, too"
        "The suite exports a waiting record and imports it into an empty binding. It waits there."
        optional(
            "export-records",
            "Records that wait for a person are included; forgotten records are not.",
        )
        => binding(import::waits);
    "TRF-08" "An import happens once"
        "The suite imports lines twice, and imports an export into the binding that it came from. \
         Nothing that already \
         existed counts as `imported`, and the list is unchanged."
        optional("import-records", "Idempotent by record.")
        => binding(import::once);
    "TRF-09" "All lines are imported or none"
        "Valid lines followed by a broken one are refused, and none of their records exists."
        optional("import-records", "All lines of a call or none")
        => binding(import::all_or_none);
    "TRF-10" "A refusal names the line"
        "The first line is broken, then the last. The answer is `invalid-request`, and its field \
         names the line, \
         counted from `lines.0`."
        optional("import-records", "such as `lines.12`; the first one is `lines.0`.")
        => binding(import::names_the_line);
    "TRF-11" "An import moves no record to another partition"
        "An agent imports another agent's lines. Whether or not this is refused, the records are \
         not in its list, and \
         the other agent's list is unchanged."
        optional("import-records", "A record stays in its partition, whoever imports it.")
        => binding(import::stays);
};
