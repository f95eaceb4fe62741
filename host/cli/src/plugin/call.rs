//! The calls of `memhost plugin run`: a function with its arguments, or with the JSON of its route.

use serde_json::{Map, Value, json};

use super::trial::id;
use crate::answer::read;
use crate::memory::shown;
use crate::output::Format;
use crate::texts::text;
use crate::{CliError, Result};
use memhost_sandbox::Inspection;
use memhost_types::{CompanyId, Operation, OperationKind, Permission};

/// The functions that can be called.
const FUNCTIONS: &str = "describe, capture TEXT, upsert TEXT…, query TEXT, list, get ID, forget \
                         ID…, correct ID TEXT, explain TEXT, browse [PATH]";

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// The function's name, as the user gave it.
    pub(super) name: String,
    arguments: Vec<String>,
}

impl Call {
    /// Calls with `--` between them.
    pub(super) fn all(words: &[String]) -> Result<Vec<Self>> {
        let calls = words.split(|word| word == "--").filter(|words| !words.is_empty());
        let calls: Vec<Self> = calls
            .map(|words| Self { name: words[0].clone(), arguments: words[1..].to_vec() })
            .collect();
        if calls.is_empty() {
            return Err(CliError::input(
                "CALL",
                format!("is missing; give one of these after `--`: {FUNCTIONS}"),
            ));
        }
        // All calls are checked before the first is made.
        let company = id("dev")?;
        calls.iter().try_for_each(|call| call.request(&company, None, "provider").map(drop))?;
        Ok(calls)
    }

    /// The pseudo-function for an extraction job.
    pub(super) fn of_a_job() -> Self {
        Self { name: "extraction".to_owned(), arguments: Vec::new() }
    }

    /// The route of the runtime plane and its request; none for `describe`, which the host has
    /// answered already.
    pub(super) fn request(
        &self,
        company: &CompanyId,
        agent: Option<&str>,
        provider: &str,
    ) -> Result<Option<(&'static str, Value)>> {
        let handle = |id: &String| json!({ "providerKey": provider, "providerRecordId": id });
        let words: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let (route, body) = match (self.name.as_str(), words.as_slice()) {
            ("describe", []) => return Ok(None),
            (name, [json]) if json.trim_start().starts_with('{') => {
                (route(name)?, self.json(json)?)
            }
            ("capture", [text]) => {
                ("capture", json!({ "payload": { "text": text }, "mode": "capture_record" }))
            }
            ("upsert", [_, ..]) => {
                let records: Vec<_> = words.iter().map(|text| json!({ "text": text })).collect();
                ("records", json!({ "records": records }))
            }
            (name @ ("query" | "explain"), [text]) => (route(name)?, json!({ "query": text })),
            ("list", []) => ("list", json!({})),
            ("get", [_]) => ("get", json!({ "handle": handle(&self.arguments[0]) })),
            ("forget", [_, ..]) => (
                "forget",
                json!({ "handles": self.arguments.iter().map(handle).collect::<Vec<_>>() }),
            ),
            ("correct", [_, text]) => {
                let patch = json!({ "record": { "text": text } });
                ("correct", json!({ "handle": handle(&self.arguments[0]), "patch": patch }))
            }
            ("browse", []) => ("browse", json!({ "path": "" })),
            ("browse", [path]) => ("browse", json!({ "path": path })),
            (name, _) => {
                let form = FUNCTIONS
                    .split(", ")
                    .find_map(|form| form.strip_prefix(name)?.strip_prefix(' '));
                let message = match (form, FUNCTIONS.split(", ").any(|form| form == name)) {
                    (Some(form), _) if form.starts_with('[') => {
                        format!("takes {form}, or the request as JSON")
                    }
                    (Some(form), _) => format!("needs {form}, or the request as JSON"),
                    (None, true) => "takes no arguments, or the request as JSON".to_owned(),
                    (None, false) => {
                        format!(
                            "is not a function; use one of {FUNCTIONS}, or a name and the request \
                             as JSON"
                        )
                    }
                };
                return Err(CliError::input(name, message));
            }
        };
        Ok(Some((route, completed(route, body, company, agent))))
    }

    fn json(&self, text: &str) -> Result<Value> {
        serde_json::from_str(text).map_err(|error| {
            CliError::input(&self.name, format!("has an argument that is not JSON: {error}"))
        })
    }

    /// The answer for people.
    ///
    /// # Errors
    /// If it is not the answer to this function.
    pub(super) fn shown(&self, answer: &Value) -> Result<String> {
        Ok(match self.name.as_str() {
            "describe" => inspected(&read(answer)?),
            "query" => shown::hits(&read(answer)?),
            "list" => shown::records(&read(answer)?),
            "get" => shown::record(&read(answer)?),
            "forget" => shown::forgotten(&read(answer)?),
            "capture" => shown::captured(&read(answer)?),
            "upsert" => shown::upserted("written", &read(answer)?),
            "extraction" => {
                let Operation { outcome, record_count, .. } = read(answer)?;
                format!("{outcome}, {record_count} records")
            }
            _ => {
                let mut answer = answer.clone();
                answer.as_object_mut().map(|answer| answer.remove("operationId"));
                Format::Yaml.render(&answer, "", || Ok(String::new()))?
            }
        })
    }
}

