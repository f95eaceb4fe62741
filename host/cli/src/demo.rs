//! `memhost demo`: captures the documents and the history of this repository, asks questions, and
//! forgets a record.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::answer::Answer;
use super::demo_documents::{checkout, commits, sections};
use super::output::line;
use super::texts::{clip, provenance, text};
use super::{Backend, CliError, Result, operation, process, serve, user_files};
use memhost_core::{BindingView, Page, Service, ServiceOptions};
use memhost_http::api::CompanyView;
use memhost_server::{self as server, AdminToken, Endpoint, ServerOptions, Surfaces};
use memhost_types::{
    CaptureResponse, ContextBundle, ForgetResponse, GetResponse, RecordHandle, UpsertResponse,
};

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Exit after the demonstration instead of serving, and remove its temporary directory.
    #[arg(long)]
    once: bool,
    /// Directory for the demo's data [default: a new temporary directory].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Listen address after the demonstration.
    #[arg(long, default_value = "127.0.0.1:7600", value_name = "ADDRESS", value_parser = address)]
    listen: SocketAddr,
    /// Listen on an address that other machines reach, without TLS: for a host behind a proxy that
    /// has TLS.
    #[arg(long)]
    allow_plain_http: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "is no address with a port, such as 127.0.0.1:7600".to_owned())
}

const QUESTIONS: [&str; 3] = [
    "What does the host do with an operation that a crash interrupted?",
    "What may happen to files that somebody edits by hand?",
    "Where does a provider keep what must outlive its instance?",
];
const RUNTIME: &str = "/runtime/v1/companies/demo";
const CONTROL: &str = "/control/v1/companies/demo";

