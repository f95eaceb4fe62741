//! Where a key of the store is in the database: its company, its kind and the rest of it.

use crate::group::Group;
use memhost_store::{Table, company_key};
use memhost_types::CompanyId;

/// The company whose rows are the host's own.
pub(crate) const HOST: i64 = 0;

/// The kinds of rows beside those of tables.
pub(crate) const STORAGE: i16 = 100;
/// The host's own record of a partition.
pub(crate) const STATE: i16 = 101;
/// The size of a partition.
pub(crate) const SIZE: i16 = 102;
/// Due entries of the host itself. Those of companies have the number of their group added, so that
/// a home reads its own in the order of time. An index of the schema names the numbers.
const DUE: i16 = 200;

/// The kind of the due entries of a group.
pub(crate) fn kind_of_due(group: Group) -> i16 {
    DUE + group.column()
}

/// The kinds of all due entries.
pub(crate) fn kinds_of_due() -> Vec<i16> {
    Group::all().map(kind_of_due).collect()
}

pub(crate) fn is_due(kind: i16) -> bool {
    kind >= DUE
}

/// The kind of a company's rows of a table, or of the host's.
pub(crate) fn kind_of(table: Table, company: Option<&CompanyId>) -> i16 {
    match table {
        Table::Due => kind_of_due(company.map_or(Group::HOST, Group::of)),
        _ => kind(table),
    }
}

/// The kind of a table's rows. A number is never used for another table. 10 was that of due
/// entries, which have several by now.
pub(crate) fn kind(table: Table) -> i16 {
    match table {
        Table::Host => 1,
        Table::Companies => 2,
        Table::Bindings => 3,
        Table::Targets => 4,
        Table::Activity => 5,
        Table::Secrets => 6,
        Table::Tokens => 7,
        Table::Jobs => 8,
        Table::Deliveries => 9,
        Table::Due => DUE,
        Table::CostEvents => 11,
        Table::CostOrder => 12,
        Table::FinanceEvents => 13,
        Table::Budgets => 14,
        Table::Reviews => 15,
        Table::Events => 16,
        Table::EventIndex => 17,
        Table::JobIndex => 18,
        Table::Sums => 19,
        Table::Waiting => 20,
        Table::Records => 21,
        Table::RecordSources => 22,
        Table::RecordExpiries => 23,
        Table::PrivateWrites => 24,
        Table::ForgottenSources => 25,
        Table::Idempotency => 26,
    }
}

/// The bytes of a due entry before the key of its record: a kind and a time.
const DUE_PREFIX: usize = 9;

/// The company of a key and the rest of it. Keys of no company are the host's own, whole; a due
/// entry belongs to the company of its record and stays whole, so that all of them have one order.
pub(crate) fn split(table: Table, key: &[u8]) -> (Option<CompanyId>, &[u8]) {
    match table {
        Table::Host => (None, key),
        Table::Due => match key.get(DUE_PREFIX..).map(split_company) {
            Some((Some(company), _)) => (Some(company), key),
            _ => (None, key),
        },
        _ => split_company(key),
    }
}

/// The company that a key begins with, and the rest behind its zero byte.
pub(crate) fn split_company(key: &[u8]) -> (Option<CompanyId>, &[u8]) {
    let end = key.iter().position(|byte| *byte == 0).filter(|end| *end > 0);
    let company = end.and_then(|end| {
        let name = std::str::from_utf8(key.get(..end)?).ok()?;
        Some((name.parse().ok()?, key.get(end + 1..)?))
    });
    match company {
        Some((company, rest)) => (Some(company), rest),
        None => (None, key),
    }
}

/// The key that [`split`] was given.
pub(crate) fn join(kind: i16, company: Option<&CompanyId>, rest: &[u8]) -> Vec<u8> {
    match company {
        Some(company) if !is_due(kind) => company_key(company, rest),
        _ => rest.to_vec(),
    }
}

/// The first key behind all that begin with a prefix. None where there is none: the prefix is empty
/// or has only the byte 255.
pub(crate) fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use memhost_store::{DueKind, due_key};

    #[test]
    fn every_table_has_a_kind_of_its_own() {
        let kinds: HashSet<i16> = Table::ALL.iter().map(|table| kind(*table)).collect();
        assert_eq!(kinds.len(), Table::ALL.len());
        assert!([STORAGE, STATE, SIZE].iter().all(|other| !kinds.contains(other)));
    }

    #[test]
    fn a_key_is_put_together_as_it_was() {
        let acme: CompanyId = "acme".parse().unwrap();
        let due = due_key(DueKind::Job, jiff::Timestamp::UNIX_EPOCH, b"acme\0record");
        for (table, key, company) in [
            (Table::Events, b"acme\0x\0y".to_vec(), Some(&acme)),
            (Table::Events, b"acme\0".to_vec(), Some(&acme)),
            (Table::Due, due, Some(&acme)),
            (Table::Due, b"j".to_vec(), None),
            (Table::Host, b"acme\0x".to_vec(), None),
            (Table::Tokens, b"\0operator".to_vec(), None),
            (Table::Bindings, b"a".to_vec(), None),
        ] {
            let (found, rest) = split(table, &key);
            assert_eq!(found.as_ref(), company, "{table:?} {key:?}");
            assert_eq!(join(kind_of(table, found.as_ref()), found.as_ref(), rest), key);
        }
    }

    #[test]
    fn what_is_behind_a_prefix_is_behind_all_keys_with_it() {
        assert_eq!(behind(b"a"), Some(b"b".to_vec()));
        assert_eq!(behind(&[7, 255, 255]), Some(vec![8]));
        assert_eq!((behind(b""), behind(&[255])), (None, None));
    }
}
