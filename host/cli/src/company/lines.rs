//! The lines of an export of a company, as the command line looks at them.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use crate::output::table;
use crate::texts::text;
use crate::{CliError, Result};
use memhost_core::ExportLine;
use memhost_store::Table;
use memhost_types::{Binding, BindingId, BindingKey, BindingLimits, RecordHandle, RecordRow};

/// Refuses an export that ended early: its last line says that it is complete.
pub(super) fn check_complete(lines: &[u8]) -> Result<()> {
    let last =
        lines.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
    match serde_json::from_slice(last) {
        Ok(ExportLine::End { .. }) => Ok(()),
        _ => Err(CliError::Host(
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
    let (mut keys, mut unknown) = (HashMap::<BindingId, BindingKey>::new(), 0);
    let mut known: HashSet<(BindingKey, RecordHandle)> = HashSet::new();
    // Rows come before records.
    for line in lines.split(|byte| *byte == b'\n').filter(of_type) {
        match serde_json::from_slice(line) {
            Ok(ExportLine::Row { table, value, .. }) if table == Table::Bindings.name() => {
                if let Ok(Binding { id, key, .. }) = serde_json::from_value(value) {
                    keys.insert(id, key);
                }
            }
            Ok(ExportLine::Row { table, value, .. }) if table == Table::Records.name() => {
                if let Ok(RecordRow { binding_id, handle, .. }) = serde_json::from_value(value)
                    && let Some(key) = keys.get(&binding_id)
                {
                    known.insert((key.clone(), handle));
                }
            }
            Ok(ExportLine::Record { binding_key, value }) if value.scope.is_none() => {
                unknown += usize::from(!known.contains(&(binding_key, value.handle)));
            }
            _ => {}
        }
    }
    unknown
}

/// Refuses the export of another company, before anything is printed of it.
pub(super) fn check_company(lines: &str, company: &str) -> Result<()> {
    match serde_json::from_str(lines.lines().next().unwrap_or_default()) {
        Ok(ExportLine::Company { company_id: own, .. }) if own.as_str() != company => {
            let message = format!("is {company}, but FILE has the company {own}; type `-c {own}`");
            Err(CliError::input("--company", message))
        }
        _ => Ok(()),
    }
}

/// What the bindings of an export may reach and use.
pub(super) fn requests(lines: &str) -> String {
    let bindings = lines.lines().filter(|line| line.contains("\"bindings\""));
    let bindings = bindings.filter_map(|line| match serde_json::from_str(line) {
        Ok(ExportLine::Row { table, value, .. }) if table == Table::Bindings.name() => {
            serde_json::from_value::<Binding>(value).ok()
        }
        _ => None,
    });
    let row = |binding: Binding| {
        let Binding { key, provider_key, grants, limits, requested, .. } = binding;
        let (grants, limits) =
            requested.map_or((grants, limits), |asked| (asked.grants, asked.limits));
        let (limits, defaults) = (json!(limits), json!(BindingLimits::default()));
        let limits = limits.as_object().into_iter().flatten();
        let limits = limits.filter(|(name, limit)| defaults[*name] != **limit);
        let limits: Vec<String> = limits.map(|(name, limit)| format!("{name}={limit}")).collect();
        vec![key.to_string(), provider_key.to_string(), text(&grants), limits.join(" ")]
    };
    table(
        &["binding", "provider", "grants", "limits other than the defaults"],
        bindings.map(row).collect(),
    )
}

#[cfg(test)]
mod tests {
    use memhost_types::Grants;
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_export_of_another_company_is_refused_with_its_name() {
        let lines = "{\"type\":\"company\",\"format\":1,\"companyId\":\"acme\",\
                     \"exportedAt\":\"2026-11-01T00:00:00Z\"}\n";
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
        let handle = |id: &str| json!({"providerKey": "p", "providerRecordId": id});
        let record = |id: &str| json!({"handle": handle(id), "text": "t"});
        // As the host writes them: the type comes first.
        let line = |line: ExportLine| serde_json::to_string(&line).unwrap();
        let row = |table: Table, value: Value| {
            line(ExportLine::Row { table: table.name().to_owned(), key: String::new(), value })
        };
        let of = |key: &str, value: Value| {
            let value = serde_json::from_value(value).unwrap();
            line(ExportLine::Record { binding_key: key.parse().unwrap(), value })
        };
        let mut scoped = record("c");
        scoped["scope"] = json!({"companyId": "acme"});
        let (id, at) = ("0199f0a0-0000-7000-8000-000000000000", "2026-11-01T00:00:00Z");
        let binding = json!({
            "id": id, "companyId": "acme", "key": "notes", "providerKey": "p", "config": {},
            "enabled": true, "grants": Grants::default(), "limits": BindingLimits::default(),
            "revision": 1, "createdAt": at, "updatedAt": at,
        });
        let known = json!({
            "companyId": "acme", "bindingId": id, "handle": handle("a"), "writtenBy": "operator",
            "scope": {"companyId": "acme"}, "operationId": id, "createdAt": at,
        });
        let lines = [
            row(Table::Bindings, binding),
            row(Table::Records, known),
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
}
