//! Sums as CSV (RFC 4180). A spreadsheet reads no cell as a formula.

use super::{dimension_label, dimension_value};
use memhost_core::{GroupBy, Sums, SumsRow};
use memhost_types::{Counts, Microcents};

/// The name of a count, and the count.
type Count = (&'static str, fn(&Counts) -> u64);

/// What is counted, in the order of the columns.
const COUNTS: &[Count] = &[
    ("operations", |counts| counts.operations),
    ("reads", |counts| counts.reads),
    ("writes", |counts| counts.writes),
    ("queries", |counts| counts.queries),
    ("emptyQueries", |counts| counts.empty_queries),
    ("corrections", |counts| counts.corrections),
    ("extractions", |counts| counts.extractions),
    ("extractionFailures", |counts| counts.extraction_failures),
    ("succeeded", |counts| counts.succeeded),
    ("failed", |counts| counts.failed),
    ("refused", |counts| counts.refused),
    ("inputTokens", |counts| counts.input_tokens),
    ("cachedInputTokens", |counts| counts.cached_input_tokens),
    ("outputTokens", |counts| counts.output_tokens),
    ("embeddingTokens", |counts| counts.embedding_tokens),
];

/// A header and a row for each group. Lines end with CR LF.
pub(super) fn of_sums(sums: &Sums, group_by: &[GroupBy]) -> String {
    let mut text = String::new();
    let head = group_by.iter().map(|by| dimension_label(*by).to_lowercase());
    let head = head.chain(COUNTS.iter().map(|(name, _)| (*name).to_owned()));
    let last =
        ["costCents", "reportedCostCents", "latencyP50Us", "latencyP99Us"].map(str::to_owned);
    line(&mut text, head.chain(last));
    for row in &sums.rows {
        line(&mut text, cells(row, group_by).into_iter());
    }
    text
}

fn cells(row: &SumsRow, group_by: &[GroupBy]) -> Vec<String> {
    let sums = &row.sums;
    let latency = |us: Option<u64>| us.map(|us| us.to_string()).unwrap_or_default();
    let mut cells: Vec<String> = group_by.iter().map(|by| dimension_value(row, *by)).collect();
    cells.extend(COUNTS.iter().map(|(_, count)| count(&sums.counts).to_string()));
    cells.extend([cents(sums.cost), cents(sums.reported_cost)]);
    cells.extend([latency(sums.latency_p50_us), latency(sums.latency_p99_us)]);
    cells
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (index, value) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&cell(&value));
    }
    text.push_str("\r\n");
}

/// Puts an apostrophe before a formula, and quotes a cell that has a comma, a quote or a line end.
fn cell(value: &str) -> String {
    let is_formula =
        value.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    let value = if is_formula { format!("'{value}") } else { value.to_owned() };
    match value.contains([',', '"', '\r', '\n', '\t']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value,
    }
}

/// Exact cents, as few digits as there are.
fn cents(amount: Microcents) -> String {
    let (whole, rest) = (amount.0 / 1_000_000, amount.0 % 1_000_000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:06}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_every_cell_is_one_cell() {
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(cell("-2,3"), "\"'-2,3\"");
        assert_eq!(cell("say \"hi\"\r\nthere"), "\"say \"\"hi\"\"\r\nthere\"");
        assert_eq!(
            [0, 1, 1_500_000, 2_000_000].map(|n| cents(Microcents(n))),
            ["0", "0.000001", "1.5", "2"]
        );
    }
}
