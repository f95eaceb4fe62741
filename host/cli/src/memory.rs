//! `memhost record` and its short forms.

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::answer::Answer;
use super::args::{Paging, ScopeArgs, WatchArgs};
use super::argument::{self, object, one_of, without_nulls};
use super::page::{self, Asked};
use super::session::Session;
use super::{CliError, Result};
use memhost_http::ProblemCode;
use memhost_http::api::BriefResolved;
use memhost_types::{ForgetEffect, ForgetResponse, GetResponse, SourceKind, Visibility};

mod lines;
pub(super) mod shown;

fn source_kinds() -> PossibleValuesParser {
    one_of(&SourceKind::ALL, SourceKind::as_str)
}

/// Commands for records. Most have a short form: `note`, `search`, `forget`, …
#[derive(Debug, Subcommand)]
pub(super) enum RecordCommand {
    /// List records.
    List(ListArgs),
    /// Show a record.
    Show(GetArgs),
    /// Create a record.
    Create(NoteArgs),
    /// Correct a record.
    Update(CorrectArgs),
    /// Forget records.
    Delete(ForgetArgs),
    /// Search records.
    Search(SearchArgs),
    /// Capture text and let the provider extract records.
    Capture(CaptureArgs),
    /// Export all records of a binding as JSON lines.
    Export(lines::ExportArgs),
    /// Import an export of the same provider; records that exist stay as they are.
    Import(lines::ImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct CaptureArgs {
    /// Text to capture; `-` reads standard input.
    #[arg(id = "payload.text", value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Kind of source.
    #[arg(
        long, value_parser = source_kinds(), default_value = "manual_note", id = "source.kind",
        value_name = "SOURCE_KIND"
    )]
    source_kind: String,
    /// ID of the source comment.
    #[arg(long, value_name = "ID", id = "source.commentId")]
    comment_id: Option<String>,
    /// Key of the source document.
    #[arg(long, value_name = "KEY", id = "source.documentKey")]
    document_key: Option<String>,
    /// Reference to a source outside Paperclip.
    #[arg(long, value_name = "REF", id = "source.externalRef")]
    external_ref: Option<String>,
    /// Let the provider extract what to keep, or store the text as one record.
    #[arg(
        long, value_parser = ["capture_residue", "capture_record"],
        default_value = "capture_residue"
    )]
    mode: String,
    /// Who finds it: everybody in the company, the agent, or the person of --subject [default: the
    /// binding's policy].
    #[arg(long, value_parser = one_of(Visibility::ALL, Visibility::as_str))]
    visibility: Option<String>,
    /// Metadata, a JSON object.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct NoteArgs {
    /// Text of the record; `-` reads standard input.
    #[arg(id = "records.text", value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// ID of the record to create or replace.
    #[arg(long, value_name = "ID", id = "records.id")]
    id: Option<String>,
    /// Summary of the record.
    #[arg(long, id = "records.summary", value_name = "SUMMARY")]
    summary: Option<String>,
    /// Who finds it: everybody in the company, the agent, or the person of --subject [default: the
    /// binding's policy].
    #[arg(long, value_parser = one_of(Visibility::ALL, Visibility::as_str))]
    visibility: Option<String>,
    /// Metadata, a JSON object.
    #[arg(long, value_name = "JSON", id = "records.metadata")]
    metadata: Option<String>,
}

/// Which records to answer, by what the host knows of them.
#[derive(Debug, Args)]
struct OnlyArgs {
    /// Only records of this kind of source.
    #[arg(
        long, value_parser = source_kinds(), help_heading = "Filter", id = "filter.sourceKind",
        value_name = "FROM_KIND"
    )]
    from_kind: Option<String>,
    /// Only records of this issue.
    #[arg(long, value_name = "ID", help_heading = "Filter", id = "filter.issueId")]
    from_issue: Option<String>,
    /// Only records of this run.
    #[arg(long, value_name = "ID", help_heading = "Filter", id = "filter.runId")]
    from_run: Option<String>,
    /// Only records of this project.
    #[arg(long, value_name = "ID", help_heading = "Filter", id = "filter.projectId")]
    from_project: Option<String>,
    /// Only records that this agent wrote.
    #[arg(long, value_name = "ID", help_heading = "Filter", id = "filter.agentId")]
    from_agent: Option<String>,
    /// Only records made at this time or later.
    #[arg(
        long, value_name = "TIME", value_parser = argument::time, help_heading = "Filter",
        id = "filter.since"
    )]
    since: Option<String>,
    /// Only records made before this time.
    #[arg(
        long, value_name = "TIME", value_parser = argument::time, help_heading = "Filter",
        id = "filter.until"
    )]
    until: Option<String>,
    /// Only records that contain this text.
    #[arg(long, value_name = "TEXT", help_heading = "Filter", id = "filter.text")]
    containing: Option<String>,
}

