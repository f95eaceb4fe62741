//! One transaction of a lane: the fence, what it changes of what companies have, rows, operations
//! and the batch's number.

use std::collections::{BTreeMap, HashMap, HashSet};

use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::ask::{self, Kept, Value, Way};
use crate::company::RowKey;
use crate::connect::Address;
use crate::facets::Facets;
use crate::group::on_this_timeline;
use crate::item::{Item, Record, Replaces, Row};

/// The rows of a batch, each once: what was written last.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    /// The rows of `homes` that must be this host's, with its token in each.
    homes: BTreeMap<i64, i64>,
    rows: BTreeMap<(i64, &'a RowKey), &'a Row>,
    records: BTreeMap<(i64, u64), &'a Record>,
    removed: Vec<&'a (i64, RowKey)>,
}

/// The new count of what companies have, in bytes.
pub(crate) type NewHeld = HashMap<i64, i64>;

/// Why a batch was not committed.
pub(crate) enum Failure {
    /// These rows of `homes` are not this host's any more.
    NotHome(Vec<i64>),
    /// The records with these numbers of these companies belong to operations that were cut short,
    /// or another home gave their numbers to other operations.
    Late(Vec<(i64, u64)>),
    Database(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl<'a> Batch<'a> {
    /// What items write. The group of a company is fenced like the company: whoever takes the group
    /// over waits for this transaction, and changes no other row.
    pub(crate) fn of(items: &'a [Item]) -> Self {
        let mut batch = Self::default();
        for item in items {
            for part in &item.parts {
                batch.homes.extend(part.company.fence());
            }
            for row in &item.rows {
                batch.rows.insert((row.company, &row.key), row);
            }
            if let Some(record) = &item.record {
                let number = record.operation.id.sequence();
                batch.records.insert((record.company.id, number), record);
            }
            batch.removed.extend(&item.removed);
        }
        batch
    }

    /// Adds the rows that follow from its operations.
    pub(crate) fn derive(&mut self, derived: &'a [Row]) {
        self.rows.extend(derived.iter().map(|row| ((row.company, &row.key), row)));
    }
}

/// A lane's connection.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
}

impl Connection {
    pub(crate) async fn open(address: &Address) -> Result<Self, tokio_postgres::Error> {
        let (client, _) = address.connect().await?;
        let mut statements = Statements::keep(address.way, &client).await?;
        let setting = "SELECT current_setting('synchronous_commit')";
        let set = ask::the_row(&client, setting, &[]).await?;
        let is_off = matches!(set.get(0), "off" | "local");
        match address.way {
            Way::Prepared if is_off => statements.begin.push_str(SYNCHRONOUS),
            Way::Prepared => {}
            // Each transaction may have another session, which somebody else has changed.
            Way::Unnamed => statements.begin.push_str(SYNCHRONOUS_IF_OFF),
        }
        Ok(Self { client, statements })
    }
}

/// Its statements.
pub(crate) struct Statements {
    /// [`BEGIN`], and where a database would acknowledge what a crash of it loses, that it does
    /// not.
    begin: String,
    fence: Kept<'static>,
    held: Kept<'static>,
    put: Kept<'static>,
    delete: Kept<'static>,
    records: Kept<'static>,
    removed: Kept<'static>,
    lane: Kept<'static>,
}

/// A plan for a table of another size would read all of it. Every statement here finds its rows by
/// a key. A lock that somebody else holds is waited for less long than the lane tries. A
/// transaction whose host says nothing is ended: somebody who takes over waits for it.
const BEGIN: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
                     SET LOCAL enable_mergejoin = off; SET LOCAL lock_timeout = '5s'; \
                     SET LOCAL idle_in_transaction_session_timeout = '2s'";
const SYNCHRONOUS: &str = "; SET LOCAL synchronous_commit = on";
const SYNCHRONOUS_IF_OFF: &str = "; SELECT set_config('synchronous_commit', 'on', true) \
                                  WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// Finds the rows of `homes` with these tokens, `$1` and `$2`, of a host, `$3`, and holds up
/// whoever takes them over until the transaction has ended.
pub(crate) fn fence_sql() -> String {
    format!(
        "SELECT h.company FROM unnest($1::bigint[], $2::bigint[]) AS w(company, token) \
         JOIN homes h ON h.company = w.company AND h.token = w.token AND h.host = $3 \
         WHERE {} ORDER BY h.company FOR SHARE OF h",
        on_this_timeline()
    )
}

/// Rows and records are counted with the bytes in front of their keys.
const HELD: &str = "UPDATE companies c SET held = greatest(0, c.held + d.more) FROM (\
       SELECT company, sum(more)::bigint AS more FROM (\
         SELECT w.company, w.size - coalesce((\
           SELECT w.prefix + octet_length(e.key) + octet_length(e.value) FROM entries e \
           WHERE e.company = w.company AND e.kind = w.kind AND e.key = w.key), 0) AS more \
         FROM unnest($1::bigint[], $2::smallint[], $3::bytea[], $4::bigint[], $5::bigint[]) \
           AS w(company, kind, key, size, prefix) \
         UNION ALL \
         SELECT w.company, w.size - coalesce((\
           SELECT w.prefix + octet_length(o.record) FROM operations o \
           WHERE o.company = w.company AND o.number = w.number), 0) \
         FROM unnest($6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[]) \
           AS w(company, number, size, prefix)\
       ) AS changes GROUP BY company) AS d \
     WHERE c.id = d.company RETURNING c.id, c.held";

const PUT: &str = "INSERT INTO entries (company, kind, key, value) \
     SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bytea[], $4::bytea[]) \
     ON CONFLICT (company, kind, key) DO UPDATE SET value = excluded.value";

const DELETE: &str = "DELETE FROM entries e \
     USING unnest($1::bigint[], $2::smallint[], $3::bytea[]) AS w(company, kind, key) \
     WHERE e.company = w.company AND e.kind = w.kind AND e.key = w.key";

const RECORDS: &str = "INSERT INTO operations (company, number, id, home_token, started_us, kind, \
       outcome, count, agent, project, session, binding_key, binding_id, provider, hook, source, \
       keeps_text, issues, runs, records, record) \
     SELECT company, number, id, home_token, started_us, kind, outcome, count, agent, project, \
       session, binding_key, binding_id, provider, hook, source, keeps_text, \
       string_to_array(issues, E'\\n'), string_to_array(runs, E'\\n'), \
       string_to_array(records, E'\\n'), record \
     FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], \
       $7::text[], $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::uuid[], \
       $14::text[], $15::text[], $16::text[], $17::boolean[], $18::text[], $19::text[], \
       $20::text[], $21::bytea[], $22::boolean[]) \
       AS w(company, number, id, home_token, started_us, kind, outcome, \
       count, agent, project, session, binding_key, binding_id, provider, hook, source, \
       keeps_text, issues, runs, records, record, is_again) \
     WHERE NOT is_again OR EXISTS (SELECT 1 FROM operations o WHERE o.company = w.company \
       AND o.number = w.number AND o.id = w.id AND o.outcome <> 'in_progress') \
     ON CONFLICT (company, number) DO UPDATE SET id = excluded.id, \
       home_token = excluded.home_token, started_us = excluded.started_us, kind = excluded.kind, \
       outcome = excluded.outcome, count = excluded.count, agent = excluded.agent, \
       project = excluded.project, session = excluded.session, \
       binding_key = excluded.binding_key, binding_id = excluded.binding_id, \
       provider = excluded.provider, hook = excluded.hook, source = excluded.source, \
       keeps_text = excluded.keeps_text, issues = excluded.issues, runs = excluded.runs, \
       records = excluded.records, record = excluded.record \
     WHERE operations.id = excluded.id \
       AND (operations.outcome <> 'interrupted' OR excluded.outcome = 'interrupted') \
     RETURNING company, number";

const REMOVED: &str = "DELETE FROM entries WHERE company = $1 AND kind = $2 AND key >= $3 \
     AND ($4::bytea IS NULL OR key < $4)";

const LANE: &str = "INSERT INTO lanes (host, lane, batch) VALUES ($1, $2, $3) \
     ON CONFLICT (host, lane) DO UPDATE SET batch = excluded.batch \
     WHERE lanes.batch < excluded.batch";

impl Statements {
    async fn keep(way: Way, client: &Client) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            begin: BEGIN.to_owned(),
            fence: way.keep(client, fence_sql()).await?,
            held: way.keep(client, HELD).await?,
            put: way.keep(client, PUT).await?,
            delete: way.keep(client, DELETE).await?,
            records: way.keep(client, RECORDS).await?,
            removed: way.keep(client, REMOVED).await?,
            lane: way.keep(client, LANE).await?,
        })
    }
}

