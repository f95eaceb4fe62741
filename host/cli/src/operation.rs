//! The operation and activity logs.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Result;
use super::args::{OneArgs, PageArgs, ShowArgs, filters};
use super::argument::{one_of, time};
use super::difference::differences;
use super::output::table;
use super::page::{self, Asked, Columns, query};
use super::texts::{cell, clip, escape, micros, moment, text};
use memhost_types::{
    Activity, ActivityPage, ExplainedOperation, Operation, OperationKind, OperationPage, Outcome,
    ReturnedRecord, SourceKind,
};

const RETURNED: &Columns<ReturnedRecord> = &[
    ("rank", |one| cell(&one.rank)),
    ("record", |one| text(&one.handle.provider_record_id)),
    ("state", |one| cell(&one.state)),
    ("left out", |one| if one.is_omitted { "token budget" } else { "" }.to_owned()),
    ("changed by", |one| cell(&one.changed_by)),
];

#[derive(Debug, Subcommand)]
pub(super) enum OperationCommand {
    /// List operations, newest first.
    List(Box<ListArgs>),
    /// Show all fields of an operation.
    Show(Box<ShowArgs>),
    /// Explain what a query or a list returned, and what became of each record.
    Explain(Box<ExplainArgs>),
}

#[derive(Debug, Subcommand)]
pub(super) enum ActivityCommand {
    /// List changes, newest first.
    List(PageArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    filters: OperationFilters,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Ask the provider, too, how it answers the same request now.
    #[arg(long)]
    again: bool,
}

filters! { OperationFilters {
    agent<"ID"> = "agentId", "Filter by agent ID.";
    issue<"ID"> = "issueId", "Filter by issue ID.";
    project<"ID"> = "projectId", "Filter by project ID.";
    run<"ID"> = "runId", "Filter by run ID.";
    session<"KEY"> = "sessionKey", "Filter by session ID.";
    hook_kind<"KIND"> = "hookKind", "Filter by the kind of hook that caused it.";
    source_kind<"KIND"> [one_of(&SourceKind::ALL, SourceKind::as_str)] = "sourceKind", "Filter by \
        the kind of source.";
    kind<"KIND"> [one_of(OperationKind::ALL, OperationKind::as_str)] = "kind", "Filter by kind.";
    outcome<"OUTCOME"> [one_of(Outcome::ALL, Outcome::as_str)] = "outcome", "Filter by outcome.";
    binding<"KEY"> = "bindingKey", "Filter by binding key.";
    binding_id<"ID"> = "bindingId", "Filter by binding ID: another binding may have had the key \
                                     before.";
    record<"ID"> = "providerRecordId", "Filter by record ID: operations that wrote, returned, \
                                        forgot or cite the record.";
    provider<"KEY"> = "providerKey", "Filter by provider key; with --record, the record's \
                                      provider.";
    since<"TIME"> [time] = "since", "Only items at or after this time, RFC 3339.";
    until<"TIME"> [time] = "until", "Only items before this time, RFC 3339.";
} }

pub(super) async fn run(command: OperationCommand) -> Result<()> {
    match command {
        OperationCommand::List(args) => {
            page::list_as(&args.page, "operations", &args.filters.parameters(), rows).await
        }
        OperationCommand::Show(args) => {
            page::show(&args.one.company, &args.watch, "operations", &args.one.id).await
        }
        OperationCommand::Explain(args) => {
            let ExplainArgs { one, again } = *args;
            let session = one.company.open().await?;
            let path = format!("operations/{}/explanation?again={again}", escape(&one.id));
            session.show(&session.get(&path).await?, explained)
        }
    }
}

fn explained(found: &ExplainedOperation) -> String {
    let mut shown = page::rows(&found.records, RETURNED);
    if !found.is_complete {
        shown.push_str("\nThe log kept these handles only.\n");
    }
    if let Some(again) = &found.again {
        let hits = again.hits.iter().enumerate().map(|(index, hit)| {
            let parts = hit.contributions.iter();
            let parts: Vec<_> =
                parts.map(|part| format!("{} {:.3}", part.name, part.value)).collect();
            vec![(index + 1).to_string(), text(&hit.handle.provider_record_id), parts.join(", ")]
        });
        let now = table(&["rank", "record", "contributions"], hits.collect());
        shown.push_str(&format!("\nAsked again now:\n{now}"));
    }
    if let Some(why) = &found.not_again {
        shown.push_str(&format!("\nNot asked again: {why}\n"));
    }
    shown
}

pub(super) async fn activity(command: ActivityCommand) -> Result<()> {
    let ActivityCommand::List(page) = command;
    let session = page.company.open().await?;
    // The host chooses the length of these pages; `pages` cuts them to the requested size.
    let fetch = async |asked: Asked| {
        session.get(&format!("activity?{}", query(&[("cursor", asked.cursor.as_deref())]))).await
    };
    let human = |page: &ActivityPage| page::rows(&page.items, ACTIVITY);
    page::pages(session.format, &page.paging, fetch, human).await
}

const ACTIVITY: &Columns<Activity> = &[
    ("time", |entry| moment(entry.at)),
    ("actor", |entry| entry.principal.to_string()),
    ("action", |entry| text(&entry.action).replace('_', " ")),
    ("object", |entry| entry.subject.clone()),
    ("change", |entry| changes(entry.before.as_ref(), entry.after.as_ref())),
];

/// The changed fields, without those that every change sets.
fn changes(before: Option<&Value>, after: Option<&Value>) -> String {
    let (before, after) = (before.unwrap_or(&Value::Null), after.unwrap_or(&Value::Null));
    // The table names an object that was created or deleted, so its fields are not listed.
    if before.is_object() != after.is_object() {
        return String::new();
    }
    let mut found = Vec::new();
    differences("", before, after, &mut found);
    let shown = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        value => clip(&text(value), 60),
    };
    let is_set =
        |path: &str| matches!(path.rsplit('.').next(), Some("revision" | "updatedAt" | "digest"));
    let told = found.iter().filter(|(path, ..)| !is_set(path));
    let told = told.map(|(path, before, after)| {
        let change = format!("{} → {}", shown(before), shown(after));
        if path.is_empty() { change } else { format!("{path}: {change}") }
    });
    told.collect::<Vec<_>>().join("; ")
}

const OPERATIONS: &Columns<Operation> = &[
    ("started", |operation| moment(operation.started_at)),
    ("by", |operation| operation.principal.to_string()),
    ("kind", |operation| text(&operation.kind)),
    ("outcome", |operation| text(&operation.outcome)),
    ("binding", |operation| text(&operation.binding_key)),
    // Only refusals stand for several; of one operation there is nothing to count.
    ("count", |operation| text(&Some(operation.count).filter(|count| *count > 1))),
    ("records", |operation| text(&operation.record_count)),
    ("duration", |operation| micros(operation.latency_us)),
    ("source", |operation| text(&operation.source.as_ref().map(|source| source.kind))),
    ("id", |operation| text(&operation.id)),
];

/// A page as a table.
pub(super) fn rows(page: &OperationPage) -> String {
    page::rows(&page.items, OPERATIONS)
}
