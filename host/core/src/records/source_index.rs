//! An entry for each field by which the source of a record can be named, so that the records of a
//! source are found without reading all rows of their binding. An entry may be of a record that has
//! another source now, or is gone; who reads looks at the row. A row is never without its entries:
//! both are written in one step.

use super::Records;
use memhost_store::{self as store, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, CompanyId, RecordRow, SourceSelector};

/// The beginning of the keys of what a source's field names: a name of equal length for each, so
/// that none is the beginning of another one.
fn prefix(company: &CompanyId, binding: BindingId, (name, value): (&str, &str)) -> Vec<u8> {
    let digest = blake3::hash(&[name.as_bytes(), b"\0", value.as_bytes()].concat());
    store::company_key(company, &[binding.0.as_bytes(), &digest.as_bytes()[..16]].concat())
}

fn entries(row: &RecordRow) -> impl Iterator<Item = Vec<u8>> {
    let record = row.handle.provider_record_id.as_str().as_bytes();
    let things = row.source.iter().flat_map(SourceSelector::things_of);
    things.map(move |thing| [&prefix(&row.company_id, row.binding_id, thing)[..], record].concat())
}

/// Adds what changes when a row takes the place of another one.
pub(super) fn change(
    before: Option<&RecordRow>,
    after: Option<&RecordRow>,
    writes: &mut Vec<TableWrite>,
) {
    let old: Vec<Vec<u8>> = before.into_iter().flat_map(entries).collect();
    let new: Vec<Vec<u8>> = after.into_iter().flat_map(entries).collect();
    let gone = old.iter().filter(|key| !new.contains(key)).cloned();
    writes.extend(gone.map(|key| TableWrite::new(Table::RecordSources, key, None)));
    let come = new.into_iter().filter(|key| !old.contains(key));
    writes.extend(come.map(|key| TableWrite::new(Table::RecordSources, key, Some(Vec::new()))));
}

impl Records {
    /// At most so many rows of a binding whose source is one of these and that are wanted.
    pub(crate) async fn of_sources(
        &self,
        binding: &Binding,
        sources: &[SourceSelector],
        most: usize,
        is_wanted: impl Fn(&RecordRow) -> bool,
    ) -> Result<Vec<RecordRow>, StoreError> {
        let mut found: Vec<RecordRow> = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let Some(thing) = source.thing() else { continue };
            let prefix = prefix(&binding.company_id, binding.id, thing);
            let mut entries = store::scan_all(&*self.store, Table::RecordSources, &prefix);
            while found.len() < most
                && let Some((key, _)) = entries.next().await?
            {
                let Some(record) =
                    std::str::from_utf8(&key[prefix.len()..]).ok().and_then(|id| id.parse().ok())
                else {
                    continue;
                };
                let Some(row) = self.row(binding, &record).await? else { continue };
                let Some(from) = &row.source else { continue };
                // One of several sources finds it first.
                let is_first = source.matches(from)
                    && !sources[..number].iter().any(|source| source.matches(from));
                if is_first && is_wanted(&row) {
                    found.push(row);
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::{Scope, SourceKind, SourceRef};

    fn row(comment: &str) -> RecordRow {
        let company: CompanyId = "acme".parse().unwrap();
        let source = SourceRef {
            comment_id: Some(comment.to_owned()),
            issue_id: Some("i1".to_owned()),
            ..SourceRef::new(SourceKind::IssueComment, company.clone())
        };
        RecordRow {
            binding_id: BindingId(uuid::Uuid::nil()),
            handle: memhost_types::RecordHandle {
                provider_key: "p".parse().unwrap(),
                provider_record_id: "r".parse().unwrap(),
            },
            scope: Scope::company(company.clone()),
            company_id: company,
            source: Some(source),
            hook_kind: None,
            written_by: "agent:ada".to_owned(),
            operation_id: memhost_types::OperationId::new(1, 1, 1),
            created_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
            visibility: memhost_types::Visibility::Company,
            received_at: None,
            replaces: None,
            corrected_by: None,
            corrected_via: None,
        }
    }

    /// How many entries a change adds and removes.
    fn changed(before: Option<&RecordRow>, after: Option<&RecordRow>) -> (usize, usize) {
        let mut writes = Vec::new();
        change(before, after, &mut writes);
        let added = writes.iter().filter(|write| write.new.is_some()).count();
        (added, writes.len() - added)
    }

    #[test]
    fn a_row_has_an_entry_for_each_field_and_takes_them_along() {
        let (one, other) = (row("c1"), row("c2"));
        assert_eq!(changed(None, Some(&one)), (2, 0));
        assert_eq!(changed(Some(&one), Some(&one)), (0, 0));
        assert_eq!(changed(Some(&one), Some(&other)), (1, 1), "the issue is the same");
        assert_eq!(changed(Some(&other), None), (0, 2));
        assert_eq!(changed(Some(&one), Some(&RecordRow { source: None, ..one.clone() })), (0, 2));
    }

    #[test]
    fn every_selector_that_means_a_source_begins_at_one_of_its_entries() {
        let source = row("c1").source.unwrap();
        let source = SourceRef {
            document_key: Some("plan".to_owned()),
            run_id: Some("run".to_owned()),
            external_ref: Some("elsewhere".to_owned()),
            ..source
        };
        let things: Vec<_> = SourceSelector::things_of(&source).collect();
        assert_eq!(things.len(), 5);
        let own = SourceSelector::of(&source);
        for selector in SourceSelector::all_of(&source).chain(own) {
            assert!(things.contains(&selector.thing().unwrap()), "{selector:?}");
        }
    }
}
