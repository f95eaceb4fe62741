//! Where a record came from and who answers for it, as text for models: in recall and over MCP.

use jiff::Timestamp;

use super::foreign::name;
use super::{Snippet, SourceRef};

impl Snippet {
    /// When its event happened, else when it was made. A correction has a day of its own.
    pub fn told_at(&self) -> Option<Timestamp> {
        self.happened_at.or(self.created_at).or(self.updated_at)
    }

    /// Its source, its writer, its day, its last correction and its end, a phrase each. What others
    /// wrote in them is quoted.
    pub fn provenance(&self) -> Vec<String> {
        let mut told = Vec::new();
        if let Some(source) = &self.source {
            told.extend(named(source));
        }
        if let Some(claimed) = &self.claimed_source {
            let claims = named(claimed).join(", ");
            told.push(format!("its provider says: {claims}"));
        }
        let asserted = self.source.as_ref().and_then(|source| source.asserted_by.as_deref());
        // Who has corrected it is the writer of what it says now.
        let writer = self.written_by.as_ref().filter(|writer| {
            self.corrected.as_ref().is_none_or(|corrected| corrected.by != **writer)
        });
        let writer = writer.map(ToString::to_string);
        told.extend(writer.as_deref().map(|writer| format!("written by {}", name(writer))));
        // Usually the writer is the one who asserts it.
        let asserted = asserted.filter(|asserted| writer.as_deref() != Some(*asserted));
        told.extend(asserted.map(|by| format!("asserted by {}", name(by))));
        let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
        told.extend(self.told_at().map(day));
        told.extend(self.corrected.as_ref().map(|corrected| {
            format!("corrected by {} on {}", name(&corrected.by.to_string()), day(corrected.at))
        }));
        told.extend(self.expires_at.map(|at| format!("until {}", day(at))));
        told
    }
}

/// The ids of a source, or its kind where it has none.
fn named(source: &SourceRef) -> Vec<String> {
    let named: Vec<String> =
        source.ids().map(|(what, id)| format!("{what} {}", name(id))).collect();
    match named.is_empty() {
        true => vec![source.kind.as_str().replace('_', " ")],
        false => named,
    }
}