impl OnlyArgs {
    fn filter(&self) -> Value {
        without_nulls(json!({
            "sourceKind": self.from_kind,
            "issueId": self.from_issue,
            "runId": self.from_run,
            "projectId": self.from_project,
            "agentId": self.from_agent,
            "since": self.since,
            "until": self.until,
            "text": self.containing,
        }))
    }
}

#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// Search query; `-` reads standard input.
    query: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Maximum number of results.
    #[arg(long, short = 'k', default_value_t = 10)]
    top_k: u32,
    /// Filter by metadata, a JSON object.
    #[arg(long, value_name = "JSON", id = "metadataFilter")]
    filter: Option<String>,
    #[command(flatten)]
    only: OnlyArgs,
    /// Purpose of the search.
    #[arg(long, value_parser = ["agent_preamble", "answer", "browse"], default_value = "answer")]
    intent: String,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    only: OnlyArgs,
    /// Filter by metadata, a JSON object.
    #[arg(long, value_name = "JSON", id = "metadataFilter")]
    filter: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// Record ID, or PROVIDER:ID.
    #[arg(id = "handle.providerRecordId", value_name = "ID")]
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    watch: WatchArgs,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["ids", "whole_scope"])))]
pub(super) struct ForgetArgs {
    /// Record IDs, or PROVIDER:ID.
    ids: Vec<String>,
    /// Forget everything that was written in the scope, at every binding or at that of --binding.
    #[arg(long)]
    whole_scope: bool,
    /// Do it without asking.
    #[arg(long, requires = "whole_scope")]
    yes: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct CorrectArgs {
    /// Record ID, or PROVIDER:ID.
    #[arg(id = "handle.providerRecordId", value_name = "ID")]
    id: String,
    /// Corrected text; `-` reads standard input.
    #[arg(id = "patch.record.text", value_name = "TEXT")]
    text: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Instruction for providers that correct by instruction, instead of a text.
    #[arg(
        long,
        conflicts_with = "patch.record.text",
        id = "patch.instruction",
        value_name = "INSTRUCTION"
    )]
    instruction: Option<String>,
}

pub(super) async fn run(command: RecordCommand) -> Result<()> {
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

pub(super) async fn capture(args: CaptureArgs) -> Result<()> {
    let scope = &args.scope;
    let (session, made) = scope.open_or_make().await?;
    let source = without_nulls(json!({
        "kind": args.source_kind,
        "companyId": session.company,
        "issueId": scope.issue,
        "runId": scope.run,
        "commentId": args.comment_id,
        "documentKey": args.document_key,
        "externalRef": args.external_ref,
    }));
    let body = json!({
        "source": source,
        "payload": { "text": argument::text(&args.text)? },
        "mode": args.mode,
        "metadata": object("--metadata", args.metadata.as_deref())?,
        "visibility": args.visibility,
    });
    let answer = session.send(scope, "capture", body).await?;
    made.say()?;
    session.show(&answer, shown::captured)
}

pub(super) async fn note(args: NoteArgs) -> Result<()> {
    let (session, made) = args.scope.open_or_make().await?;
    let record = without_nulls(json!({
        "id": args.id,
        "text": argument::text(&args.text)?,
        "summary": args.summary,
        "metadata": object("--metadata", args.metadata.as_deref())?,
    }));
    let source = without_nulls(json!({
        "kind": "manual_note",
        "companyId": session.company,
        "issueId": args.scope.issue,
        "runId": args.scope.run,
    }));
    let body = json!({ "records": [record], "source": source, "visibility": args.visibility });
    let answer = session.send(&args.scope, "records", body).await?;
    made.say()?;
    session.show(&answer, |answer| shown::upserted("noted", answer))
}

pub(super) async fn search(args: SearchArgs) -> Result<()> {
    let query = argument::text(&args.query)?;
    if query.trim().is_empty() {
        return Err(CliError::input("QUERY", "is empty; give a text"));
    }
    let session = args.scope.open().await?;
    let body = json!({
        "query": query,
        "topK": args.top_k,
        "intent": args.intent,
        "metadataFilter": object("--filter", args.filter.as_deref())?,
        "filter": args.only.filter(),
    });
    let answer = session.send(&args.scope, "query", body).await?;
    session.show_list(&answer, shown::hits)
}

pub(super) async fn list(args: ListArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let filter = object("--filter", args.filter.as_deref())?;
    let only = args.only.filter();
    let fetch = async |asked: Asked| {
        let body = json!({
            "limit": asked.limit, "cursor": asked.cursor, "metadataFilter": filter, "filter": only,
        });
        session.send(&args.scope, "list", body).await
    };
    page::pages(session.format, &args.paging, fetch, shown::records).await
}

pub(super) async fn get(args: GetArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let handle = handle(&session, &args.scope, &args.id).await?;
    let fetch = async || {
        let answer: Answer<GetResponse> =
            session.send(&args.scope, "get", json!({ "handle": handle })).await?;
        match answer.read()? {
            GetResponse { record: None, operation_id, .. } => {
                Err(no_record(&args.id, Some(operation_id.to_string())))
            }
            _ => Ok(answer),
        }
    };
    page::watch(&session, &args.watch, fetch, shown::record).await
}

pub(super) async fn forget(args: ForgetArgs) -> Result<()> {
    let session = args.scope.open().await?;
    if args.whole_scope {
        return forget_scope(&session, &args).await;
    }
    let mut handles = Vec::new();
    for id in &args.ids {
        handles.push(handle(&session, &args.scope, id).await?);
    }
    let answer = session.send(&args.scope, "forget", json!({ "handles": handles })).await?;
    session.show_list(&answer, shown::forgotten)?;
    let ForgetResponse { outcomes, operation_id, .. } = answer.read()?;
    let missing = outcomes.iter().filter(|outcome| outcome.effect == ForgetEffect::NotFound);
    let missing: Vec<&str> =
        missing.map(|outcome| outcome.handle.provider_record_id.as_str()).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(no_record(&missing.join("`, `"), Some(operation_id.to_string()))),
    }
}

