//! The operations on memory.

use std::io::Read;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::output::{clip, escape, line, provenance, table, text};
use super::{Backend, CliError, ScopeArgs, output};

/// Where a captured thing came from.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum SourceKind {
    IssueComment,
    IssueDocument,
    Issue,
    Run,
    Activity,
    ManualNote,
    ExternalDocument,
}

/// What becomes of a captured thing.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Mode {
    CaptureResidue,
    CaptureRecord,
}

/// What a search is for.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Intent {
    AgentPreamble,
    Answer,
    Browse,
}

#[derive(Debug, Args)]
pub(super) struct CaptureArgs {
    /// What happened; `-` reads it from standard input.
    text: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Where it came from.
    #[arg(long, value_enum, default_value = "manual_note")]
    source_kind: SourceKind,
    /// The comment that it is.
    #[arg(long, value_name = "ID")]
    comment_id: Option<String>,
    /// The document that it is.
    #[arg(long, value_name = "KEY")]
    document_key: Option<String>,
    /// A reference outside of Paperclip.
    #[arg(long, value_name = "REF")]
    external_ref: Option<String>,
    /// Whether the provider decides what to keep.
    #[arg(long, value_enum, default_value = "capture_residue")]
    mode: Mode,
    /// Free-form, a JSON object.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct NoteArgs {
    /// The record's text; `-` reads it from standard input.
    text: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Replace this record, or make it under this id.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// A short form.
    #[arg(long)]
    summary: Option<String>,
    /// Free-form, a JSON object.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// The question; `-` reads it from standard input.
    query: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// At most this many answers.
    #[arg(long, short = 'k', default_value_t = 10)]
    top_k: u32,
    /// Only records whose metadata has these members, a JSON object.
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// What the answers are for.
    #[arg(long, value_enum, default_value = "answer")]
    intent: Intent,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// At most this many records.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Where the page before ended.
    #[arg(long)]
    cursor: Option<String>,
    /// Only records whose metadata has these members, a JSON object.
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// The record's id, or `provider:id`.
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// Ids of records, or `provider:id`.
    #[arg(required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct CorrectArgs {
    /// The record's id, or `provider:id`.
    id: String,
    /// The text as it should be; `-` reads it from standard input.
    text: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Instead of a text: what is wrong, for providers that understand it.
    #[arg(long, conflicts_with = "text")]
    instruction: Option<String>,
}

pub(super) async fn capture(args: CaptureArgs) -> Result<(), CliError> {
    let scope = &args.scope;
    let source = present(json!({
        "kind": name(&args.source_kind),
        "companyId": scope.company.company,
        "issueId": scope.issue,
        "runId": scope.run,
        "commentId": args.comment_id,
        "documentKey": args.document_key,
        "externalRef": args.external_ref,
    }));
    let body = json!({
        "source": source,
        "payload": { "text": input(&args.text)? },
        "mode": name(&args.mode),
        "metadata": object("--metadata", args.metadata.as_deref())?,
    });
    let answer = call(scope, "capture", body).await?;
    show(scope, &answer, |answer| written("captured", answer))
}

pub(super) async fn note(args: NoteArgs) -> Result<(), CliError> {
    let record = present(json!({
        "id": args.id,
        "text": input(&args.text)?,
        "summary": args.summary,
        "metadata": object("--metadata", args.metadata.as_deref())?,
    }));
    let answer = call(&args.scope, "records", json!({ "records": [record] })).await?;
    show(&args.scope, &answer, |answer| written("noted", answer))
}

pub(super) async fn search(args: SearchArgs) -> Result<(), CliError> {
    let body = json!({
        "query": input(&args.query)?,
        "topK": args.top_k,
        "intent": name(&args.intent),
        "metadataFilter": object("--filter", args.filter.as_deref())?,
    });
    let answer = call(&args.scope, "query", body).await?;
    show(&args.scope, &answer, |answer| {
        let found = answer["snippets"].as_array().cloned().unwrap_or_default();
        table(&["score", "text", "from", "id"], found.iter().map(hit).collect())
    })
}

pub(super) async fn list(args: ListArgs) -> Result<(), CliError> {
    let body = json!({
        "limit": args.limit,
        "cursor": args.cursor,
        "metadataFilter": object("--filter", args.filter.as_deref())?,
    });
    let answer = call(&args.scope, "list", body).await?;
    show(&args.scope, &answer, |answer| {
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        let rows = items
            .iter()
            .map(|item| vec![id(item), clip(&text(item, "/text"), 60), provenance(item), text(item, "/createdAt")])
            .collect();
        table(&["id", "text", "from", "created"], rows)?;
        match answer["nextCursor"].as_str() {
            Some(cursor) => line(&format!("\nmore: --cursor {cursor}")),
            None if answer["truncated"] == true => line("\nthere may be more that this provider cannot list"),
            None => Ok(()),
        }
    })
}

pub(super) async fn get(args: GetArgs) -> Result<(), CliError> {
    let backend = Backend::open(&args.scope.company.host).await?;
    let handle = handle(&backend, &args.scope, &args.id).await?;
    let answer = send(&backend, &args.scope, "get", json!({ "handle": handle })).await?;
    if answer["record"].is_null() {
        let detail = format!("there is no record `{}` in this scope", args.id);
        return Err(CliError::Problem { status: 404, detail, operation: Some(text(&answer, "/operationId")) });
    }
    show(&args.scope, &answer, |answer| {
        let record = &answer["record"];
        for (label, value) in [
            ("id", id(record)),
            ("from", provenance(record)),
            ("created", text(record, "/createdAt")),
            ("updated", text(record, "/updatedAt")),
            ("summary", text(record, "/summary")),
            ("metadata", text(record, "/metadata")),
        ] {
            if !value.is_empty() {
                line(&format!("{label:<9} {value}"))?;
            }
        }
        line(&format!("\n{}", text(record, "/text")))
    })
}

