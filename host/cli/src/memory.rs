//! The operations on memory.

use std::io::Read;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::CliError;
use super::args::{Paging, ScopeArgs, WatchArgs};
use super::output::text;
use super::page::{self, Asked};
use super::session::Session;

mod lines;
pub(super) mod shown;

/// Records, in the grammar of every other thing. Most of these have a short form: `note`, `search`, `forget`, …
#[derive(Debug, Subcommand)]
pub(super) enum RecordCommand {
    /// List all records, page by page.
    List(ListArgs),
    /// Show one record.
    #[command(alias = "get")]
    Show(GetArgs),
    /// Write one record as it is.
    #[command(alias = "note")]
    Create(NoteArgs),
    /// Put a record right.
    #[command(alias = "correct")]
    Update(CorrectArgs),
    /// Make records unreachable.
    #[command(alias = "forget")]
    Delete(ForgetArgs),
    /// Find what fits a question.
    Search(SearchArgs),
    /// Take in something that happened.
    Capture(CaptureArgs),
    /// Write everything that a binding holds as JSON Lines of its provider.
    Export(lines::ExportArgs),
    /// Take an export of the same provider in; what is there already stays as it is.
    Import(lines::ImportArgs),
}

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
    #[command(flatten)]
    paging: Paging,
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
    #[command(flatten)]
    watch: WatchArgs,
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

pub(super) async fn run(command: RecordCommand) -> Result<(), CliError> {
    match command {
        RecordCommand::List(args) => list(args).await,
        RecordCommand::Show(args) => get(args).await,
        RecordCommand::Create(args) => note(args).await,
        RecordCommand::Update(args) => correct(args).await,
        RecordCommand::Delete(args) => forget(args).await,
        RecordCommand::Search(args) => search(args).await,
        RecordCommand::Capture(args) => capture(args).await,
        RecordCommand::Export(args) => lines::export(args).await,
        RecordCommand::Import(args) => lines::import(args).await,
    }
}

pub(super) async fn capture(args: CaptureArgs) -> Result<(), CliError> {
    let (scope, session) = (&args.scope, args.scope.open().await?);
    let source = present(json!({
        "kind": name(&args.source_kind),
        "companyId": session.company,
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
    let answer = send(&session, scope, "capture", body).await?;
    session.show(&answer, "", |answer| shown::written("captured", answer))
}

pub(super) async fn note(args: NoteArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let record = present(json!({
        "id": args.id,
        "text": input(&args.text)?,
        "summary": args.summary,
        "metadata": object("--metadata", args.metadata.as_deref())?,
    }));
    let answer = send(&session, &args.scope, "records", json!({ "records": [record] })).await?;
    session.show(&answer, "", |answer| shown::written("noted", answer))
}

pub(super) async fn search(args: SearchArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let body = json!({
        "query": input(&args.query)?,
        "topK": args.top_k,
        "intent": name(&args.intent),
        "metadataFilter": object("--filter", args.filter.as_deref())?,
    });
    let answer = send(&session, &args.scope, "query", body).await?;
    session.show(&answer, "snippets", shown::hits)
}

pub(super) async fn list(args: ListArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let filter = object("--filter", args.filter.as_deref())?;
    let fetch = async |asked: Asked| {
        let body = json!({ "limit": asked.limit, "cursor": asked.cursor, "metadataFilter": filter });
        send(&session, &args.scope, "list", body).await
    };
    page::pages(session.format, &args.paging, "items", fetch, shown::records).await
}

pub(super) async fn get(args: GetArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let handle = handle(&session, &args.scope, &args.id).await?;
    let look = async || {
        let answer = send(&session, &args.scope, "get", json!({ "handle": handle })).await?;
        if answer["record"].is_null() {
            let detail = format!("there is no record `{}` in this scope; `memhost record list` shows all", args.id);
            let operation = answer["operationId"].as_str().map(str::to_owned);
            return Err(CliError::Problem { status: 404, detail, operation });
        }
        session.format.render(&answer, "", shown::record)
    };
    page::watched(&args.watch, look).await
}

pub(super) async fn forget(args: ForgetArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let mut handles = Vec::new();
    for id in &args.ids {
        handles.push(handle(&session, &args.scope, id).await?);
    }
    let answer = send(&session, &args.scope, "forget", json!({ "handles": handles })).await?;
    session.show(&answer, "outcomes", shown::forgotten)
}

pub(super) async fn correct(args: CorrectArgs) -> Result<(), CliError> {
    let patch = match (&args.text, &args.instruction) {
        (Some(text), _) => json!({ "record": { "text": input(text)? } }),
        (None, Some(instruction)) => json!({ "instruction": instruction }),
        (None, None) => return Err(CliError::input("text", "give the text as it should be, or --instruction")),
    };
    let session = args.scope.open().await?;
    let handle = handle(&session, &args.scope, &args.id).await?;
    let answer = send(&session, &args.scope, "correct", json!({ "handle": handle, "patch": patch })).await?;
    session.show(&answer, "", |answer| format!("corrected {}", text(answer, "/record/providerRecordId")))
}

/// Sends a memory operation with the scope that the arguments name.
pub(super) async fn send(
    session: &Session,
    scope: &ScopeArgs,
    operation: &str,
    mut body: Value,
) -> Result<Value, CliError> {
    body["bindingKey"] = json!(scope.binding);
    body["scope"] = present(json!({
        "companyId": session.company,
        "agentId": session.agent,
        "projectId": scope.project,
        "issueId": scope.issue,
        "runId": scope.run,
        "subjectId": scope.subject,
        "sessionKey": scope.session,
        "namespace": scope.namespace,
    }));
    session.host.post(&session.runtime(operation), &present(body)).await
}

/// A bare id is one of the provider that answers for this scope.
async fn handle(session: &Session, scope: &ScopeArgs, id: &str) -> Result<Value, CliError> {
    if let Some((provider, id)) = id.split_once(':')
        && provider.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && provider != "file"
    {
        return Ok(json!({ "providerKey": provider, "providerRecordId": id }));
    }
    let query = page::query(&[("agentId", session.agent.as_deref()), ("bindingKey", scope.binding.as_deref())]);
    let resolved = session.get(&format!("resolve?{query}")).await?;
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

/// What was given, or standard input where that is `-`.
pub(super) fn input(text: &str) -> Result<String, CliError> {
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