/// Forgets all that was written in a scope. What is left is an error.
async fn forget_scope(session: &Session, args: &ForgetArgs) -> Result<()> {
    let scope = &args.scope;
    let named = [
        ("agent", &session.agent),
        ("project", &scope.project),
        ("issue", &scope.issue),
        ("run", &scope.run),
        ("subject", &scope.subject),
        ("session", &scope.session),
        ("namespace", &scope.namespace),
    ];
    let named: Vec<String> = named
        .iter()
        .filter_map(|(what, value)| Some(format!("{what} {}", value.as_deref()?)))
        .collect();
    if named.is_empty() {
        let message = "needs a scope: give --agent, --project, --issue, --run, --subject, \
                       --session or --namespace; `memhost company delete` erases a whole company";
        return Err(CliError::input("--whole-scope", message));
    }
    let place = match &scope.binding {
        Some(key) => format!("at the binding {key}"),
        None => "at every binding".to_owned(),
    };
    let (company, named) = (&session.company, named.join(", "));
    let question = format!(
        "Forget everything that was written for {named} in the company {company}, {place}? It \
         cannot be undone."
    );
    argument::confirm(args.yes, &question)?;
    let answer = session.send(scope, "scope/forget", json!({})).await?;
    session.show_list(&answer, shown::forgotten_scope)?;
    match answer.read()?.is_complete {
        true => Ok(()),
        false => Err(CliError::Failed(
            "not everything is forgotten; mend what the errors above say, and type the same again"
                .to_owned(),
        )),
    }
}

/// There is no such record in this scope.
fn no_record(id: &str, operation: Option<String>) -> CliError {
    let detail = format!("no record `{id}` in this scope; list records with `memhost record list`");
    CliError::Problem { status: 404, detail, operation, code: None }
}

pub(super) async fn correct(args: CorrectArgs) -> Result<()> {
    let patch = match (&args.text, &args.instruction) {
        (Some(text), _) => json!({ "record": { "text": argument::text(text)? } }),
        (None, Some(instruction)) => json!({ "instruction": instruction }),
        (None, None) => {
            return Err(CliError::input("text", "give the corrected text or --instruction"));
        }
    };
    let session = args.scope.open().await?;
    let handle = handle(&session, &args.scope, &args.id).await?;
    let answer =
        session.send(&args.scope, "correct", json!({ "handle": handle, "patch": patch })).await;
    let answer = answer.map_err(|error| match error {
        // The host or the provider says that there is no such record. Other commands say how to
        // list records; so does this.
        CliError::Problem { status: 404, operation, code: Some(ProblemCode::NotFound), .. } => {
            no_record(&args.id, operation)
        }
        error => error,
    })?;
    session.show(&answer, shown::corrected_as)
}

/// An ID without a provider is of the provider that the scope resolves to.
async fn handle(session: &Session, scope: &ScopeArgs, id: &str) -> Result<Value> {
    if let Some((provider, id)) = id.split_once(':')
        && provider.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && provider != "file"
    {
        return Ok(json!({ "providerKey": provider, "providerRecordId": id }));
    }
    let query = page::query(&[
        ("agentId", session.agent.as_deref()),
        ("bindingKey", scope.binding.as_deref()),
    ]);
    let resolved: Answer<BriefResolved> = session.get(&format!("resolve?{query}")).await?;
    let provider = resolved.read()?.binding.provider_key;
    Ok(json!({ "providerKey": provider, "providerRecordId": id }))
}
