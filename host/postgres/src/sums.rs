//! Sums over operations: what a batch changes of them.

use std::collections::{HashMap, HashSet};

use jiff::civil::Date;
use tokio_postgres::Client;

use crate::ask;
use crate::company::Company;
use crate::item::{Item, Record, Replaces, Row};
use crate::place::{behind, kind, split_company};
use memhost_store::{MOST_SUM_ROWS, Table, decode, encode, other_sums, sum_key, sums_prefix};
use memhost_types::{CompanyId, Outcome, Rollup, RollupKey};

/// Rows that are remembered. Beyond, all are forgotten and read again.
const MOST_KNOWN: usize = 10_000;

/// The rows of sums that a lane has written lately.
#[derive(Default)]
pub(crate) struct Sums {
    known: HashMap<(i64, Vec<u8>), (RollupKey, Rollup)>,
    /// How many rows a company has of a day.
    counts: HashMap<(i64, Date), usize>,
}

impl Sums {
    pub(crate) fn forget(&mut self, company: i64) {
        self.known.retain(|(of, _), _| *of != company);
        self.counts.retain(|(of, _), _| *of != company);
    }

    /// Adds the operations of items that have ended, each once and as often as its record says.
    /// Answers the rows that change.
    pub(crate) async fn add(
        &mut self,
        client: &Client,
        items: &[Item],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if self.known.len() > MOST_KNOWN {
            *self = Self::default();
        }
        let records: Vec<&Record> = items.iter().filter_map(|item| item.record.as_ref()).collect();
        // An import brings rows of its own, alone in its batch.
        for row in items.iter().flat_map(|item| &item.rows) {
            if row.key.0 == kind(Table::Sums) {
                self.forget(row.company);
            }
        }
        let mut counted = counted(client, &records).await?;
        let mut additions: Vec<(&Company, RollupKey, Rollup)> = Vec::new();
        for record in records {
            let operation = &*record.operation;
            if operation.outcome == Outcome::InProgress {
                continue;
            }
            let place = (record.company.id, operation.id.sequence());
            let imported = match record.replaces {
                Replaces::Imported(count) => count,
                Replaces::Unsummed | Replaces::Unknown => 0,
            };
            let before = counted.insert(place, operation.count).unwrap_or(imported);
            let more = operation.count.saturating_sub(before);
            let rows = match before {
                0 => Rollup::of(operation),
                _ => Rollup::again(operation, more).into_iter().collect(),
            };
            additions.extend(rows.into_iter().map(|(key, row)| (&*record.company, key, row)));
        }
        self.read(client, &additions).await?;
        let mut changed = HashSet::new();
        for (company, key, row) in additions {
            let Some(name) = &company.name else { continue };
            let place = self.place(company.id, name, key);
            if let Some((_, sums)) = self.known.get_mut(&place) {
                sums.add(&row);
            }
            changed.insert(place);
        }
        let encoded = changed.into_iter().filter_map(|place| {
            let value = encode("sums", self.known.get(&place)?).ok()?;
            let key = (kind(Table::Sums), place.1);
            Some(Row { company: place.0, key, value: Some(value.into()), prefix_bytes: None })
        });
        Ok(encoded.collect())
    }

    /// The row of a key, or that of all others where its day is full. It is known afterwards.
    fn place(&mut self, company: i64, name: &CompanyId, key: RollupKey) -> (i64, Vec<u8>) {
        let place = (company, key_of(name, &key));
        if self.known.contains_key(&place) {
            return place;
        }
        let count = self.counts.entry((company, key.day)).or_default();
        if *count < MOST_SUM_ROWS {
            *count += 1;
            self.known.insert(place.clone(), (key, Rollup::default()));
            return place;
        }
        let key = other_sums(key);
        let place = (company, key_of(name, &key));
        self.known.entry(place.clone()).or_insert_with(|| (key, Rollup::default()));
        place
    }

