//! `memhost job` and `review`: extraction jobs, and records that wait for review.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Result;
use super::answer::Answer;
use super::args::{CompanyArgs, OneArgs, PageArgs, ShowArgs, filters};
use super::argument::{one_of, time};
use super::page::{self, Columns};
use super::texts::{cell, moment, text};
use memhost_core::Page;
use memhost_http::api::JobView;
use memhost_types::{JobStatus, Pages, ReviewItem, ReviewStatus, SourceKind};

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// List jobs, newest first.
    List {
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        filters: JobFilters,
    },
    /// Show a job.
    Show(ShowArgs),
    /// Cancel a job that has not finished.
    Cancel(OneArgs),
    /// Retry a failed or cancelled job, or all that match.
    Retry {
        /// The ID [default: every job that the filters match].
        #[arg(id = "jobId", value_name = "ID")]
        id: Option<String>,
        /// All of the company, without a filter.
        #[arg(long, conflicts_with = "jobId")]
        every: bool,
        #[command(flatten)]
        filters: JobFilters,
        #[command(flatten)]
        company: CompanyArgs,
    },
}

filters! { JobFilters {
    status<"STATUS"> [one_of(JobStatus::ALL, JobStatus::as_str)] = "status", "Filter by status.";
    binding<"KEY"> = "bindingKey", "Filter by binding key.";
    hook_kind<"KIND"> = "hookKind", "Filter by the kind of hook that caused it.";
    source_kind<"KIND"> [one_of(&SourceKind::ALL, SourceKind::as_str)] = "sourceKind", "Filter by \
        the kind of source.";
    agent<"ID"> = "agentId", "Filter by agent ID.";
    issue<"ID"> = "issueId", "Filter by issue ID.";
    run<"ID"> = "runId", "Filter by run ID.";
    since<"TIME"> [time] = "since", "Only items at or after this time, RFC 3339.";
    until<"TIME"> [time] = "until", "Only items before this time, RFC 3339.";
} }

#[derive(Debug, Subcommand)]
pub(super) enum ReviewCommand {
    /// List review items, newest first.
    List(ReviewListArgs),
    /// Show a review item.
    Show(ShowArgs),
    /// Approve an item with a changed text.
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
    /// Filter by status.
    #[arg(
        long, default_value = "pending",
        value_parser = one_of(ReviewStatus::ALL, ReviewStatus::as_str)
    )]
    status: String,
    /// Filter by binding key.
    #[arg(long, value_name = "KEY", id = "bindingKey")]
    binding: Option<String>,
}

const JOBS: &Columns<JobView> = &[
    ("submitted", |view| moment(view.job.submitted_at)),
    ("binding", |view| cell(&view.job.binding_key)),
    ("status", |view| cell(&view.job.status)),
    ("attempts", |view| cell(&view.job.attempts)),
    ("records", |view| cell(&view.job.record_count)),
    ("hook", |view| cell(&view.job.hook_kind)),
    ("due", |view| moment(view.job.due_at)),
    ("error", |view| cell(&view.job.error)),
    ("id", |view| cell(&view.job.id)),
];

const REVIEWS: &Columns<ReviewItem> = &[
    ("created", |item| moment(item.created_at)),
    ("binding", |item| cell(&item.binding_key)),
    ("kind", |item| cell(&item.kind)),
    ("confidence", |item| cell(&item.confidence)),
    ("pii", |item| cell(&item.pii_risk)),
    ("status", |item| cell(&item.status)),
    ("reason", |item| cell(&item.reasons.first())),
    ("text", |item| cell(&item.text)),
    ("id", |item| cell(&item.id)),
];

pub(super) async fn run(command: JobCommand) -> Result<()> {
    match command {
        JobCommand::List { page, filters } => {
            page::list(&page, "jobs", &filters.parameters(), JOBS).await
        }
        JobCommand::Show(args) => {
            page::show(&args.one.company, &args.watch, "jobs", &args.one.id).await
        }
        JobCommand::Cancel(one) => page::act(&one, "jobs", "cancel", &json!({}), JOBS).await,
        JobCommand::Retry { id: Some(id), company, .. } => {
            page::act(&OneArgs { id, company }, "jobs", "retry", &json!({}), JOBS).await
        }
        JobCommand::Retry { every, filters, company, .. } => {
            page::act_on_all(
                &company,
                every,
                "jobs",
                "retry",
                &filters.parameters(),
                "queued again",
            )
            .await
        }
    }
}

pub(super) async fn review(command: ReviewCommand) -> Result<()> {
    let decide = |one: OneArgs, body| async move {
        page::act(&one, "reviews", "decision", &body, REVIEWS).await
    };
    match command {
        ReviewCommand::List(args) => {
            let filters =
                [("status", Some(args.status.as_str())), ("bindingKey", args.binding.as_deref())];
            page::list(&args.page, "reviews", &filters, REVIEWS).await
        }
        ReviewCommand::Show(args) => show_review(&args).await,
        ReviewCommand::Approve(one) => decide(one, json!({ "decision": "approve" })).await,
        ReviewCommand::Reject(one) => decide(one, json!({ "decision": "reject" })).await,
        ReviewCommand::Update { one, text } => {
            decide(one, json!({ "decision": "edit", "text": text })).await
        }
    }
}

/// The host returns review items only in lists.
async fn show_review(args: &ShowArgs) -> Result<()> {
    let session = args.one.company.open().await?;
    let fetch = async || {
        for status in ReviewStatus::ALL {
            let mut pages = Pages::default();
            while let Some(cursor) = pages.next() {
                let pairs = [
                    ("status", Some(status.as_str())),
                    ("limit", Some("1000")),
                    ("cursor", cursor.as_deref()),
                ];
                let path = format!("reviews?{}", page::query(&pairs));
                let answer: Answer<Page<ReviewItem>> = session.get(&path).await?;
                pages.go_on(answer.read()?.next_cursor);
                if let Some(item) = answer.find(|item| text(&item.id) == args.one.id)? {
                    return Ok(item);
                }
            }
        }
        Err(page::missing("review", &args.one.id))
    };
    page::watch_details(&session, &args.watch, fetch).await
}
