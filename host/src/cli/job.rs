//! Extraction jobs, and what waits for a person.

use clap::{Args, Subcommand};
use serde_json::json;

use super::CliError;
use super::page::{self, Columns, OneArgs, PageArgs};

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// Show jobs, newest first.
    List(ListArgs),
    /// Show one job.
    Show(OneArgs),
    /// Cancel a job that has not ended.
    Cancel(OneArgs),
    /// Run a job again that failed or was cancelled.
    Retry(OneArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Only those that are queued, running, succeeded, failed or cancelled.
    #[arg(long)]
    status: Option<String>,
    /// Only of this binding.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Only those that this kind of hook caused.
    #[arg(long, value_name = "KIND")]
    hook_kind: Option<String>,
    /// Only from this kind of source.
    #[arg(long, value_name = "KIND")]
    source_kind: Option<String>,
    /// Only older than this moment, RFC 3339.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ReviewCommand {
    /// Show what waits for a person, newest first.
    List(ReviewListArgs),
    /// Let something count.
    Approve(OneArgs),
    /// Keep something from counting; the provider forgets it.
    Reject(OneArgs),
    /// Let something count in another form.
    Edit {
        #[command(flatten)]
        one: OneArgs,
        /// The text as it should be.
        #[arg(long)]
        text: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct ReviewListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Those that are pending, approved or rejected.
    #[arg(long, default_value = "pending")]
    status: String,
    /// Only of this binding.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
}

const JOBS: &Columns = &[
    ("submitted", "/submittedAt"),
    ("binding", "/bindingKey"),
    ("status", "/status"),
    ("tries", "/attempts"),
    ("records", "/recordCount"),
    ("hook", "/hookKind"),
    ("next", "/dueAt"),
    ("why", "/error"),
    ("id", "/id"),
];

const REVIEWS: &Columns = &[
    ("since", "/createdAt"),
    ("binding", "/bindingKey"),
    ("kind", "/kind"),
    ("confidence", "/confidence"),
    ("pii", "/piiRisk"),
    ("status", "/status"),
    ("why", "/reasons/0"),
    ("text", "/text"),
    ("id", "/id"),
];

pub(super) async fn run(command: JobCommand) -> Result<(), CliError> {
    match command {
        JobCommand::List(args) => {
            let filters = [
                ("status", args.status.as_deref()),
                ("bindingKey", args.binding.as_deref()),
                ("hookKind", args.hook_kind.as_deref()),
                ("sourceKind", args.source_kind.as_deref()),
                ("until", args.until.as_deref()),
            ];
            page::list(&args.page, "jobs", &filters, JOBS).await
        }
        JobCommand::Show(one) => page::show(&one, "jobs").await,
        JobCommand::Cancel(one) => page::act(&one, "jobs", "cancel", &json!({}), JOBS).await,
        JobCommand::Retry(one) => page::act(&one, "jobs", "retry", &json!({}), JOBS).await,
    }
}

pub(super) async fn review(command: ReviewCommand) -> Result<(), CliError> {
    let decide = |one: OneArgs, body| async move { page::act(&one, "reviews", "decision", &body, REVIEWS).await };
    match command {
        ReviewCommand::List(args) => {
            let filters = [("status", Some(args.status.as_str())), ("bindingKey", args.binding.as_deref())];
            page::list(&args.page, "reviews", &filters, REVIEWS).await
        }
        ReviewCommand::Approve(one) => decide(one, json!({ "decision": "approve" })).await,
        ReviewCommand::Reject(one) => decide(one, json!({ "decision": "reject" })).await,
        ReviewCommand::Edit { one, text } => decide(one, json!({ "decision": "edit", "text": text })).await,
    }
}