    /// Reads the rows that are not known, those of all others, and how many a day has.
    async fn read(
        &mut self,
        client: &Client,
        additions: &[(&Company, RollupKey, Rollup)],
    ) -> Result<(), tokio_postgres::Error> {
        let (mut companies, mut keys) = (Vec::new(), Vec::new());
        let mut days = HashSet::new();
        for (company, key, _) in additions {
            let Some(name) = &company.name else { continue };
            let wanted = key_of(name, key);
            if self.known.contains_key(&(company.id, wanted.clone())) {
                continue;
            }
            for key in [wanted, key_of(name, &other_sums(key.clone()))] {
                companies.push(company.id);
                keys.push(key);
            }
            if !self.counts.contains_key(&(company.id, key.day)) {
                days.insert((company.id, key.day, key_of_day(name, key.day)));
            }
        }
        if companies.is_empty() {
            return Ok(());
        }
        let sums = kind(Table::Sums);
        let found = ask::rows(
            client,
            "SELECT w.company, w.key, (SELECT e.value FROM entries e WHERE e.company = \
                 w.company AND e.kind = $3 AND e.key = w.key) \
                 FROM unnest($1::bigint[], $2::bytea[]) AS w(company, key)",
            &[&companies, &keys, &sums],
        )
        .await?;
        for row in found {
            let value: Option<Vec<u8>> = row.get(2);
            match value.map(|value| decode("sums", &value)) {
                None => {}
                Some(Ok(stored)) => drop(self.known.insert((row.get(0), row.get(1)), stored)),
                Some(Err(error)) => tracing::error!(%error, "a row of sums begins again"),
            }
        }
        for (company, day, prefix) in days {
            let end = behind(&prefix);
            let row = ask::the_row(
                client,
                "SELECT count(*) FROM (SELECT 1 FROM entries WHERE company = $1 AND kind = $2 \
                     AND key >= $3 AND key < $4 LIMIT $5) AS rows",
                &[
                    &company,
                    &sums,
                    &prefix,
                    &end,
                    &i64::try_from(MOST_SUM_ROWS).unwrap_or(i64::MAX),
                ],
            )
            .await?;
            let count: i64 = row.get(0);
            self.counts.insert((company, day), usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok(())
    }
}

/// How often each operation is in the sums already.
async fn counted(
    client: &Client,
    records: &[&Record],
) -> Result<HashMap<(i64, u64), u64>, tokio_postgres::Error> {
    let unknown: Vec<_> =
        records.iter().filter(|record| record.replaces == Replaces::Unknown).collect();
    if unknown.is_empty() {
        return Ok(HashMap::new());
    }
    let companies: Vec<i64> = unknown.iter().map(|record| record.company.id).collect();
    let numbers: Vec<i64> = unknown
        .iter()
        .map(|record| i64::try_from(record.operation.id.sequence()).unwrap_or(i64::MAX))
        .collect();
    let found = ask::rows(
        client,
        "SELECT w.company, w.number, (SELECT o.count FROM operations o WHERE o.company = \
             w.company AND o.number = w.number AND o.outcome <> 'in_progress') \
             FROM unnest($1::bigint[], $2::bigint[]) AS w(company, number)",
        &[&companies, &numbers],
    )
    .await?;
    let row = |row: &tokio_postgres::Row| {
        let (number, count): (i64, Option<i64>) = (row.get(1), row.get(2));
        Some(((row.get(0), u64::try_from(number).ok()?), u64::try_from(count?).ok()?))
    };
    Ok(found.iter().filter_map(row).collect())
}

/// The key of a row without its company.
fn key_of(name: &CompanyId, key: &RollupKey) -> Vec<u8> {
    split_company(&sum_key(name, key)).1.to_vec()
}

/// The prefix of a day's rows without their company.
pub(crate) fn key_of_day(name: &CompanyId, day: Date) -> Vec<u8> {
    split_company(&sums_prefix(name, Some(day))).1.to_vec()
}
