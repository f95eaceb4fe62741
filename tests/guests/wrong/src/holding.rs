//! The interfaces `review` and `transfer`.

use memhost_sdk::types::*;
use memhost_sdk::{Review, Transfer};
use serde_json::{Value, json};

use crate::{Wrong, everywhere};

fn name(decision: &Decision) -> String {
    let name = match decision {
        Decision::Approve => "approve",
        Decision::Reject => "reject",
        Decision::Edit(_) => "edit",
    };
    name.to_owned()
}

/// Lines with each line's JSON changed.
fn changed(lines: &str, change: impl Fn(&mut Value)) -> String {
    let line = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            change(&mut value);
            format!("{value}\n")
        }
        Err(_) => format!("{line}\n"),
    };
    lines.lines().map(line).collect()
}

impl Review for Wrong {
    fn list_pending(
        &mut self,
        mut scope: Scope,
        cursor: Option<String>,
        mut limit: u32,
    ) -> Result<ListPage, Error> {
        match self.breaks.as_str() {
            "REV-03" => limit = 1_000,
            "REV-05" => scope = everywhere(scope),
            _ => {}
        }
        let mut page = self.reference.list_pending(scope, cursor, limit)?;
        match self.breaks.as_str() {
            "REV-02" => page.items.reverse(),
            "REV-04" => page.continuation = Continuation::End,
            "REV-06" => {
                for ghost in self.marks.iter("") {
                    let (id, text) = ghost?;
                    page.items.push(Snippet::new(String::from_utf8_lossy(&id), text));
                }
            }
            _ => {}
        }
        Ok(page)
    }

    fn decide(
        &mut self,
        id: RecordId,
        mut scope: Scope,
        mut decision: Decision,
    ) -> Result<Option<Snippet>, Error> {
        match (self.breaks.as_str(), &mut decision) {
            ("REV-07", Decision::Approve) => self.marks.put(&id, &name(&decision))?,
            ("REV-08", Decision::Reject) => self.marks.put(&id, &"It was rejected".to_owned())?,
            ("REV-09", Decision::Edit(record)) => record.text.truncate(10),
            ("REV-10", Decision::Edit(record)) if record.id.is_some() => {
                drop(self.add(&scope, record.clone())?)
            }
            ("REV-11", _) => {
                let name = name(&decision);
                if self.marks.get(&id)?.is_some_and(|before| before == name) {
                    return Err(Error::invalid("decision", "something was decided already"));
                }
                self.marks.put(&id, &name)?;
            }
            ("REV-14", _) => scope = everywhere(scope),
            _ => {}
        }
        match self.reference.decide(id, scope, decision) {
            Err(Error::InvalidRequest(_)) if self.is("REV-12") => Ok(None),
            Err(Error::NotFound(_)) if self.is("REV-13") => Ok(None),
            outcome => outcome,
        }
    }
}

impl Transfer for Wrong {
    fn export_records(&mut self, mut scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        match self.breaks.as_str() {
            // It continues where the last one ended.
            "TRF-03" if cursor.is_none() && self.marks.get("exported")?.is_some() => {
                return Ok(Chunk { lines: String::new(), next_cursor: None });
            }
            "TRF-05" => scope = everywhere(scope),
            _ => {}
        }
        let mut chunk = self.reference.export_records(scope, cursor)?;
        match self.breaks.as_str() {
            "TRF-01" => {
                chunk.lines = changed(&chunk.lines, |line| line["record"]["metadata"] = Value::Null)
            }
            "TRF-02" => chunk.lines.truncate(chunk.lines.trim_end().len()),
            "TRF-03" if chunk.next_cursor.is_none() => {
                self.marks.put("exported", &"yes".to_owned())?
            }
            "TRF-04" => chunk.next_cursor = None,
            "TRF-06" => {
                for ghost in self.marks.iter("") {
                    chunk.lines += &format!("{}\n", json!({ "forgotten": ghost?.1 }));
                }
            }
            "TRF-07" => {
                let waits = |line: &&str| line.contains(r#""standing":"Pending""#);
                chunk.lines = chunk
                    .lines
                    .lines()
                    .filter(|line| !waits(line))
                    .map(|line| format!("{line}\n"))
                    .collect();
            }
            _ => {}
        }
        Ok(chunk)
    }

    fn import_records(&mut self, request: ImportRequest) -> Result<ImportReport, Error> {
        let ImportRequest { operation_id, scope, mut lines } = request;
        let of = |lines| ImportRequest {
            operation_id: operation_id.clone(),
            scope: scope.clone(),
            lines,
        };
        if self.is("TRF-11") {
            let own = scope.agent_id.clone();
            lines = changed(&lines, |line| line["record"]["partition"]["agent"] = json!(own));
        }
        match self.reference.import_records(of(lines.clone())) {
            Ok(report) if self.is("TRF-08") => {
                Ok(ImportReport { imported: report.imported + report.unchanged, unchanged: 0 })
            }
            Err(Error::InvalidRequest(mut invalid)) => {
                match self.breaks.as_str() {
                    // One line after the other, until one fails.
                    "TRF-09" => {
                        for line in lines.lines() {
                            let _ = self.reference.import_records(of(format!("{line}\n")));
                        }
                    }
                    "TRF-10" => invalid.field = Some("lines".to_owned()),
                    _ => {}
                }
                Err(Error::InvalidRequest(invalid))
            }
            outcome => outcome,
        }
    }
}
