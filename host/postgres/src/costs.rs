//! Numbers cost events when they are written, in the order in which readers see them.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Client;

use crate::ask;
use crate::company::Company;
use crate::item::{Item, Row};
use crate::place::{kind, split_company};
use memhost_store::{
    CostsTrimmed, Table, company_key, cost_number, cost_number_key, cost_numbers,
    costs_trimmed_key, decode, encode_cost_place,
};
use memhost_types::CompanyId;

/// The last number of each company's cost events, as a lane knows it.
#[derive(Default)]
pub(crate) struct Costs {
    last: HashMap<i64, u64>,
}

impl Costs {
    pub(crate) fn forget(&mut self, company: i64) {
        self.last.remove(&company);
    }

    /// The rows that number the new cost events beside operations. An event that is there already
    /// has its number.
    pub(crate) async fn number(
        &mut self,
        client: &Client,
        items: &[Item],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let (events, order) = (kind(Table::CostEvents), kind(Table::CostOrder));
        // An import numbers its events itself, alone in its batch.
        for row in items.iter().flat_map(|item| &item.rows).filter(|row| row.key.0 == order) {
            self.forget(row.company);
        }
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for item in items {
            let Some(record) = &item.record else { continue };
            let Some(name) = &record.company.name else { continue };
            let own = item.rows.iter().filter(|row| row.key.0 == events && row.value.is_some());
            for row in own.filter(|row| seen.insert((row.company, &row.key.1))) {
                wanted.push((&record.company, name, row));
            }
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let companies: Vec<i64> = wanted.iter().map(|(_, _, row)| row.company).collect();
        let keys: Vec<&[u8]> = wanted.iter().map(|(_, _, row)| row.key.1.as_slice()).collect();
        let known = ask::rows(
            client,
            "SELECT EXISTS (SELECT 1 FROM entries e WHERE e.company = w.company \
                 AND e.kind = $3 AND e.key = w.key) \
                 FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS w(company, key, place) \
                 ORDER BY w.place",
            &[&companies, &keys, &events],
        )
        .await?;
        let mut rows = Vec::new();
        for ((company, name, row), known) in wanted.into_iter().zip(known) {
            if known.get(0) {
                continue;
            }
            let number = self.next(client, company, name).await?;
            let event = company_key(name, &row.key.1);
            let Ok(place) = encode_cost_place(name, &event) else { continue };
            let key = split_company(&cost_number_key(name, number)).1.to_vec();
            rows.push(Row {
                company: row.company,
                key: (order, key),
                value: Some(place.into()),
                prefix_bytes: Some(company.prefix_bytes()),
            });
        }
        Ok(rows)
    }

    async fn next(
        &mut self,
        client: &Client,
        company: &Company,
        name: &CompanyId,
    ) -> Result<u64, tokio_postgres::Error> {
        let last = match self.last.get(&company.id) {
            Some(last) => *last,
            None => last_number(client, company.id, name).await?,
        };
        self.last.insert(company.id, last + 1);
        Ok(last + 1)
    }
}

/// The last number that a company's events have or had.
async fn last_number(
    client: &Client,
    company: i64,
    name: &CompanyId,
) -> Result<u64, tokio_postgres::Error> {
    let order = kind(Table::CostOrder);
    let prefix = split_company(&cost_numbers(name)).1.to_vec();
    let end = crate::place::behind(&prefix);
    let newest = ask::row(
        client,
        "SELECT key FROM entries WHERE company = $1 AND kind = $2 AND key >= $3 AND key < $4 \
             ORDER BY key DESC LIMIT 1",
        &[&company, &order, &prefix, &end],
    )
    .await?;
    let present = newest.and_then(|row| cost_number(name, &company_key(name, row.get(0))));
    let mark = split_company(&costs_trimmed_key(name)).1.to_vec();
    let trimmed = ask::row(
        client,
        "SELECT value FROM entries WHERE company = $1 AND kind = $2 AND key = $3",
        &[&company, &order, &mark],
    )
    .await?;
    let gone = trimmed
        .and_then(|row| decode::<CostsTrimmed>("trimmed cost events", row.get(0)).ok())
        .map_or(0, |trimmed| trimmed.through);
    Ok(present.unwrap_or(0).max(gone))
}
