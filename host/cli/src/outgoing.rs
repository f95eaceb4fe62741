//! `memhost outgoing`: what left the host.

use clap::{Args, Subcommand};

use super::Result;
use super::args::{CompanyArgs, DaysArgs, WatchArgs};
use super::page::{self, Columns, query, rows};
use super::texts::{cell, moment};
use memhost_types::{OutgoingReport, OutgoingRow};

#[derive(Debug, Subcommand)]
pub(super) enum OutgoingCommand {
    /// Show requests and bytes by origin, binding and provider.
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Only this binding.
    #[arg(long, value_name = "KEY", id = "bindingKey")]
    binding: Option<String>,
    #[command(flatten)]
    days: DaysArgs,
    #[command(flatten)]
    watch: WatchArgs,
}

const OUTGOING: &Columns<OutgoingRow> = &[
    ("origin", |row| cell(&row.origin)),
    ("binding", |row| cell(&row.binding_key)),
    ("provider", |row| cell(&row.provider)),
    ("requests", |row| cell(&row.counts.requests)),
    ("failed", |row| cell(&row.counts.failed)),
    ("refused", |row| cell(&row.counts.refused)),
    ("bytes sent", |row| cell(&row.counts.bytes_sent)),
    ("bytes received", |row| cell(&row.counts.bytes_received)),
    ("last", |row| row.last_at.map(moment).unwrap_or_default()),
];

pub(super) async fn run(command: OutgoingCommand) -> Result<()> {
    let OutgoingCommand::Show(ShowArgs { company, binding, days, watch }) = command;
    let session = company.open().await?;
    let pairs = [
        ("bindingKey", binding.as_deref()),
        ("since", days.since.as_deref()),
        ("until", days.until.as_deref()),
    ];
    let path = format!("outgoing?{}", query(&pairs));
    page::watch_list(&session, &watch, async || session.get(&path).await, shown).await
}

fn shown(report: &OutgoingReport) -> String {
    let table = rows(&report.items, OUTGOING);
    match report.others {
        0 => table,
        others => format!("{table}\n\n{others} more origins are counted together as `other`"),
    }
}
