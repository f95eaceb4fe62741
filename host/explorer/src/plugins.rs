//! The host's plugins: loaded builds with their permissions and bindings, and refused files.

use std::path::Path as FilePath;

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};

use super::bindings::grants::permission_text;
use super::components::{
    CsrfForm, Details, NoFields, Page, Row, Tone, View, badge, bytes, form, long, number, panel,
    sentence, table, wide,
};
use super::guard::redirect;
use memhost_core::plugins::{PluginSource, Signed};
use memhost_core::{AdmittedPlugin, Service};
use memhost_http::{HostAuthorized, Problem, ProblemCode, parse};
use memhost_types::{CompanyId, Declarations, Digest};

fn signature(signed: &Signed) -> Markup {
    match signed {
        Signed::No => html! { span.soft { "not signed" } },
        Signed::By { key, comment } => {
            html! { (badge(Tone::Good, "signed")) " by " code title=(comment) { (key) } }
        }
    }
}

fn source(source: &PluginSource) -> Markup {
    match source {
        PluginSource::Builtin => html! { "built in" },
        PluginSource::File(path) => {
            html! { code title=(path.display()) { (file_name(path)) } }
        }
        PluginSource::Copy => badge(Tone::Warning, "file deleted, copy in use"),
    }
}

/// Every binding of the host: its company, its key, its provider, the build that serves it.
async fn served(service: &Service) -> Vec<(CompanyId, String, String, Option<Digest>)> {
    let mut all = Vec::new();
    for company in service.tenancy().companies() {
        for shown in service.control().bindings(&company).await.unwrap_or_default() {
            let (key, provider) =
                (shown.binding.key.to_string(), shown.binding.provider_key.to_string());
            all.push((company.clone(), key, provider, shown.serving.map(|build| build.digest)));
        }
    }
    all
}

fn file_name(path: &FilePath) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(super) async fn list(view: View, _: HostAuthorized) -> Markup {
    let plugins = view.service.control().plugins();
    let served = served(&view.service).await;
    let rows = plugins.admitted.iter().map(|plugin| {
        let inspection = &plugin.inspection;
        let description = &inspection.description;
        let serves =
            served.iter().filter(|(.., digest)| *digest == Some(inspection.digest)).count();
        Row::to(format!("/plugins/{}", inspection.digest))
            .key(inspection.digest)
            .cell("Provider", description.provider_key.as_str())
            .cell("Version", description.version.to_string())
            .cell(
                wide("Digest"),
                html! { code title=(inspection.digest) { (inspection.digest.short()) } },
            )
            .cell(wide("Signature"), signature(&plugin.signed))
            .cell(wide("Source"), source(&plugin.source))
            .cell(number("Size").wide(), bytes(inspection.bytes))
            .cell(number("Permissions"), description.permissions.len())
            .cell(number("Bindings"), serves)
            .cell(long("Description"), description.summary.as_str())
    });
    let refused = plugins.refused.iter().map(|file| {
        Row::new()
            .key(file.path.display())
            .cell("File", html! { code title=(file.path.display()) { (file_name(&file.path)) } })
            .cell(long("Reason"), html! { p.reason { (sentence(&file.reason)) } })
    });
    let body = html! {
        div #rows { (table("Plugins", rows)) }
        @for file in &plugins.admitting {
            p.soft { "Being compiled: " code title=(file.display()) { (file_name(file)) } }
        }
        @if plugins.refused.is_empty() {
            p.soft #refused {
                "No refused files. The host loads a " code { ".wasm" }
                    " file in the plugins directory within seconds."
            }
        } @else { (panel("refused", "Refused files", table("Refused files", refused))) }
    };
    let scan = form(&view, "/plugins/scan", &html! { button { "Rescan" } });
    Page::new(&view, "Plugins", "Provider builds that this host has loaded.")
        .action(scan)
        .render(&body)
}

