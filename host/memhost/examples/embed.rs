//! A host inside another program: opens it, binds a provider, captures and asks. Prints what was
//! found.
//!
//! `cargo run --example embed -- DIRECTORY`

use memhost::types::{
    CaptureMode, CaptureRequest, CompanyId, Intent, QueryRequest, Scope, SourceKind, SourcePayload,
    SourceRef, TextId,
};
use memhost::{Caller, CreateBinding, Service, ServiceOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory =
        std::env::args().nth(1).ok_or("name a directory for the memory, such as ./memory")?;
    let host = Service::open(ServiceOptions::new(directory)).await?;
    let (caller, company) = (Caller::operator(), CompanyId::parse("acme")?);

    host.tenancy().make_company(&caller, &company).await?;
    // The binding says which provider has the company's memory. `local-markdown` is built in.
    let binding: CreateBinding = serde_json::from_value(serde_json::json!({
        "key": "default", "providerKey": "local-markdown"
    }))?;
    host.control().ensure_default_binding(&caller, &company, binding).await?;

    let capture = CaptureRequest {
        binding_key: None,
        scope: Scope::company(company.clone()),
        source: SourceRef::new(SourceKind::ManualNote, company.clone()),
        payload: SourcePayload {
            text: Some("Deploys are frozen on Fridays".to_owned()),
            ..Default::default()
        },
        hook: None,
        mode: CaptureMode::CaptureRecord,
        metadata: None,
        visibility: None,
        replaces_source: false,
    };
    host.operations().capture(&caller, capture).await?;

    let question = QueryRequest {
        binding_key: None,
        scope: Scope::company(company),
        query: "when are deploys frozen?".to_owned(),
        top_k: Some(3),
        intent: Intent::Answer,
        metadata_filter: None,
        token_budget: None,
        filter: None,
    };
    for found in host.operations().query(&caller, question).await?.snippets {
        println!("{}", found.text);
    }
    host.background().shutdown(std::time::Duration::from_secs(5)).await;
    Ok(())
}
