//! Which operations are in the sums, in the form in which companies are exported and imported.
//!
//! Here an operation is in the sums once it has ended, in the same transaction. Another store needs
//! to be told, so these rows are made from the log when somebody reads them. Those of an import are
//! kept as they came, and say which of its operations are not added to its sums again.

use std::sync::Arc;

use crate::company::Company;
use crate::page::{Range, Rows};
use crate::place::{kind, split_company};
use crate::store::Inner;
use memhost_store::{
    BLOCK, Posting, StoreError, Table, summed_count, summed_count_key, summed_key, sums_prefix,
};
use memhost_types::CompanyId;
use memhost_types::limits::MAX_PAGE_BYTES;

fn rest(key: &[u8]) -> Vec<u8> {
    split_company(key).1.to_vec()
}

impl Inner {
    /// A page of a company's rows of [`Table::Sums`] from a key on: how often operations are
    /// counted, then the sums, then which operations are in them.
    pub(crate) async fn page_of_sums(
        &self,
        company: &Arc<Company>,
        name: &CompanyId,
        from: &[u8],
        limit: usize,
    ) -> Result<Rows, StoreError> {
        self.reach(company).await?;
        let (counts, sums) = (rest(&summed_count_key(name, 0)), rest(&sums_prefix(name, None)));
        let blocks = rest(&summed_key(name, 0));
        if from < &sums[..] {
            let rows = self.counts(company, name, number_in(&counts, from), limit).await?;
            let next = rows.next.or(Some(sums));
            return Ok(Rows { entries: rows.entries, next });
        }
        if from < &blocks[..] {
            let range = Range { kind: kind(Table::Sums), prefix: &sums, from };
            let rows = self.page(company, range, limit, MAX_PAGE_BYTES).await?;
            let next = rows.next.or(Some(blocks));
            return Ok(Rows { entries: rows.entries, next });
        }
        self.blocks(company, name, number_in(&blocks, from), limit).await
    }

    /// Operations that are counted more than once.
    async fn counts(
        &self,
        company: &Company,
        name: &CompanyId,
        from: i64,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        let sql = "SELECT number, count FROM operations WHERE company = $1 AND number >= $2 \
                   AND count > 1 AND outcome <> 'in_progress' ORDER BY number LIMIT $3";
        let count = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let rows = self.ask("reading", sql, &[&company.id, &from, &count]).await?;
        let row = |row: &tokio_postgres::Row| {
            let number = u64::try_from(row.get::<_, i64>(0)).unwrap_or(0);
            let count = u64::try_from(row.get::<_, i64>(1)).unwrap_or(0);
            (rest(&summed_count_key(name, number)), count.to_be_bytes().to_vec())
        };
        let mut entries: Vec<_> = rows.iter().map(row).collect();
        let next = entries.get(limit).map(|(key, _)| key.clone());
        entries.truncate(limit);
        Ok(Rows { entries, next })
    }

    /// The operations of each block that are in the sums.
    async fn blocks(
        &self,
        company: &Company,
        name: &CompanyId,
        from: i64,
        limit: usize,
    ) -> Result<Rows, StoreError> {
        let sql = "SELECT number FROM operations WHERE company = $1 AND number >= $2 \
                   AND outcome <> 'in_progress' ORDER BY number LIMIT $3";
        let (mut entries, mut next) = (Vec::new(), from);
        let size = i64::try_from(BLOCK).unwrap_or(i64::MAX);
        let block_of = |number: i64| number / size;
        loop {
            let begin = next.saturating_mul(size);
            let rows = self.ask("reading", sql, &[&company.id, &begin, &size]).await?;
            let numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            let Some(block) = numbers.first().map(|number| block_of(*number)) else {
                return Ok(Rows { entries, next: None });
            };
            let key = rest(&summed_key(name, u64::try_from(block).unwrap_or(0)));
            if entries.len() == limit {
                return Ok(Rows { entries, next: Some(key) });
            }
            let mut posting = Posting::default();
            for number in numbers.iter().filter(|number| block_of(**number) == block) {
                posting.insert(u64::try_from(*number).unwrap_or(0) % BLOCK);
            }
            entries.push((key, posting.encode()));
            next = block + 1;
        }
    }

    /// How often an import says that an operation is in its sums already.
    pub(crate) async fn imported_count(
        &self,
        company: &Arc<Company>,
        name: &CompanyId,
        number: u64,
    ) -> Result<u64, StoreError> {
        let key = |key: Vec<u8>| (kind(Table::Sums), rest(&key));
        let block = self.value(company, key(summed_key(name, number / BLOCK))).await?;
        let is_summed = block
            .and_then(|value| Posting::decode(&value))
            .is_some_and(|summed| summed.contains(number % BLOCK));
        if !is_summed {
            return Ok(0);
        }
        let count = self.value(company, key(summed_count_key(name, number))).await?;
        Ok(count.and_then(|value| summed_count(&value)).unwrap_or(1))
    }
}

/// The number in a key of a kind, or the first one where the key stands before them.
fn number_in(first: &[u8], key: &[u8]) -> i64 {
    if key <= first {
        return 0;
    }
    let bytes = key.get(1..9).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    let number = bytes.map_or(0, u64::from_be_bytes);
    // A key behind that of a number begins with the next one.
    let more = i64::from(key.len() > 9);
    i64::try_from(number).unwrap_or(i64::MAX).saturating_add(more)
}
