//! Lines and tables on standard output.

use std::io::Write;

use comfy_table::Table;
use comfy_table::presets::NOTHING;

use super::HooksError;

/// Prints one line.
pub(crate) fn line(text: &str) -> Result<(), HooksError> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// A table with a header.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return "nothing".to_owned();
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.iter().map(|title| title.to_uppercase())).add_rows(rows);
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
