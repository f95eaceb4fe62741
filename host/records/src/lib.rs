//! The rows of records: what the host knows of each record that an operation made, whose it is, and
//! what was forgotten. Every read asks the rows, whatever a provider does with its own partitions.
//!
//! Five tables belong to this crate, and only it builds their keys: `Records` (a row for each
//! record), `RecordSources` and `RecordExpiries` (indexes of the rows by source and by the time at
//! which they expire), `PrivateWrites` (marks: which bindings have private records, and which
//! private writes go on) and `ForgottenSources` (sources and scopes that were forgotten). All keys
//! of a binding are below its id, so that they are removed with it.
//!
//! The crate knows no operation that runs and no provider. Its functions return [`RowChanges`],
//! which the caller writes in one step with the operation's completion.

mod binding_of;
mod disown;
mod expiry;
mod expiry_index;
mod forgotten;
mod keys;
mod marks;
mod operation_marks;
mod ownership;
mod partition;
mod private_writes;
mod reader;
mod records;
mod source_index;
mod sweep;
mod visible;
mod written;

#[cfg(test)]
mod tests;

pub use self::expiry::Expired;
pub use self::forgotten::{Selection, Since};
pub use self::marks::Mark;
pub use self::operation_marks::{OperationMarks, Progress};
pub use self::ownership::{Ownership, check_owner};
pub use self::partition::HostPartitions;
pub use self::reader::{Owner, Reader, Viewer};
pub use self::records::{Records, RowChanges, Rows, remove_binding};
pub use self::visible::{has_one_of, show_provenance, words_of};
pub use self::written::{Made, visibility_in};