/// What is known of a component.
pub(super) fn inspected(inspection: &Inspection) -> String {
    let names = |all: &[String]| {
        if all.is_empty() { "none".to_owned() } else { all.join("\n             ") }
    };
    let world = [("exports", names(&inspection.exports)), ("imports", names(&inspection.imports))];
    [head(inspection), labelled(&world), requests(inspection)].concat().join("\n")
}

/// What somebody looks at who decides whether to take it.
pub(super) fn described(inspection: &Inspection) -> String {
    [head(inspection), requests(inspection)].concat().join("\n")
}

/// A component chooses its texts, and must not add a line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn labelled(lines: &[(&str, String)]) -> Vec<String> {
    lines.iter().map(|(label, value)| format!("{label:<12} {value}")).collect()
}

fn head(inspection: &Inspection) -> Vec<String> {
    let description = &inspection.description;
    labelled(&[
        ("provider", format!("{} {}", description.provider_key, description.version)),
        ("summary", one_line(&description.summary)),
        ("digest", inspection.digest.to_string()),
        ("size", format!("{} bytes", inspection.bytes)),
        ("contract", inspection.contract_version.clone()),
    ])
}

fn requests(inspection: &Inspection) -> Vec<String> {
    let description = &inspection.description;
    let mut lines = Vec::new();
    if description.permissions.is_empty() {
        lines.push("requests     none".to_owned());
    }
    for ask in &description.permissions {
        let (kind, detail) = in_words(&ask.permission);
        let optional = if ask.optional { " (optional)" } else { "" };
        lines.push(format!("requests     {kind} {detail}{optional}: {}", one_line(&ask.reason)));
    }
    lines
}

/// What kind of permission is requested, and of what.
pub(super) fn in_words(permission: &Permission) -> (&'static str, String) {
    match permission {
        Permission::Storage(bytes) => ("storage", bytes.to_string()),
        Permission::Directory(bytes) => ("directory", bytes.to_string()),
        Permission::Embeddings => ("embeddings", String::new()),
        Permission::Http(http) => ("http", text(http)),
        Permission::Secret(name) => ("secret", name.clone()),
        Permission::Clock => ("clock", String::new()),
        Permission::Other(name) => ("other", name.clone()),
    }
}

fn route(name: &str) -> Result<&'static str> {
    // An export and an import go through files: `memhost record`.
    let kind = match name {
        "upsert" => Some(OperationKind::RecordUpsert),
        "record_upsert" | "export" | "import" => None,
        name => name.parse().ok(),
    };
    kind.and_then(OperationKind::route)
        .ok_or_else(|| CliError::input(name, format!("is not a function; use one of {FUNCTIONS}")))
}

/// Adds the required members that the user did not give.
fn completed(route: &str, mut body: Value, company: &CompanyId, agent: Option<&str>) -> Value {
    let Some(members) = body.as_object_mut() else { return body };
    let scope = members.entry("scope").or_insert_with(|| Value::Object(Map::new()));
    if let Some(scope) = scope.as_object_mut() {
        scope.entry("companyId").or_insert_with(|| company.as_str().into());
        if let Some(agent) = agent {
            scope.entry("agentId").or_insert_with(|| agent.into());
        }
    }
    if route == "capture" {
        members
            .entry("source")
            .or_insert_with(|| json!({ "kind": "manual_note", "companyId": company }));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(|word| word.replace('_', " ")).collect()
    }

    #[test]
    fn several_calls_have_two_dashes_between_them() {
        let calls = Call::all(&words("capture the_gate -- query gate? -- describe")).unwrap();
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["capture", "query", "describe"]);
        let company = id("dev").unwrap();
        let (route, body) = calls[0].request(&company, Some("ada"), "notes").unwrap().unwrap();
        assert_eq!((route, &body["payload"]["text"]), ("capture", &json!("the gate")));
        assert_eq!(body["scope"], json!({ "companyId": "dev", "agentId": "ada" }));
        assert!(calls[2].request(&company, None, "notes").unwrap().is_none());
    }

    #[test]
    fn a_request_may_be_given_as_json_and_keeps_what_it_says() {
        let given = r#"query {"query":"a","topK":3,"scope":{"companyId":"dev","agentId":"bob"}}"#;
        let calls = Call::all(&words(given)).unwrap();
        let (_, body) =
            calls[0].request(&id("dev").unwrap(), Some("ada"), "notes").unwrap().unwrap();
        assert_eq!((&body["topK"], &body["scope"]["agentId"]), (&json!(3), &json!("bob")));
    }

    #[test]
    fn what_cannot_be_called_is_said_before_anything_is() {
        for (line, problem) in [
            ("capture a -- ask b", "ask: is not a function"),
            ("get", "get: needs ID, or the request as JSON"),
            ("query", "query: needs TEXT"),
            ("list a", "list: takes no arguments"),
            ("query {no", "query: has an argument that is not JSON"),
            ("--", "CALL: is missing"),
        ] {
            let error = Call::all(&words(line)).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{line}: {error}");
        }
    }
}
