//! Operations that match a filter. Each question reads one index in the order of its entries,
//! whatever the statistics say: a plan that suits most companies sorts all matches of a large one,
//! which takes seconds. A question looks at few entries, so a page may be short.

use crate::ask::Value;
use crate::facets::column;
use crate::log::{number_in, whole};
use crate::page::up_to;
use crate::store::{Inner, Plan};
use memhost_store::{StoreError, TIME_SLACK, decode};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{BindingId, Operation, OperationFilter};

/// Entries that one question looks at where the index says whether they match.
const ENTRIES: u64 = 2_000;
/// The same where rows must be read for it: each may be on a page of its own.
const ROWS: u64 = 150;
/// The part of a page that one question fetches where the index says what matches. Each row is then
/// looked up by its number, which touches some pages of an index.
const PART: (usize, usize) = (3, 5);
/// How many questions are asked for a page.
const MOST_QUESTIONS: usize = 6;
/// What the indexes in the order of numbers have beside them.
const INCLUDED: [&str; 5] = ["started_us", "kind", "outcome", "hook", "source"];

const READING: &str = "reading";

/// Operations with their numbers, and the number below which nobody has looked yet.
pub(crate) type Matches = (Vec<(u64, Operation)>, Option<u64>);

fn refs(values: &[Boxed]) -> Vec<&dyn Value> {
    values.iter().map(|value| &**value as &dyn Value).collect()
}

impl Inner {
    /// Operations of the database that match, newest first: at most `limit`, and no more than about
    /// a page's bytes.
    pub(crate) async fn find_operations(
        &self,
        company: i64,
        filter: &OperationFilter,
        before: u64,
        limit: usize,
    ) -> Result<Matches, StoreError> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let (from, mut below) = self.numbers(company, filter, before).await?;
        for _ in 0..MOST_QUESTIONS {
            let mut wanted = Wanted::of(company, filter, (from, below));
            let left = match wanted.is_looked_up() {
                true => (limit * PART.0).div_ceil(PART.1).min(limit - found.len()),
                false => limit - found.len(),
            };
            let sql = wanted.page(left, MAX_PAGE_BYTES.saturating_sub(bytes));
            let rows = self.ask_by(wanted.plan(), READING, &sql, &refs(&wanted.values)).await?;
            let has_more = rows.len() > left;
            for row in rows.iter().take(left) {
                let record: &[u8] = row.get(1);
                bytes += record.len();
                found.push((number_in(row, 0), decode("operation", record)?));
            }
            if has_more || bytes > MAX_PAGE_BYTES {
                below = found.last().map_or(below, |(number, _)| *number);
                if found.len() == limit || bytes > MAX_PAGE_BYTES {
                    return Ok((found, Some(below)));
                }
                continue;
            }
            let Some((sql, values)) = wanted.last() else { return Ok((found, None)) };
            let last = self.ask_by(wanted.plan(), READING, &sql, &refs(values)).await?;
            let Some(last) = last.first() else { return Ok((found, None)) };
            below = number_in(last, 0);
        }
        Ok((found, Some(below)))
    }

    /// Between which numbers the operations of a filter's time are: the first one, and the one
    /// behind the last.
    async fn numbers(
        &self,
        company: i64,
        filter: &OperationFilter,
        before: u64,
    ) -> Result<(u64, u64), StoreError> {
        let (mut from, mut below) = (0, before);
        if let Some(since) = filter.since {
            let first = match self.first_at(company, since.as_microsecond()).await? {
                Some(first) => first,
                None => self.newest(company).await?,
            };
            from = first.saturating_sub(TIME_SLACK);
        }
        if let Some(until) = filter.until
            && let Some(first) = self.first_at(company, until.as_microsecond()).await?
        {
            below = below.min(first.saturating_add(TIME_SLACK));
        }
        Ok((from, below))
    }

    async fn first_at(&self, company: i64, moment: i64) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT number FROM operations WHERE company = $1 AND started_us >= $2 \
                   ORDER BY started_us LIMIT 1";
        let rows = self.ask_by(Plan::InOrder, READING, sql, &[&company, &moment]).await?;
        Ok(rows.first().map(|row| number_in(row, 0)))
    }

    async fn newest(&self, company: i64) -> Result<u64, StoreError> {
        let sql = "SELECT number FROM operations WHERE company = $1 ORDER BY number DESC LIMIT 1";
        let rows = self.ask_by(Plan::InOrder, READING, sql, &[&company]).await?;
        Ok(rows.first().map_or(0, |row| number_in(row, 0)))
    }
}