/// What a transaction of a lane begins with: its number, for which it waits until an earlier try
/// has ended, and the fence. What it reads afterwards is what was committed before. `None`: an
/// earlier try has committed the batch, although nobody was told.
pub(crate) async fn begin<'t>(
    client: &'t mut Client,
    statements: &Statements,
    batch: &Batch<'_>,
    (host, lane, number): (Uuid, i32, i64),
) -> Result<Option<Transaction<'t>>, Failure> {
    let transaction = client.transaction().await?;
    let place: [&dyn Value; 3] = [&host, &lane, &number];
    // They are sent together, and done one after the other.
    let ((), numbered, lost) = tokio::try_join!(
        transaction.batch_execute(&statements.begin),
        statements.lane.changed(transaction.client(), &place),
        fence(&transaction, statements, batch, host),
    )?;
    match (numbered, lost.is_empty()) {
        (0, _) => Ok(None),
        (_, true) => Ok(Some(transaction)),
        (_, false) => Err(Failure::NotHome(lost)),
    }
}

/// What the companies of items have, in bytes, where an earlier try has committed them. That try's
/// connection may have broken while it waited for a standby. This transaction writes something, so
/// that its commit waits for all that was committed before.
pub(crate) async fn held_by_now(
    client: &mut Client,
    statements: &Statements,
    (host, lane): (Uuid, i32),
    items: &[Item],
) -> Result<NewHeld, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(&statements.begin).await?;
    let mark = "UPDATE lanes SET batch = batch WHERE host = $1 AND lane = $2";
    ask::changed(transaction.client(), mark, &[&host, &lane]).await?;
    let companies: Vec<i64> =
        items.iter().flat_map(|item| &item.parts).map(|part| part.company.id).collect();
    let sql = "SELECT id, held FROM companies WHERE id = ANY($1)";
    let rows = ask::rows(transaction.client(), sql, &[&companies]).await?;
    transaction.commit().await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Commits a batch.
