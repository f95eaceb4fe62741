//! Pages of rows: what the database has, joined with what waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_postgres::types::ToSql;

use crate::company::Company;
use crate::place::{DUE, HOST, behind, join, split_company};
use crate::store::Inner;
use memhost_store::{StoreError, TablePage};
use memhost_types::CompanyId;
use memhost_types::limits::MAX_PAGE_BYTES;

/// Companies that are looked at with one question of a scan over all of them.
const COMPANIES_AT_ONCE: i64 = 100;

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
        let mut values: Vec<&(dyn ToSql + Sync)> =
            vec![&company, &range.kind, &from, &count, &most];
        values.extend(end.iter().map(|end| end as &(dyn ToSql + Sync)));
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

    /// A page of the rows of all companies: those of the host first, then those of companies in the
    /// order in which they were made.
    pub(crate) async fn page_of_all(
        &self,
        kind: i16,
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        self.reach_all().await;
        let (mut page, mut bytes) = (TablePage::default(), 0);
        let (first, mut from) = match cursor.map(split_company) {
            Some((Some(company), rest)) => {
                let id = self.find(&company).await?.map_or(i64::MAX, |company| company.id);
                (id, rest.to_vec())
            }
            Some((None, key)) => (HOST, key.to_vec()),
            None => (HOST, Vec::new()),
        };
        let mut next_id = first;
        loop {
            let companies = self.companies_with(kind, next_id).await?;
            let is_last = companies.len() < usize::try_from(COMPANIES_AT_ONCE).unwrap_or(1);
            for (id, name) in companies {
                let begin = if id == first { std::mem::take(&mut from) } else { Vec::new() };
                let range = Range { kind, prefix: b"", from: &begin };
                let left = limit - page.entries.len();
                let room = MAX_PAGE_BYTES.saturating_sub(bytes);
                let (rows, is_all) = self.read(id, range, left, room).await?;
                for (key, value) in rows {
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
                next_id = id + 1;
            }
            if is_last {
                return Ok(page);
            }
        }
    }

    async fn companies_with(
        &self,
        kind: i16,
        from: i64,
    ) -> Result<Vec<(i64, Option<CompanyId>)>, StoreError> {
        let sql = "SELECT id, name FROM companies c WHERE id >= $1 AND EXISTS (SELECT 1 FROM \
                   entries e WHERE e.company = c.id AND e.kind = $2) ORDER BY id LIMIT $3";
        let rows = self.ask("reading", sql, &[&from, &kind, &COMPANIES_AT_ONCE]).await?;
        let mut all = Vec::with_capacity(rows.len() + 1);
        if from == HOST {
            all.push((HOST, None));
        }
        for row in rows {
            let name: &str = row.get(1);
            all.push((row.get(0), name.parse().ok()));
        }
        Ok(all)
    }

    /// A page of the due entries of all companies, in the order of time.
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
        let sql = format!(
            "SELECT key, value FROM entries WHERE kind = {DUE} AND key >= $1 AND key < $2 \
             ORDER BY key LIMIT $3"
        );
        let rows = self.ask("reading", &sql, &[&from, &end, &count]).await?;
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