type Boxed = Box<dyn Value + Send>;

/// A column, how it is compared, and with what.
type Condition = (&'static str, &'static str, Boxed);

/// A question for operations.
struct Wanted {
    /// What a row has several of leads. Its matches are all read and sorted; otherwise an index in
    /// the order of numbers is read.
    is_of_several: bool,
    /// Decided by the index. The first value is the company.
    keys: Vec<String>,
    /// How many values these have.
    key_values: usize,
    /// Looked at in each entry.
    rest: Vec<String>,
    columns: Vec<&'static str>,
    values: Vec<Boxed>,
}

impl Wanted {
    fn of(company: i64, filter: &OperationFilter, (from, below): (u64, u64)) -> Self {
        let mut conditions = leading(filter).into_iter();
        let mut lead = conditions.next();
        let is_of_several = lead.as_ref().is_some_and(|(_, is, _)| *is == "@>");
        let mut wanted = Self {
            is_of_several,
            keys: Vec::new(),
            key_values: 0,
            rest: Vec::new(),
            columns: Vec::new(),
            values: vec![Box::new(company)],
        };
        let (from, below) = (whole(from), whole(below));
        let bounds: [Condition; 2] =
            [("number", "<", Box::new(below)), ("number", ">=", Box::new(from))];
        match is_of_several {
            true => {
                // The index has no entry for an empty array. It is not of one company.
                wanted.keys.extend(lead.iter().map(|(column, ..)| format!("{column} <> '{{}}'")));
                wanted.key(lead.take());
                wanted.rest.push("company = $1".to_owned());
                wanted.columns.push("company");
                bounds.into_iter().for_each(|bound| wanted.beside(bound));
            }
            false => {
                wanted.keys.push("company = $1".to_owned());
                bounds.into_iter().chain(lead).for_each(|key| wanted.key(Some(key)));
            }
        }
        wanted.key_values = wanted.values.len();
        conditions.chain(others(filter)).for_each(|condition| wanted.beside(condition));
        if filter.keeps_text {
            wanted.rest.push("keeps_text".to_owned());
            wanted.columns.push("keeps_text");
        }
        wanted
    }

    fn condition(&mut self, (column, is, value): Condition) -> String {
        self.values.push(value);
        format!("{column} {is} ${}", self.values.len())
    }

    fn key(&mut self, condition: Option<Condition>) {
        let condition = condition.map(|condition| self.condition(condition));
        self.keys.extend(condition);
    }

    fn beside(&mut self, condition: Condition) {
        let column = condition.0;
        if column != "number" && !self.columns.contains(&column) {
            self.columns.push(column);
        }
        let condition = self.condition(condition);
        self.rest.push(condition);
    }

    fn plan(&self) -> Plan {
        if self.is_of_several { Plan::Several } else { Plan::InOrder }
    }

    /// Whether an index in the order of numbers says what matches.
    fn is_looked_up(&self) -> bool {
        // The index of sessions has nothing beside its key.
        let has_beside = !self.keys.iter().any(|key| key.starts_with("session"));
        let is_in_index = self.columns.iter().all(|column| INCLUDED.contains(column));
        !self.is_of_several && !self.rest.is_empty() && has_beside && is_in_index
    }

    /// How many entries a question looks at. `None`: all, or only those that match.
    fn window(&self) -> Option<u64> {
        match (self.is_of_several || self.rest.is_empty(), self.is_looked_up()) {
            (true, _) => None,
            (_, true) => Some(ENTRIES),
            (_, false) => Some(ROWS),
        }
    }

