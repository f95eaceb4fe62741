//! The host's plugins: loaded builds with their permissions and bindings, and rejected files.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::bindings::permission_text;
use super::components::{Column, CsrfForm, Details, Page, Row, Tone, View, badge, bytes, form, panel, sentence, table};
use super::guard::see;
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
        PluginSource::Builtin => html! { "built in" },
        PluginSource::File(path) => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            html! { code title=(path.display()) { (name) } }
        }
        PluginSource::Kept => badge(Tone::Warning, "file deleted, copy in use"),
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
        Column::text("Provider"),
        Column::text("Version"),
        Column::text("Digest").wide(),
        Column::text("Signature").wide(),
        Column::text("Source").wide(),
        Column::number("Size").wide(),
        Column::number("Permissions"),
        Column::number("Bindings"),
        Column::text("Description").long(),
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
    let refused = [Column::text("File"), Column::text("Reason").long()];
    let rejected = plugins.refused.iter().map(|file| {
        let name = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Row::new()
            .key(file.path.display())
            .cell(html! { code title=(file.path.display()) { (name) } })
            .cell(html! { p.reason { (sentence(&file.reason)) } })
    });
    let body = html! {
        div #rows { (table("Plugins", &columns, rows)) }
        @if plugins.refused.is_empty() {
            p.soft #refused {
                "No rejected files. The host loads a " code { ".wasm" } " file in the plugins directory within seconds."
            }
        } @else {
            (panel("refused", "Rejected files", &table("Rejected files", &refused, rejected)))
        }
    };
    let scan = form(&view, "/plugins/scan", &html! { button { "Rescan" } });
    Page::new(&view, "Plugins", "Provider builds that this host has loaded.").action(scan).render(&body)
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn scan(
    State(service): State<Arc<Service>>,
    view: View,
    _: HostAuthorized,
    _: CsrfForm<Nothing>,
) -> Response {
    service.scan_plugins().await;
    let found = service.plugins();
    view.say(format!("Scan finished: {} loaded, {} rejected.", found.admitted.len(), found.refused.len()));
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
    let missing = || Problem::new(ProblemCode::NoVersion, "no build has this digest; reload the list of plugins");
    let plugin = found.ok_or_else(missing)?;
    let description = &plugin.inspection.description;
    let body = html! {
        div.two {
            (panel("build", "Build", &html! { (build(&plugin)) }))
            (panel("bindings", "Bindings", &bindings(&service, &plugin).await))
        }
        (panel("asks", "Permissions", &asks(&plugin)))
        @if let Some(schema) = &description.config_schema {
            (panel("schema", "Configuration", &html! {
                details.more {
                    summary { "JSON Schema" } pre tabindex="0" {
                        (serde_json::to_string_pretty(schema).unwrap_or_default())
                    }
                }
            }))
        }
        (panel("interfaces", "Interfaces", &interfaces(&plugin)))
    };
    let title = format!("{} {}", description.name, description.version);
    Ok(Page::new(&view, &title, &description.summary).crumb("Plugins", "/plugins").render(&body))
}

fn build(plugin: &AdmittedPlugin) -> Details {
    let inspection = &plugin.inspection;
    let description = &inspection.description;
    let can = &description.capabilities;
    let all = [
        (can.profile, "profile"),
        (can.correction, "correction"),
        (can.multimodal, "multimodal"),
        (can.provider_managed_extraction, "provider-managed extraction"),
        (can.async_extraction, "async extraction"),
        (can.provider_native_browse, "browse"),
    ];
    let can: Vec<_> = all.iter().filter(|(can, _)| *can).map(|(_, name)| *name).collect();
    Details::default()
        .row("Provider", description.provider_key.as_str())
        .row("Version", description.version.to_string())
        .row("Digest", html! { code { (inspection.digest) } })
        .row("Signature", signature(&plugin.signed))
        .row("Source", source(&plugin.source))
        .row("Size", bytes(inspection.bytes))
        .row("Contract", inspection.contract_version.as_str())
        .row("Concurrency", format!("{} calls per binding", description.max_concurrency))
        .row("Capabilities", if can.is_empty() { "none beyond the required ones".to_owned() } else { can.join(", ") })
}

async fn bindings(service: &Service, plugin: &AdmittedPlugin) -> Markup {
    let provider = plugin.inspection.description.provider_key.as_str();
    let served = served(service).await;
    let mine: Vec<_> = served.iter().filter(|(_, _, of, _)| of == provider).collect();
    html! {
        @if mine.is_empty() { p.soft { "No binding uses this provider." } }
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
    let columns = [Column::text("Permission"), Column::text("Required"), Column::text("Reason").long()];
    let rows = asks.iter().map(|request| {
        Row::new()
            .cell(permission_text(&request.permission))
            .cell(if request.optional { "no" } else { "yes" })
            .cell(html! { p.reason { (request.reason) } })
    });
    html! {
        @if asks.is_empty() { p.soft { "None: it cannot reach anything outside of its sandbox." } }
        @else { (table("Permissions", &columns, rows)) }
    }
}

fn interfaces(plugin: &AdmittedPlugin) -> Markup {
    let inspection = &plugin.inspection;
    let names: Vec<_> = inspection.interfaces.iter().map(|interface| format!("{interface:?}").to_lowercase()).collect();
    let list = |names: &[String]| html! { ul.list { @for name in names { li { code { (name) } } } } };
    html! {
        p { "Optional interfaces: " @if names.is_empty() { "none" } @else { (names.join(", ")) } "." }
        div.two {
            details.more { summary { "Exports (" (inspection.exports.len()) ")" } (list(&inspection.exports)) }
            details.more { summary { "Imports (" (inspection.imports.len()) ")" } (list(&inspection.imports)) }
        }
    }
}
