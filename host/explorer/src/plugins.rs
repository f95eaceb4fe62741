//! The host's providers: builds that were admitted, what each asks for and whom it serves, and files that were kept out.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::bindings::said;
use super::guard::see;
use super::kit::{Col, Facts, Page, Row, Signed, Tone, View, badge, bytes, form, panel, table};
use super::pieces;
use memhost_core::plugins::{PluginSource, Signed as Signature};
use memhost_core::{AdmittedPlugin, Service};
use memhost_http::{HostAuthorized, Problem, ProblemCode, parse};
use memhost_types::{CompanyId, Digest};

fn signature(signed: &Signature) -> Markup {
    match signed {
        Signature::No => html! { span.soft { "not signed" } },
        Signature::By { key, comment } => html! { (badge(Tone::Good, "signed")) " by " code title=(comment) { (key) } },
    }
}

fn source(source: &PluginSource) -> Markup {
    match source {
        PluginSource::Builtin => html! { "part of this host" },
        PluginSource::File(path) => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            html! { code title=(path.display()) { (name) } }
        }
        PluginSource::Kept => badge(Tone::Warning, "its file is gone, a copy serves"),
    }
}

/// Every binding of the host: its company, its key, its provider, the build that serves it.
async fn served(service: &Service) -> Vec<(CompanyId, String, String, Option<Digest>)> {
    let mut all = Vec::new();
    for company in service.companies() {
        for shown in service.bindings(&company).await.unwrap_or_default() {
            let (key, provider) = (shown.binding.key.to_string(), shown.binding.provider_key.to_string());
            all.push((company.clone(), key, provider, shown.serving.map(|build| build.digest)));
        }
    }
    all
}

pub(super) async fn list(State(service): State<Arc<Service>>, view: View, _: HostAuthorized) -> Markup {
    let plugins = service.plugins();
    let served = served(&service).await;
    let columns = [
        Col::text("Provider"),
        Col::text("Version"),
        Col::text("Digest").wide(),
        Col::text("Signature").wide(),
        Col::text("From").wide(),
        Col::number("Size").wide(),
        Col::number("Asks for"),
        Col::number("Serves"),
        Col::text("What it is").long(),
    ];
    let rows = plugins.admitted.iter().map(|plugin| {
        let inspection = &plugin.inspection;
        let description = &inspection.description;
        let serves = served.iter().filter(|(.., digest)| *digest == Some(inspection.digest)).count();
        Row::to(format!("/plugins/{}", inspection.digest))
            .key(inspection.digest)
            .cell(description.provider_key.as_str())
            .cell(description.version.to_string())
            .cell(html! { code title=(inspection.digest) { (inspection.digest.short()) } })
            .cell(signature(&plugin.signed))
            .cell(source(&plugin.source))
            .cell(bytes(inspection.bytes))
            .cell(description.permissions.len())
            .cell(serves)
            .cell(description.summary.as_str())
    });
    let refused = [Col::text("File"), Col::text("Why").long()];
    let kept_out = plugins.refused.iter().map(|file| {
        let name = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Row::new()
            .key(file.path.display())
            .cell(html! { code title=(file.path.display()) { (name) } })
            .cell(html! { p.reason { (pieces::prose(&file.reason)) } })
    });
    let body = html! {
        div #rows { (table("Plugins", &columns, rows)) }
        @if plugins.refused.is_empty() {
            p.soft #refused { "No file was kept out. A " code { ".wasm" } " that is put into the plugins directory is looked at within seconds." }
        } @else {
            (panel("refused", "Kept out", &table("Kept out", &refused, kept_out)))
        }
    };
    let scan = form(&view, "/plugins/scan", &html! { button { "Look again" } });
    Page::new(&view, "Plugins", "Builds of providers that this host has admitted.").action(scan).render(&body)
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn scan(
    State(service): State<Arc<Service>>,
    view: View,
    _: HostAuthorized,
    _: Signed<Nothing>,
) -> Response {
    service.scan_plugins().await;
    let found = service.plugins();
    view.say(format!("Looked: {} admitted, {} kept out.", found.admitted.len(), found.refused.len()));
    see("/plugins")
}

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path(digest): Path<String>,
    _: HostAuthorized,
) -> Result<Markup, Problem> {
    let digest: Digest = parse("digest", &digest)?;
    let found = service.plugins().admitted.into_iter().find(|plugin| plugin.inspection.digest == digest);
    let missing = || Problem::new(ProblemCode::NoVersion, "no build has this digest; look at the list again");
    let plugin = found.ok_or_else(missing)?;
    let description = &plugin.inspection.description;
    let body = html! {
        div.two {
            (panel("build", "Build", &html! { (build(&plugin)) }))
            (panel("bindings", "Bindings", &bindings(&service, &plugin).await))
        }
        (panel("asks", "What it asks for", &asks(&plugin)))
        @if let Some(schema) = &description.config_schema {
            (panel("schema", "Configuration", &html! {
                details.more { summary { "JSON Schema" } pre tabindex="0" { (serde_json::to_string_pretty(schema).unwrap_or_default()) } }
            }))
        }
        (panel("interfaces", "Interfaces", &interfaces(&plugin)))
    };
    let title = format!("{} {}", description.name, description.version);
    Ok(Page::new(&view, &title, &description.summary).crumb("Plugins", "/plugins").render(&body))
}