pub(super) async fn scan(view: View, _: HostAuthorized, _: CsrfForm<NoFields>) -> Response {
    view.service.control().scan_plugins().await;
    let found = view.service.control().plugins();
    view.flash(format!(
        "Scan finished: {} loaded, {} refused.",
        found.admitted.len(),
        found.refused.len()
    ));
    redirect("/plugins")
}

pub(super) async fn show(
    view: View,
    Path(digest): Path<String>,
    _: HostAuthorized,
) -> Result<Markup, Problem> {
    let digest: Digest = parse("digest", &digest)?;
    let found = view
        .service
        .control()
        .plugins()
        .admitted
        .into_iter()
        .find(|plugin| plugin.inspection.digest == digest);
    let missing = || {
        Problem::new(ProblemCode::NoVersion, "no build has this digest; reload the list of plugins")
    };
    let plugin = found.ok_or_else(missing)?;
    let description = &plugin.inspection.description;
    let body = html! {
        div.two {
            (panel("build", "Build", build(&plugin)))
            (panel("bindings", "Bindings", bindings(&view.service, &plugin).await))
        }
        (panel("asks", "Permissions", asks(&plugin)))
        @if let Some(schema) = &description.config_schema {
            (panel("schema", "Configuration", &html! {
                details.more {
                    summary { "JSON Schema" } pre tabindex="0" {
                        (serde_json::to_string_pretty(schema).unwrap_or_default())
                    }
                }
            }))
        }
        (panel("interfaces", "Interfaces", interfaces(&plugin)))
    };
    let title = format!("{} {}", description.name, description.version);
    Ok(Page::new(&view, &title, &description.summary).crumb("Plugins", "/plugins").render(&body))
}

fn build(plugin: &AdmittedPlugin) -> Details {
    let inspection = &plugin.inspection;
    let description = &inspection.description;
    let declared = &description.declarations;
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
        .row(
            "Left to the host",
            listed(&declared.left_to_host.iter().map(|work| work.about()).collect::<Vec<_>>()),
        )
        .row(
            "Not promised",
            listed(
                &declared.exceptions.iter().map(|exception| exception.about()).collect::<Vec<_>>(),
            ),
        )
        .row("Records in one call", at_once(declared))
        .row(
            "Capabilities",
            if can.is_empty() {
                "none beyond the required ones".to_owned()
            } else {
                can.join(", ")
            },
        )
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join("; ") }
}

/// How many records a provider takes at once; the host divides longer requests.
fn at_once(declared: &Declarations) -> String {
    format!("{} to write, {} to forget", declared.most_upserted(), declared.most_forgotten())
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
                        Some(digest) if *digest == plugin.inspection.digest => {
                            (badge(Tone::Good, "served by this build"))
                        },
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
    let rows = asks.iter().map(|request| {
        Row::new()
            .cell("Permission", permission_text(&request.permission))
            .cell("Required", if request.optional { "no" } else { "yes" })
            .cell(long("Reason"), html! { p.reason { (request.reason) } })
    });
    html! {
        @if asks.is_empty() { p.soft { "None: it cannot reach anything outside of its sandbox." } }
        @else { (table("Permissions", rows)) }
    }
}

fn interfaces(plugin: &AdmittedPlugin) -> Markup {
    let inspection = &plugin.inspection;
    let names: Vec<_> = inspection
        .interfaces
        .iter()
        .map(|interface| format!("{interface:?}").to_lowercase())
        .collect();
    let list =
        |names: &[String]| html! { ul.list { @for name in names { li { code { (name) } } } } };
    html! {
        p {
            "Optional interfaces: " @if names.is_empty() { "none" } @else { (names.join(", ")) } "."
        }
        div.two {
            details.more {
                summary { "Exports (" (inspection.exports.len()) ")" }
                (list(&inspection.exports))
            }
            details.more {
                summary { "Imports (" (inspection.imports.len()) ")" }
                (list(&inspection.imports))
            }
        }
    }
}