pub(super) async fn run(args: DemoArgs) -> Result<()> {
    if !args.allow_plain_http {
        serve::check_address(&args.listen.into(), Surfaces::All)?;
    }
    let data_dir = args.data_dir.clone().unwrap_or_else(|| {
        std::env::temp_dir()
            .join(format!("memhost-demo-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]))
    });
    let mut options = ServiceOptions::new(&data_dir);
    options.compiled_dir = user_files::compiled_dir();
    options.sandbox.compiler = process::this_program()?;
    let service = Service::open(options).await.map_err(CliError::host)?;
    let host = Backend::of(Arc::clone(&service));
    title("Create a company and its default binding")?;
    bind(&host).await?;
    line(&format!(
        "  company demo, binding default, provider local-markdown\n  data in {}",
        data_dir.display()
    ))?;
    title("Capture documents and history")?;
    capture(&host).await?;
    title("Ask questions; each answer names its source")?;
    for question in QUESTIONS {
        ask(&host, question).await?;
    }
    title("Forget a record")?;
    forget(&host).await?;
    title("Show the operation log")?;
    let operations = host.get(&format!("{CONTROL}/operations?limit=12")).await?;
    line(&operation::rows(&operations.read()?))?;
    if args.once {
        service.control().flush().await.map_err(CliError::host)?;
        if args.data_dir.is_some() {
            return Ok(());
        }
        service.background().shutdown(Duration::from_secs(2)).await;
        drop((host, service));
        // A failure is no failure of the demonstration: the system empties its temporary directory.
        let _ = std::fs::remove_dir_all(&data_dir);
        return Ok(());
    }
    let endpoint =
        Endpoint::bind(&args.listen.into(), Surfaces::All).await.map_err(CliError::host)?;
    let (token, shown) = AdminToken::of_data_dir(&data_dir, true).map_err(CliError::host)?;
    let address = endpoint.address();
    let shown = serve::for_shell(&data_dir, &shown.unwrap_or_default())?;
    title("The host stays up; Ctrl-C ends it")?;
    line(&format!("  {address}\n  in another terminal:\n"))?;
    line(&format!("  export MEMHOST_URL={address} MEMHOST_TOKEN={shown} MEMHOST_COMPANY=demo"))?;
    line("  memhost search 'who may reach the network?'")?;
    line("  memhost operation list --kind forget\n")?;
    let (token, explorer) = serve::explorer(token, &address.to_string(), &service)?;
    line(&explorer.unwrap_or_default())?;
    server::run(vec![endpoint], service, token, ServerOptions::default(), crate::signals::stop())
        .await
        .map_err(CliError::host)
}

fn title(text: &str) -> Result<()> {
    line(&format!("\n{text}"))
}

async fn bind(host: &Backend) -> Result<()> {
    let _: Answer<CompanyView> = host.put(CONTROL, &()).await?;
    let present: Answer<Page<BindingView>> = host.get(&format!("{CONTROL}/bindings")).await?;
    if !present.read()?.items.is_empty() {
        return Ok(());
    }
    // Faster: the demo's data need not survive a crash.
    let body = json!({
        "key": "default", "providerKey": "local-markdown", "default": true,
        "config": { "durable": false },
    });
    host.post::<BindingView>(&format!("{CONTROL}/bindings"), &body).await.map(drop)
}

async fn capture(host: &Backend) -> Result<()> {
    let root = checkout();
    let sections = sections(root.as_deref());
    for section in &sections {
        let issue = section.key.split('#').next().unwrap_or(&section.key);
        let source =
            json!({ "kind": "issue_document", "companyId": "demo", "documentKey": section.key });
        let id = format!("{:?}", section.key);
        let body = json!({
            "scope": { "companyId": "demo" },
            "source": source,
            "payload": { "text": section.text, "mimeType": "text/markdown" },
            "hook": hook("issue_document_capture", &id, "2026-01-01T00:00:00Z"),
            "mode": "capture_record",
            "metadata": { "document": issue },
        });
        host.post::<CaptureResponse>(&format!("{RUNTIME}/capture"), &body).await?;
    }
    let commits = commits(root.as_deref());
    for commit in &commits {
        let body = json!({
            "scope": { "companyId": "demo", "runId": commit.hash },
            "source": { "kind": "run", "companyId": "demo", "runId": commit.hash },
            "payload": { "text": commit.text },
            "hook": hook("post_run_capture", &commit.hash, &commit.at),
            "mode": "capture_record",
        });
        host.post::<CaptureResponse>(&format!("{RUNTIME}/capture"), &body).await?;
    }
    let history = match commits.len() {
        0 => "no commits: not in a git repository".to_owned(),
        count => format!("{count} commits, as runs"),
    };
    line(&format!("  {} sections of documents, as issue documents\n  {history}", sections.len()))
}

/// The hook of a capture. Its id has only characters that a host accepts.
fn hook(kind: &str, id: &str, at: &str) -> impl Serialize {
    let id: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(120).collect();
    json!({ "hookKind": kind, "hookId": format!("demo-{id}"), "triggeredAt": at })
}

async fn ask(host: &Backend, question: &str) -> Result<()> {
    let snippets = query(host, question, 2).await?.snippets;
    line(&format!("  {question}"))?;
    if snippets.is_empty() {
        return Err(CliError::Failed(format!("no result for `{question}`")));
    }
    for snippet in &snippets {
        let score = snippet.score.unwrap_or_default();
        let shown = telling(&snippet.text, question);
        line(&format!(
            "    {score:.2}  {}\n          from {}",
            clip(&shown, 84),
            provenance(snippet.source.as_ref())
        ))?;
    }
    line("")
}

/// The sentence with most words of the question, because a whole section does not fit on a line.
fn telling(text: &str, question: &str) -> String {
    let lower = |text: &str| text.to_lowercase();
    // Words are compared by their first letters, so that `recorded` matches `record`.
    let wanted: Vec<String> = question
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 3)
        .map(|word| lower(word).chars().take(5).collect())
        .collect();
    let flat = text.replace("///", " ").replace('#', " ");
    let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentences = flat.split_inclusive(['.', ';']);
    let score = |sentence: &str| {
        let sentence = lower(sentence);
        wanted.iter().filter(|word| sentence.contains(word.as_str())).count()
    };
    let best = sentences.rev().max_by_key(|sentence| score(sentence)).unwrap_or(&flat);
    best.trim().to_owned()
}

async fn query(host: &Backend, question: &str, top_k: u32) -> Result<ContextBundle> {
    let body = json!({ "scope": { "companyId": "demo" }, "query": question, "topK": top_k });
    host.post(&format!("{RUNTIME}/query"), &body).await?.read()
}

async fn forget(host: &Backend) -> Result<()> {
    const FACT: &str = "The spare key hangs behind the blue door.";
    const QUESTION: &str = "spare key blue door";
    let body = json!({ "scope": { "companyId": "demo" }, "records": [{ "text": FACT }] });
    let written: Answer<UpsertResponse> = host.post(&format!("{RUNTIME}/records"), &body).await?;
    let handle = written.read()?.records.into_iter().next();
    let handle: RecordHandle =
        handle.ok_or_else(|| CliError::Failed("the record was not written".to_owned()))?;
    let is_found =
        |bundle: &ContextBundle| bundle.snippets.iter().any(|snippet| snippet.handle == handle);
    let before = is_found(&query(host, QUESTION, 5).await?);
    let body = json!({ "scope": { "companyId": "demo" }, "handles": [handle] });
    let forgotten: Answer<ForgetResponse> = host.post(&format!("{RUNTIME}/forget"), &body).await?;
    let after = is_found(&query(host, QUESTION, 5).await?);
    let body = json!({ "scope": { "companyId": "demo" }, "handle": handle });
    let read: Answer<GetResponse> = host.post(&format!("{RUNTIME}/get"), &body).await?;
    if !before || after || read.read()?.record.is_some() {
        let message =
            "the record was not found before it was forgotten, or was still found afterwards";
        return Err(CliError::Failed(message.to_owned()));
    }
    line(&format!("  noted      {FACT}"))?;
    line("  searched   found")?;
    let effect = forgotten.read()?.outcomes.first().map(|outcome| outcome.effect);
    line(&format!("  forgot     effect {}", text(&effect)))?;
    line("  searched   not found; its file is gone from the directory")
}