pub(crate) async fn commit(
    transaction: Transaction<'_>,
    statements: &Statements,
    batch: &Batch<'_>,
) -> Result<NewHeld, Failure> {
    // They do not wait for each other's answers.
    let (held, (), written, ()) = tokio::try_join!(
        held(&transaction, statements, batch),
        rows(&transaction, statements, batch),
        records(&transaction, statements, batch),
        removed(&transaction, statements, batch),
    )?;
    let late: Vec<_> =
        batch.records.keys().filter(|place| !written.contains(place)).copied().collect();
    if !late.is_empty() {
        return Err(Failure::Late(late));
    }
    transaction.commit().await?;
    Ok(held)
}

/// Holds up whoever takes a company over until this transaction has ended. Answers the companies
/// that somebody has taken over.
async fn fence(
    transaction: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch<'_>,
    host: Uuid,
) -> Result<Vec<i64>, tokio_postgres::Error> {
    let companies: Vec<i64> = batch.homes.keys().copied().collect();
    let tokens: Vec<i64> = batch.homes.values().copied().collect();
    let found = statements.fence.rows(transaction.client(), &[&companies, &tokens, &host]).await?;
    let ours: Vec<i64> = found.iter().map(|row| row.get(0)).collect();
    Ok(companies.into_iter().filter(|company| !ours.contains(company)).collect())
}

