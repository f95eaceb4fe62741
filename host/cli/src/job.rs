//! Extraction jobs, and what waits for a person.

use clap::{Args, Subcommand};
use serde_json::json;

use super::CliError;
use super::args::{OneArgs, PageArgs, ShowArgs};
use super::output::details;
use super::page::{self, Columns};

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// List jobs, newest first.
    List(ListArgs),
    /// Show a job.
    Show(ShowArgs),
    /// Cancel a job that has not finished.
    Cancel(OneArgs),
    /// Retry a failed or cancelled job.
    Retry(OneArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) page: PageArgs,
    /// Filter by status: queued, running, succeeded, failed or cancelled.
    #[arg(long)]
    status: Option<String>,
    /// Filter by binding key.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Filter by the kind of hook that caused it.
    #[arg(long, value_name = "KIND")]
    hook_kind: Option<String>,
    /// Filter by the kind of source.
    #[arg(long, value_name = "KIND")]
    source_kind: Option<String>,
    /// Only items before this time, RFC 3339.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ReviewCommand {
    /// List review items, newest first.
    List(ReviewListArgs),
    /// Show a review item.
    Show(ShowArgs),
    /// Approve an item with a changed text.
    #[command(alias = "edit")]
    Update {
        #[command(flatten)]
        one: OneArgs,
        /// The corrected text.
        #[arg(long)]
        text: String,
    },
    /// Approve an item, so that searches find it.
    Approve(OneArgs),
    /// Reject an item; the provider forgets it.
    Reject(OneArgs),
}

#[derive(Debug, Args)]
pub(super) struct ReviewListArgs {
    #[command(flatten)]
    pub(super) page: PageArgs,
    /// Filter by status: pending, approved or rejected.
    #[arg(long, default_value = "pending")]
    status: String,
    /// Filter by binding key.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
}

const JOBS: &Columns = &[
    ("submitted", "/submittedAt"),
    ("binding", "/bindingKey"),
    ("status", "/status"),
    ("attempts", "/attempts"),
    ("records", "/recordCount"),
    ("hook", "/hookKind"),
    ("due", "/dueAt"),
    ("error", "/error"),
    ("id", "/id"),
];

const REVIEWS: &Columns = &[
    ("created", "/createdAt"),
    ("binding", "/bindingKey"),
    ("kind", "/kind"),
    ("confidence", "/confidence"),
    ("pii", "/piiRisk"),
    ("status", "/status"),
    ("reason", "/reasons/0"),
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
        ReviewCommand::Show(args) => show_review(&args).await,
        ReviewCommand::Approve(one) => decide(one, json!({ "decision": "approve" })).await,
        ReviewCommand::Reject(one) => decide(one, json!({ "decision": "reject" })).await,
        ReviewCommand::Update { one, text } => decide(one, json!({ "decision": "edit", "text": text })).await,
    }
}

/// A host gives reviews as lists only.
async fn show_review(args: &ShowArgs) -> Result<(), CliError> {
    let session = args.one.company.open().await?;
    let look = async || {
        for status in ["pending", "approved", "rejected"] {
            let mut cursor = None;
            loop {
                let pairs = [("status", Some(status)), ("limit", Some("1000")), ("cursor", cursor.as_deref())];
                let answer = session.get(&format!("reviews?{}", page::query(&pairs))).await?;
                if let Some(found) = page::find(&answer, "items", "/id", &args.one.id) {
                    return session.format.render(&found, "", details);
                }
                cursor = answer["nextCursor"].as_str().map(str::to_owned);
                if cursor.is_none() {
                    break;
                }
            }
        }
        Err(page::missing("review", &args.one.id))
    };
    page::watched(&args.watch, look).await
}
