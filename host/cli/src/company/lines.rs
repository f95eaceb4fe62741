//! The lines of an export of a company, as the command line looks at them.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use crate::CliError;
use crate::output::{table, text};
use memhost_types::BindingLimits;

/// Refuses an export that ended early: its last line says that it is complete.
pub(super) fn check_complete(lines: &[u8]) -> Result<(), CliError> {
    let last =
        lines.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
    match serde_json::from_slice::<Value>(last).is_ok_and(|line| line["type"] == "end") {
        true => Ok(()),
        false => Err(CliError::Host(
            "the host has cut the export off; its log says why, and nothing is kept".to_owned(),
        )),
    }
}

/// How many records of an export have no scope: their provider cannot export it, and the host knows
/// nothing of them.
pub(super) fn unscoped(lines: &[u8]) -> usize {
    let of_type = |line: &&[u8]| {
        line.starts_with(b"{\"type\":\"record\"") || line.starts_with(b"{\"type\":\"row\"")
    };
    let (mut keys, mut known, mut unknown) = (HashMap::new(), HashSet::new(), 0);
    // Rows come before records.
    for line in lines.split(|byte| *byte == b'\n').filter(of_type) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        let (value, of) = (&line["value"], |value: &Value| text(value, "/handle/providerRecordId"));
        match (line["type"].as_str(), line["table"].as_str()) {
            (Some("row"), Some("bindings")) => {
                drop(keys.insert(text(value, "/id"), text(value, "/key")));
            }
            (Some("row"), Some("records")) => {
                let key = keys.get(&text(value, "/bindingId")).cloned().unwrap_or_default();
                known.insert((key, of(value)));
            }
            (Some("record"), _) if value["scope"].is_null() => {
                unknown += usize::from(!known.contains(&(text(&line, "/bindingKey"), of(value))));
            }
            _ => {}
        }
    }
    unknown
}

/// Refuses the export of another company, before anything is printed of it.
pub(super) fn check_company(lines: &str, company: &str) -> Result<(), CliError> {
    let first =
        serde_json::from_str::<Value>(lines.lines().next().unwrap_or_default()).unwrap_or_default();
    match first["companyId"].as_str().filter(|_| first["type"] == "company") {
        Some(own) if own != company => {
            let message = format!("is {company}, but FILE has the company {own}; type `-c {own}`");
            Err(CliError::input("--company", message))
        }
        _ => Ok(()),
    }
}

/// What the bindings of an export may reach and use.
pub(super) fn requests(lines: &str) -> String {
    let bindings = lines.lines().filter(|line| line.contains("\"bindings\""));
    let bindings = bindings.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let row = |line: Value| {
        let (value, defaults) = (&line["value"], json!(BindingLimits::default()));
        let asked = value.get("requested").unwrap_or(value);
        let changed = |(name, limit): (&String, &Value)| {
            (defaults[name] != *limit).then(|| format!("{name}={limit}"))
        };
        let limits = asked["limits"]
            .as_object()
            .map(|all| all.iter().filter_map(changed).collect::<Vec<_>>().join(" "));
        vec![
            text(value, "/key"),
            text(value, "/providerKey"),
            asked["grants"].to_string(),
            limits.unwrap_or_default(),
        ]
    };
    let rows = bindings
        .filter(|line| line["type"] == "row" && line["table"] == "bindings")
        .map(row)
        .collect();
    table(&["binding", "provider", "grants", "limits other than the defaults"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_export_of_another_company_is_refused_with_its_name() {
        let lines = "{\"type\":\"company\",\"format\":1,\"companyId\":\"acme\"}\n";
        assert!(check_company(lines, "acme").is_ok() && check_company("", "acme").is_ok());
        let error = check_company(lines, "acme2").unwrap_err().to_string();
        assert_eq!(error, "--company: is acme2, but FILE has the company acme; type `-c acme`");
    }

    #[test]
    fn an_export_without_its_last_line_was_cut_off() {
        let lines = b"{\"type\":\"company\"}\n{\"type\":\"end\",\"lines\":1}\n";
        assert!(check_complete(lines).is_ok());
        for cut in [&b""[..], b"{\"type\":\"company\"}\n", &lines[..lines.len() - 5]] {
            assert!(check_complete(cut).unwrap_err().to_string().contains("cut the export off"));
        }
    }

    #[test]
    fn a_record_that_the_host_has_a_row_of_has_a_scope() {
        let record = |id: &str| json!({"handle": {"providerKey": "p", "providerRecordId": id}});
        // As the host writes them: the type comes first.
        let line =
            |kind: &str, rest: Value| format!("{{\"type\":\"{kind}\",{}", &rest.to_string()[1..]);
        let row = |table: &str, value: Value| {
            line("row", json!({"table": table, "key": "", "value": value}))
        };
        let mut scoped = record("c");
        scoped["scope"] = json!({"companyId": "acme"});
        let of =
            |key: &str, value: Value| line("record", json!({"bindingKey": key, "value": value}));
        let lines = [
            row("bindings", json!({"id": "b1", "key": "notes"})),
            row("records", record_row(record("a"))),
            of("notes", record("a")),
            of("notes", scoped),
            of("other", record("a")),
            of("notes", record("b")),
        ];
        assert_eq!(
            unscoped(lines.join("\n").as_bytes()),
            2,
            "the same id elsewhere, and one of which nothing is known"
        );
    }

    fn record_row(mut record: Value) -> Value {
        record["bindingId"] = "b1".into();
        record
    }
}