    fn entries(&self, also: &str) -> String {
        let columns: String = self.columns.iter().map(|column| format!(", {column}")).collect();
        let keys = self.keys.join(" AND ");
        format!("SELECT number{also}{columns} FROM operations WHERE {keys}")
    }

    /// The operations that match, one more than the limit: that says that there are more. Records
    /// are read until they are large together.
    fn page(&mut self, limit: usize, most_bytes: usize) -> String {
        for number in [limit.saturating_add(1), most_bytes] {
            self.values.push(Box::new(whole(number as u64)));
        }
        let (limit, most) = (self.values.len() - 1, self.values.len());
        let end = format!("ORDER BY number DESC LIMIT ${limit}");
        let rest = self.rest.join(" AND ");
        let look_up = |numbers: &str| {
            format!(
                "SELECT w.number, o.record FROM ({numbers} {end}) AS w CROSS JOIN LATERAL \
                 (SELECT record FROM operations WHERE company = $1 AND number = w.number) AS o"
            )
        };
        let window = self.window().map(|window| format!("ORDER BY number DESC LIMIT {window}"));
        let wanted = match window {
            Some(window) if self.is_looked_up() => {
                let entries = self.entries("");
                look_up(&format!("SELECT number FROM ({entries} {window}) AS e WHERE {rest}"))
            }
            Some(window) => {
                let entries = self.entries(", record");
                format!("SELECT number, record FROM ({entries} {window}) AS e WHERE {rest} {end}")
            }
            None if self.is_of_several => {
                let entries = self.entries("");
                look_up(&format!(
                    "WITH e AS MATERIALIZED ({entries}) SELECT number FROM e WHERE {rest}"
                ))
            }
            None => format!("{} {end}", self.entries(", record")),
        };
        up_to(most, ("number", "record"), "DESC", &wanted)
    }

    /// The number of the last entry that the question looked at, if there may be more.
    fn last(&self) -> Option<(String, &[Boxed])> {
        let before = self.window()?.saturating_sub(1);
        let sql = format!("{} ORDER BY number DESC OFFSET {before} LIMIT 1", self.entries(""));
        Some((sql, &self.values[..self.key_values]))
    }
}

/// What an index may be read by, the most telling first.
fn leading(filter: &OperationFilter) -> Vec<Condition> {
    let several = |name, text: Option<&str>| -> Option<Condition> {
        Some((name, "@>", Box::new(vec![column(text?)])))
    };
    let one = |name, text: Option<&str>| -> Option<Condition> {
        Some((name, "=", Box::new(column(text?))))
    };
    let binding = |id: BindingId| -> Condition { ("binding_id", "=", Box::new(id.0)) };
    [
        several("records", filter.provider_record_id.as_ref().map(|id| id.as_str())),
        several("runs", filter.run_id.as_deref()),
        several("issues", filter.issue_id.as_deref()),
        one("session", filter.session_key.as_deref()),
        one("agent", filter.agent_id.as_deref()),
        filter.binding_id.map(binding),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn others(filter: &OperationFilter) -> impl Iterator<Item = Condition> {
    // Beside a record it is the record's provider, and not the one that was called.
    let provider = filter.provider_key.as_ref().filter(|_| filter.provider_record_id.is_none());
    let texts = [
        ("project", filter.project_id.as_deref()),
        ("binding_key", filter.binding_key.as_ref().map(|key| key.as_str())),
        ("hook", filter.hook_kind.as_ref().map(|kind| kind.as_str())),
        ("source", filter.source_kind.map(|kind| kind.as_str())),
        ("kind", filter.kind.map(|kind| kind.as_str())),
        ("outcome", filter.outcome.map(|outcome| outcome.as_str())),
        ("provider", provider.map(|key| key.as_str())),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| {
        let value: Boxed = Box::new(column(text?));
        Some((name, "=", value))
    });
    // What began within the same microsecond is compared as it is.
    let times = [(">=", filter.since), ("<=", filter.until)];
    let times = times.into_iter().filter_map(|(is, moment)| {
        let value: Boxed = Box::new(moment?.as_microsecond());
        Some(("started_us", is, value))
    });
    texts.collect::<Vec<_>>().into_iter().chain(times.collect::<Vec<_>>())
}