fn whole(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

async fn held(
    transaction: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch<'_>,
) -> Result<NewHeld, tokio_postgres::Error> {
    let (mut companies, mut kinds, mut keys) = (Vec::new(), Vec::new(), Vec::<&[u8]>::new());
    let (mut sizes, mut prefixes) = (Vec::new(), Vec::new());
    for ((company, (kind, key)), row) in &batch.rows {
        let Some(prefix) = row.prefix_bytes else { continue };
        companies.push(*company);
        kinds.push(*kind);
        keys.push(key);
        let size = row.value.as_ref().map_or(0, |value| prefix + key.len() + value.len());
        sizes.push(whole(size));
        prefixes.push(whole(prefix));
    }
    let (mut owners, mut numbers) = (Vec::new(), Vec::new());
    let (mut lengths, mut fronts) = (Vec::new(), Vec::new());
    for ((company, number), record) in &batch.records {
        let prefix = record.company.record_prefix();
        owners.push(*company);
        numbers.push(i64::try_from(*number).unwrap_or(i64::MAX));
        lengths.push(whole(prefix + record.bytes.len()));
        fronts.push(whole(prefix));
    }
    if companies.is_empty() && owners.is_empty() {
        return Ok(NewHeld::new());
    }
    let changed = statements
        .held
        .rows(
            transaction.client(),
            &[&companies, &kinds, &keys, &sizes, &prefixes, &owners, &numbers, &lengths, &fronts],
        )
        .await?;
    Ok(changed.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn rows(
    transaction: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch<'_>,
) -> Result<(), tokio_postgres::Error> {
    let (mut companies, mut kinds) = (Vec::new(), Vec::new());
    let (mut keys, mut values) = (Vec::<&[u8]>::new(), Vec::<&[u8]>::new());
    let (mut of, mut gone_kinds, mut gone) = (Vec::new(), Vec::new(), Vec::<&[u8]>::new());
    for ((company, (kind, key)), row) in &batch.rows {
        match &row.value {
            Some(value) => {
                companies.push(*company);
                kinds.push(*kind);
                keys.push(key);
                values.push(value);
            }
            None => {
                of.push(*company);
                gone_kinds.push(*kind);
                gone.push(key);
            }
        }
    }
    let client = transaction.client();
    let put = async {
        match companies.is_empty() {
            true => Ok(0),
            false => statements.put.changed(client, &[&companies, &kinds, &keys, &values]).await,
        }
    };
    let delete = async {
        match of.is_empty() {
            true => Ok(0),
            false => statements.delete.changed(client, &[&of, &gone_kinds, &gone]).await,
        }
    };
    tokio::try_join!(put, delete).map(drop)
}

/// Answers which records were written.
async fn records(
    transaction: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch<'_>,
) -> Result<HashSet<(i64, u64)>, tokio_postgres::Error> {
    if batch.records.is_empty() {
        return Ok(HashSet::new());
    }
    let all: Vec<&Record> = batch.records.values().copied().collect();
    let facets: Vec<Facets> = all.iter().map(|one| Facets::of(&one.operation)).collect();
    let companies: Vec<i64> = all.iter().map(|one| one.company.id).collect();
    let numbers: Vec<i64> = batch
        .records
        .keys()
        .map(|(_, number)| i64::try_from(*number).unwrap_or(i64::MAX))
        .collect();
    let ids: Vec<Uuid> = all.iter().map(|one| one.operation.id.uuid()).collect();
    let tokens: Vec<i64> = all.iter().map(|one| one.company.token).collect();
    let started: Vec<i64> =
        all.iter().map(|one| one.operation.started_at.as_microsecond()).collect();
    let kinds: Vec<&str> = all.iter().map(|one| one.operation.kind.as_str()).collect();
    let outcomes: Vec<&str> = all.iter().map(|one| one.operation.outcome.as_str()).collect();
    let counts: Vec<i64> =
        all.iter().map(|one| i64::try_from(one.operation.count).unwrap_or(i64::MAX)).collect();
    let keeps: Vec<bool> = all.iter().map(|one| one.operation.keeps_text()).collect();
    let binding_ids: Vec<Option<Uuid>> = facets.iter().map(|one| one.binding_id).collect();
    let bytes: Vec<&[u8]> = all.iter().map(|one| one.bytes.as_slice()).collect();
    let text = |pick: fn(&Facets) -> &Option<String>| -> Vec<Option<&str>> {
        facets.iter().map(|one| pick(one).as_deref()).collect()
    };
    let lines = |pick: fn(&Facets) -> &Vec<String>| -> Vec<String> {
        facets.iter().map(|one| pick(one).join("\n")).collect()
    };
    let again: Vec<bool> = all.iter().map(|one| one.replaces == Replaces::Unknown).collect();
    let written = statements
        .records
        .rows(
            transaction.client(),
            &[
                &companies,
                &numbers,
                &ids,
                &tokens,
                &started,
                &kinds,
                &outcomes,
                &counts,
                &text(|one| &one.agent),
                &text(|one| &one.project),
                &text(|one| &one.session),
                &text(|one| &one.binding_key),
                &binding_ids,
                &text(|one| &one.provider),
                &text(|one| &one.hook),
                &text(|one| &one.source),
                &keeps,
                &lines(|one| &one.issues),
                &lines(|one| &one.runs),
                &lines(|one| &one.records),
                &bytes,
                &again,
            ],
        )
        .await?;
    let place = |row: &tokio_postgres::Row| {
        (row.get(0), u64::try_from(row.get::<_, i64>(1)).unwrap_or(u64::MAX))
    };
    Ok(written.iter().map(place).collect())
}

async fn removed(
    transaction: &Transaction<'_>,
    statements: &Statements,
    batch: &Batch<'_>,
) -> Result<(), tokio_postgres::Error> {
    let client = transaction.client();
    for (company, (kind, prefix)) in batch.removed.iter().copied() {
        let end = crate::place::behind(prefix);
        statements.removed.changed(client, &[company, kind, prefix, &end]).await?;
    }
    Ok(())
}
