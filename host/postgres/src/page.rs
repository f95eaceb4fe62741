//! Pages of rows: what the database has, joined with what waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_postgres::Row;

use crate::ask::Value;
use crate::company::Company;
use crate::place::{HOST, behind, join, kind_of_due, kinds_of_due, split_company};
use crate::store::{Inner, Plan};
use memhost_store::{StoreError, TablePage};
use memhost_types::CompanyId;
use memhost_types::limits::MAX_PAGE_BYTES;

/// Companies that are looked at with one question of a scan over all of them.
const COMPANIES_AT_ONCE: i64 = 500;

/// The company of a row, its key without the company, and its value.
type RowOfAll = (Option<CompanyId>, Vec<u8>, Vec<u8>);

/// Where a scan begins and ends, all without the company.
#[derive(Clone, Copy)]
pub(crate) struct Range<'a> {
    pub(crate) kind: i16,
    pub(crate) prefix: &'a [u8],
    /// The first key that is wanted.
    pub(crate) from: &'a [u8],
}

/// Rows in key order, and where they go on. At most `limit`, and at most about so many bytes.
pub(crate) struct Rows {
    pub(crate) entries: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) next: Option<Vec<u8>>,
}

/// A statement that answers what `wanted` does, the key and the value of rows in an order of their
/// keys, and stops at the row with which the values have `$most` bytes together.
pub(crate) fn up_to(most: usize, (key, value): (&str, &str), order: &str, wanted: &str) -> String {
    format!(
        "SELECT {key}, {value} FROM (SELECT {key}, {value}, \
           sum(octet_length({value})) OVER (ORDER BY {key} {order} ROWS UNBOUNDED PRECEDING) \
             - octet_length({value}) AS before FROM ({wanted}) AS wanted) AS rows \
         WHERE before <= ${most} ORDER BY {key} {order}"
    )
}

impl Inner {
    /// A page of one company's rows.
    pub(crate) async fn page(
        &self,
        company: &Arc<Company>,
        range: Range<'_>,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Rows, StoreError> {
        let _reading = company.read();
        let (stored, is_all) = self.read(company.id, range, limit, most_bytes).await?;
        let last = stored.last().map(|(key, _)| key.clone());
        let mut merged: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
            stored.into_iter().map(|(key, value)| (key, Some(value))).collect();
        {
            let state = company.state.lock();
            state.alive()?;
            merged.retain(|key, _| !state.is_hidden(&(range.kind, key.clone())));
            let waiting = state.rows.range((range.kind, range.from.to_vec())..);
            let waiting = waiting.take_while(|((kind, key), _)| {
                *kind == range.kind
                    && key.starts_with(range.prefix)
                    // What is behind the last row belongs to later pages: others may come before.
                    && (is_all || last.as_ref().is_some_and(|last| key <= last))
            });
            for ((_, key), row) in waiting {
                merged.insert(key.clone(), row.value.as_ref().map(|value| value.to_vec()));
            }
        }
        let mut rows = Rows { entries: Vec::new(), next: None };
        let mut bytes = 0;
        for (key, value) in merged {
            let Some(value) = value else { continue };
            if rows.entries.len() == limit || bytes >= most_bytes {
                rows.next = Some(key);
                return Ok(rows);
            }
            bytes += key.len() + value.len();
            rows.entries.push((key, value));
        }
        if !is_all {
            rows.next = last.map(|last| [&last[..], &[0]].concat());
        }
        Ok(rows)
    }

    /// Rows of the database, and whether there are no more.
    async fn read(
        &self,
        company: i64,
        range: Range<'_>,
        limit: usize,
        most_bytes: usize,
    ) -> Result<(Vec<(Vec<u8>, Vec<u8>)>, bool), StoreError> {
        let end = behind(range.prefix);
        let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let most = i64::try_from(most_bytes).unwrap_or(i64::MAX);
        let from = range.from.max(range.prefix);
        let mut values: Vec<&dyn Value> = vec![&company, &range.kind, &from, &count, &most];
        values.extend(end.iter().map(|end| end as &dyn Value));
        let wanted = format!(
            "SELECT key, value FROM entries WHERE company = $1 AND kind = $2 AND key >= $3 {} \
             ORDER BY key LIMIT $4",
            if end.is_some() { "AND key < $6" } else { "" }
        );
        let sql = up_to(5, ("key", "value"), "ASC", &wanted);
        let rows = self.ask("reading", &sql, &values).await?;
        let rows: Vec<(Vec<u8>, Vec<u8>)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let bytes: usize = rows.iter().map(|(_, value)| value.len()).sum();
        let is_all = rows.len() <= limit && bytes <= most_bytes;
        Ok((rows, is_all))
    }

    /// A page of the rows of all companies that the store serves: those of the host first, then
    /// those of companies in the order in which they were made.
    pub(crate) async fn page_of_all(
        &self,
        kind: i16,
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        self.reach_all().await;
        let (first, from) = match cursor.map(split_company) {
            Some((Some(company), rest)) => (self.number_of(&company).await?, rest.to_vec()),
            Some((None, key)) => (HOST, key.to_vec()),
            None => (HOST, Vec::new()),
        };
        let (mut page, mut bytes, mut next) = (TablePage::default(), 0, first);
        loop {
            let Some(last) = self.last_of(next).await? else { return Ok(page) };
            let left = limit - page.entries.len();
            let room = MAX_PAGE_BYTES.saturating_sub(bytes);
            let begin = if next == first { from.as_slice() } else { b"" };
            let (rows, is_all) = self.read_of_all(kind, (next, last), begin, (left, room)).await?;
            next = last + 1;
            for (name, key, value) in rows {
                let key = join(kind, name.as_ref(), &key);
                if page.entries.len() == limit || bytes >= MAX_PAGE_BYTES {
                    page.next = Some(key);
                    return Ok(page);
                }
                bytes += key.len() + value.len();
                page.entries.push((key, value));
            }
            if !is_all && let Some((key, _)) = page.entries.last() {
                page.next = Some([&key[..], &[0]].concat());
                return Ok(page);
            }
        }
    }

