//! Lines and tables on standard output.

use std::io::{ErrorKind, Write};

use comfy_table::Table;
use comfy_table::presets::NOTHING;

use super::HooksError;

/// Prints one line. A host's answer or a file of the spool may be in it: nothing of it is executed
/// by a terminal. A reader that has gone, such as `head`, stops no installation half-way.
pub(crate) fn line(text: &str) -> Result<(), HooksError> {
    match writeln!(std::io::stdout().lock(), "{}", printable(text)) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}")
}

/// A table with a header.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return "nothing".to_owned();
    }
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(header.iter().map(|title| title.to_uppercase()))
        .add_rows(rows);
    // The first column begins at the margin.
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_executes_nothing_of_a_line() {
        assert_eq!(
            printable("http://a\x1b[2J\u{9b}\n+ b\tc"),
            "http://a\u{fffd}[2J\u{fffd}\n+ b\tc"
        );
    }

    #[test]
    fn a_table_begins_at_the_margin() {
        let rows = vec![vec!["21".to_owned(), "a".to_owned()]];
        assert_eq!(table(&["waiting", "what"], rows), "WAITING  WHAT\n21       a");
        assert_eq!(table(&["waiting"], Vec::new()), "nothing");
    }
}