pub(super) async fn forget(args: ForgetArgs) -> Result<(), CliError> {
    let backend = Backend::open(&args.scope.company.host).await?;
    let mut handles = Vec::new();
    for id in &args.ids {
        handles.push(handle(&backend, &args.scope, id).await?);
    }
    let answer = send(&backend, &args.scope, "forget", json!({ "handles": handles })).await?;
    show(&args.scope, &answer, |answer| {
        let outcomes = answer["outcomes"].as_array().cloned().unwrap_or_default();
        table(&["id", "effect"], outcomes.iter().map(|outcome| vec![id(outcome), text(outcome, "/effect")]).collect())
    })
}

pub(super) async fn correct(args: CorrectArgs) -> Result<(), CliError> {
    let patch = match (&args.text, &args.instruction) {
        (Some(text), _) => json!({ "record": { "text": input(text)? } }),
        (None, Some(instruction)) => json!({ "instruction": instruction }),
        (None, None) => return Err(CliError::input("text", "give the text as it should be, or --instruction")),
    };
    let backend = Backend::open(&args.scope.company.host).await?;
    let handle = handle(&backend, &args.scope, &args.id).await?;
    let answer = send(&backend, &args.scope, "correct", json!({ "handle": handle, "patch": patch })).await?;
    show(&args.scope, &answer, |answer| line(&format!("corrected {}", text(answer, "/record/providerRecordId"))))
}

fn hit(snippet: &Value) -> Vec<String> {
    let score = snippet["score"].as_f64().map(|score| format!("{score:.2}")).unwrap_or_default();
    vec![score, clip(&text(snippet, "/text"), 80), provenance(snippet), id(snippet)]
}

fn id(value: &Value) -> String {
    text(value, "/handle/providerRecordId")
}

fn written(what: &str, answer: &Value) -> Result<(), CliError> {
    for record in answer["records"].as_array().into_iter().flatten() {
        line(&format!("{what} {}", text(record, "/providerRecordId")))?;
    }
    for job in answer["jobs"].as_array().into_iter().flatten() {
        line(&format!("queued the extraction job {}", text(job, "/providerJobId")))?;
    }
    match answer["held"]["reason"].as_str() {
        Some(reason) => line(&format!("held as delivery {}: {reason}", text(answer, "/held/deliveryId"))),
        None => Ok(()),
    }
}

fn show(scope: &ScopeArgs, answer: &Value, human: impl FnOnce(&Value) -> Result<(), CliError>) -> Result<(), CliError> {
    if scope.company.host.json { output::json(answer) } else { human(answer) }
}

async fn call(scope: &ScopeArgs, operation: &str, body: Value) -> Result<Value, CliError> {
    send(&Backend::open(&scope.company.host).await?, scope, operation, body).await
}

async fn send(backend: &Backend, scope: &ScopeArgs, operation: &str, mut body: Value) -> Result<Value, CliError> {
    body["bindingKey"] = json!(scope.binding);
    body["scope"] = present(json!({
        "companyId": scope.company.company,
        "agentId": scope.agent,
        "projectId": scope.project,
        "issueId": scope.issue,
        "runId": scope.run,
        "subjectId": scope.subject,
        "sessionKey": scope.session,
        "namespace": scope.namespace,
    }));
    let path = format!("/runtime/v1/companies/{}/{operation}", escape(&scope.company.company));
    backend.post(&path, &present(body)).await
}

/// A bare id is one of the provider that answers for this scope.
async fn handle(backend: &Backend, scope: &ScopeArgs, id: &str) -> Result<Value, CliError> {
    if let Some((provider, id)) = id.split_once(':')
        && provider.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && provider != "file"
    {
        return Ok(json!({ "providerKey": provider, "providerRecordId": id }));
    }
    let mut path = format!("/control/v1/companies/{}/resolve?", escape(&scope.company.company));
    for (name, value) in [("agentId", &scope.agent), ("bindingKey", &scope.binding)] {
        if let Some(value) = value {
            path.push_str(&format!("{name}={}&", escape(value)));
        }
    }
    let resolved = backend.get(path.trim_end_matches(['&', '?'])).await?;
    Ok(json!({ "providerKey": resolved["binding"]["providerKey"], "providerRecordId": id }))
}

/// Leaves out what is null.
fn present(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn object(argument: &str, json: Option<&str>) -> Result<Option<Value>, CliError> {
    let Some(json) = json else { return Ok(None) };
    match serde_json::from_str::<Value>(json) {
        Ok(value @ Value::Object(_)) => Ok(Some(value)),
        Ok(_) => Err(CliError::input(argument, "is no JSON object; write it like '{\"team\":\"red\"}'")),
        Err(error) => Err(CliError::input(argument, format!("is no JSON: {error}"))),
    }
}

fn input(text: &str) -> Result<String, CliError> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    std::io::stdin().read_to_string(&mut read).map_err(|error| CliError::input("standard input", error))?;
    Ok(read)
}

fn name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