    /// Rows of the companies with numbers from one to another, in their order, and whether there
    /// are no more. Those of the first company begin at a key. At most so many rows and bytes.
    async fn read_of_all(
        &self,
        kind: i16,
        (first, last): (i64, i64),
        from: &[u8],
        (limit, most_bytes): (usize, usize),
    ) -> Result<(Vec<RowOfAll>, bool), StoreError> {
        if first == HOST {
            let (rows, is_all) =
                self.read(HOST, Range { kind, prefix: b"", from }, limit, most_bytes).await?;
            return Ok((rows.into_iter().map(|(key, value)| (None, key, value)).collect(), is_all));
        }
        let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let most = i64::try_from(most_bytes).unwrap_or(i64::MAX);
        // The companies come in their order, so PostgreSQL sorts the rows of each and stops early.
        let sql = "SELECT name, key, value FROM (SELECT id, name, key, value, \
                     sum(octet_length(value)) OVER (ORDER BY id, key ROWS UNBOUNDED PRECEDING) \
                       - octet_length(value) AS before \
                   FROM (SELECT c.id, c.name, e.key, e.value FROM (SELECT id, name FROM companies \
                       WHERE id >= $1 AND id <= $2 \
                       AND ($7::smallint IS NULL OR company_group = $7) ORDER BY id) AS c \
                     CROSS JOIN LATERAL (SELECT key, value FROM entries \
                       WHERE company = c.id AND kind = $3 \
                       AND key >= CASE WHEN c.id = $1 THEN $4 ELSE ''::bytea END \
                       ORDER BY key LIMIT $5) AS e \
                     ORDER BY c.id, e.key LIMIT $5) AS wanted) AS rows \
                   WHERE before <= $6 ORDER BY id, key";
        let group = self.term.map(|term| term.group.column());
        let values: [&dyn Value; 7] = [&first, &last, &kind, &from, &count, &most, &group];
        let rows = self.ask_by(Plan::OfAll, "reading", sql, &values).await?;
        let name = |row: &Row| row.get::<_, &str>(0).parse().ok();
        let rows: Vec<RowOfAll> =
            rows.iter().map(|row| (name(row), row.get(1), row.get(2))).collect();
        let bytes: usize = rows.iter().map(|(_, _, value)| value.len()).sum();
        let is_all = rows.len() <= limit && bytes <= most_bytes;
        Ok((rows, is_all))
    }

    /// The number of the last company that is looked at together with that of a number. `None`:
    /// there are no more.
    async fn last_of(&self, first: i64) -> Result<Option<i64>, StoreError> {
        if first == HOST {
            return Ok(Some(HOST));
        }
        let next = |condition| {
            format!(
                "SELECT max(id) FROM (SELECT id FROM companies WHERE id >= $1 {condition} \
                 ORDER BY id LIMIT $2) AS next"
            )
        };
        let row = match self.term.map(|term| term.group.column()) {
            Some(group) => {
                let sql = next("AND company_group = $3");
                self.ask_one("reading", &sql, &[&first, &COMPANIES_AT_ONCE, &group]).await?
            }
            None => self.ask_one("reading", &next(""), &[&first, &COMPANIES_AT_ONCE]).await?,
        };
        Ok(row.and_then(|row| row.get(0)))
    }

    /// The number of a company. One that is not there is behind all.
    async fn number_of(&self, name: &CompanyId) -> Result<i64, StoreError> {
        if let Some(company) = self.loaded(name) {
            return Ok(company.id);
        }
        let sql = "SELECT id FROM companies WHERE name = $1";
        let row = self.ask_one("reading", sql, &[&name.as_str()]).await?;
        Ok(row.map_or(i64::MAX, |row| row.get(0)))
    }

    /// A page of the due entries of all companies that the store serves, in the order of time.
    pub(crate) async fn page_of_due(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        self.reach_all().await;
        let from = cursor.unwrap_or(prefix).max(prefix);
        let end = behind(prefix).unwrap_or_else(|| vec![u8::MAX; 32]);
        let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let kinds = match self.term {
            Some(term) => vec![kind_of_due(term.group)],
            None => kinds_of_due(),
        };
        // Each kind is read in the order of its index.
        let sql = "SELECT e.key, e.value FROM unnest($4::smallint[]) AS w(kind) CROSS JOIN LATERAL \
                   (SELECT key, value FROM entries WHERE kind = w.kind \
                     AND kind BETWEEN 200 AND 216 AND key >= $1 AND key < $2 \
                     ORDER BY key LIMIT $3) AS e ORDER BY e.key LIMIT $3";
        let rows = self.ask("reading", sql, &[&from, &end, &count, &kinds]).await?;
        let mut page = TablePage::default();
        for row in rows {
            if page.entries.len() == limit {
                page.next = Some(row.get(0));
                break;
            }
            page.entries.push((row.get(0), row.get(1)));
        }
        Ok(page)
    }
}