fn build(plugin: &AdmittedPlugin) -> Facts {
    let inspection = &plugin.inspection;
    let description = &inspection.description;
    let can = &description.capabilities;
    let all = [
        (can.profile, "profile"),
        (can.correction, "correction"),
        (can.multimodal, "more than text"),
        (can.provider_managed_extraction, "extraction of its own"),
        (can.async_extraction, "jobs"),
        (can.provider_native_browse, "browsing"),
    ];
    let can: Vec<_> = all.iter().filter(|(can, _)| *can).map(|(_, name)| *name).collect();
    Facts::default()
        .row("Provider", description.provider_key.as_str())
        .row("Version", description.version.to_string())
        .row("Digest", html! { code { (inspection.digest) } })
        .row("Signature", signature(&plugin.signed))
        .row("From", source(&plugin.source))
        .row("Size", bytes(inspection.bytes))
        .row("Contract", inspection.contract_version.as_str())
        .row("At once", format!("{} calls a binding", description.max_concurrency))
        .row("Can", if can.is_empty() { "what every provider can".to_owned() } else { can.join(", ") })
}

async fn bindings(service: &Service, plugin: &AdmittedPlugin) -> Markup {
    let provider = plugin.inspection.description.provider_key.as_str();
    let served = served(service).await;
    let mine: Vec<_> = served.iter().filter(|(_, _, of, _)| of == provider).collect();
    html! {
        @if mine.is_empty() { p.soft { "No binding has this provider." } }
        ul.list {
            @for (company, key, _, digest) in mine {
                li.between {
                    a href=(View::company_at(company, &["bindings", key])) { (company) " / " (key) }
                    @match digest {
                        Some(digest) if *digest == plugin.inspection.digest => (badge(Tone::Good, "served by this build")),
                        Some(_) => (badge(Tone::Plain, "served by another build")),
                        None => (badge(Tone::Plain, "not used yet")),
                    }
                }
            }
        }
    }
}

fn asks(plugin: &AdmittedPlugin) -> Markup {
    let asks = &plugin.inspection.description.permissions;
    let columns = [Col::text("What"), Col::text("Without it"), Col::text("Why").long()];
    let rows = asks.iter().map(|request| {
        Row::new()
            .cell(said(&request.permission))
            .cell(if request.optional { "works" } else { "does not work" })
            .cell(html! { p.reason { (request.reason) } })
    });
    html! {
        @if asks.is_empty() { p.soft { "Nothing: it computes within its sandbox and reaches nothing outside of it." } }
        @else { (table("What it asks for", &columns, rows)) }
    }
}

fn interfaces(plugin: &AdmittedPlugin) -> Markup {
    let inspection = &plugin.inspection;
    let names: Vec<_> = inspection.interfaces.iter().map(|interface| format!("{interface:?}").to_lowercase()).collect();
    let list = |names: &[String]| html! { ul.list { @for name in names { li { code { (name) } } } } };
    html! {
        p { "Beside what every provider has: " @if names.is_empty() { "nothing" } @else { (names.join(", ")) } "." }
        div.two {
            details.more { summary { "Exports (" (inspection.exports.len()) ")" } (list(&inspection.exports)) }
            details.more { summary { "Imports (" (inspection.imports.len()) ")" } (list(&inspection.imports)) }
        }
    }
}
