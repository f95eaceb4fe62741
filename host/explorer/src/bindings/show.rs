//! One binding: its status, versions, users, limits, permissions, configuration and policy.

use maud::{Markup, html};

use super::{grants, health, limits, used_by};
use crate::components::{
    CompanyView, Details, Field, Page, Row, Tone, View, badge, duration_us, form, long, panel,
    percent, sentence, table, words,
};
use memhost_core::{Act, BindingView, BreakerState, HealthFound};
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{
    Binding, BindingKey, OnBudget, PiiPolicy, ReviewPolicy, Snapshots, SubscribedWhen,
};

pub(crate) async fn show(
    view: CompanyView<permission::View>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Markup, Problem> {
    let shown = view.service.control().binding(&view.company, &key).await?;
    let asks = view.service.control().grants(&view.company, &key).await?;
    let body = html! {
        @for warning in &shown.warnings { p.wrong { (sentence(warning)) } }
        @if let BreakerState::Open { retry_after_ms } = shown.breaker {
            p.wrong {
                "The circuit is open because the provider kept failing. The next attempt is in "
                (
                    duration_us(retry_after_ms.saturating_mul(1_000))
                ) ". Reset the binding to try now."
                @if let Some(why) = &shown.failing { " The last call failed: " (sentence(why)) }
            }
        }
        div.two {
            div.stack {
                (panel("state", "Status", state(&view, &shown)))
                (panel("targets", "Used by", targets(&view, &shown)))
                (panel("policy", "Policy", policy(&shown.binding)))
            }
            div.stack {
                (panel("limits", "Limits and usage", limits::used(&shown)))
                (panel("budgets", "Budgets", limits::budgets(&view, &key).await?))
                (panel("secrets", "Secrets", secrets(&view, &shown.binding).await?))
            }
        }
        (panel("grants", "Permissions", grants::shown(&view, &shown.binding, &asks)))
        (panel("versions", "Versions", versions(&view, &shown)))
        (panel("config", "Configuration", config(&shown.binding)))
    };
    Ok(Page::new(
        &view,
        key.as_str(),
        &format!("Served by {}. Used by {}.", shown.binding.provider_key, used_by(&shown)),
    )
    .crumb("Bindings", view.at(&["bindings"]))
    .action(actions(&view, &shown))
    .render(&body))
}

fn actions(view: &View, shown: &BindingView) -> Markup {
    let key = shown.binding.key.as_str();
    let at = |what: &str| view.at(&["bindings", key, what]);
    let is_troubled = shown.breaker != BreakerState::Closed || !shown.rejected_versions.is_empty();
    html! {
        @if view.allows(Act::Administer) && !shown.binding.is_implied() {
            @if is_troubled { (form(view, &at("reset"), &html! { button.primary { "Reset" } })) }
            (form(view, &at("switch"), &html! {
                input type="hidden" name="enabled" value=(!shown.binding.enabled);
                input type="hidden" name="revision" value=(shown.binding.revision);
                @if shown.binding.enabled { button { "Disable" } } @else {
                    button.primary { "Enable" }
                }
            }))
            a.button href=(at("edit")) { "Edit" }
            a.button href=(at("delete")) { "Delete" }
        }
    }
}

fn state(view: &View, shown: &BindingView) -> Details {
    let binding = &shown.binding;
    let build = |build: &memhost_core::BuildView| {
        html! { (build.version) " " code.soft title=(build.digest) { (build.digest.short()) } }
    };
    let moment = |at| view.moment(at);
    let breaker = match shown.breaker {
        BreakerState::Closed => badge(Tone::Good, "closed"),
        BreakerState::Open { .. } => badge(Tone::Bad, "open: calls are refused"),
        BreakerState::HalfOpen => badge(Tone::Warning, "half open: one call is tried"),
    };
    Details::default()
        .row("Status", health(shown))
        .row("Circuit breaker", breaker)
        .row(
            "Health",
            match &shown.health {
                Some(HealthFound { at, summary: Some(summary), .. }) => {
                    html! { (sentence(summary)) " " (moment(*at)) }
                }
                Some(HealthFound { at, .. }) => {
                    html! { (badge(Tone::Bad, "failed")) " " (moment(*at)) }
                }
                None => html! { span.soft { "Not asked, or the provider cannot say" } },
            },
        )
        .row("Provider", binding.provider_key.as_str())
        .row("Version range", binding.version.to_string())
        .row(
            "Active version",
            shown
                .serving
                .as_ref()
                .map_or_else(|| html! { span.soft { "None before the first operation" } }, build),
        )
        .row("Revision", binding.revision)
        .row("Created", moment(binding.created_at))
        .row("Updated", moment(binding.updated_at))
}

fn targets(view: &View, shown: &BindingView) -> Markup {
    let key = shown.binding.key.as_str();
    let default = view.at(&["bindings", key, "default"]);
    let agent = view.at(&["bindings", key, "agents"]);
    let may = view.allows(Act::Administer) && !shown.binding.is_implied();
    html! {
        @if shown.binding.is_implied() {
            p.help {
                "Nobody has decided which binding is the default, so the built-in provider \
                 answers. The first write stores this binding."
            }
        }
        ul.list {
            li.between {
                @if shown.is_default { span { "Company (default binding)" } } @else {
                    span.soft { "Not the company's default" }
                }
                @if may {
                    (form(view, &default, &html! {
                        input type="hidden" name="on" value=(!shown.is_default);
                        @if shown.is_default { button { "Remove" } } @else {
                            button { "Set as default" }
                        }
                    }))
                }
            }
            @for name in &shown.agents {
                li.between {
                    span { "Agent " strong { (name) } }
                    @if may {
                        (form(view, &agent, &html! {
                            input type="hidden" name="agentId" value=(name);
                            input type="hidden" name="on" value="false";
                            button { "Remove" span.vh { " from " (name) } }
                        }))
                    }
                }
            }
        }
        @if may {
            (form(view, &agent, &html! {
                input type="hidden" name="on" value="true";
                (Field::new("agentId", "Agent", "").required())
                button { "Assign agent" }
            }))
        }
    }
}

fn policy(binding: &Binding) -> Markup {
    let policy = &binding.policy;
    let hooks: Vec<_> = policy
        .hooks
        .iter()
        .map(|hook| {
            let all = if hook.when == SubscribedWhen::Always { " (all events)" } else { "" };
            format!("{}{all}", words(hook.kind.as_str()))
        })
        .collect();
    let pii = match policy.pii {
        PiiPolicy::Allow => "Sent unchanged",
        PiiPolicy::Redact => "Redacted before it is sent",
        PiiPolicy::Hold => "Writes wait for review",
    };
    let on_budget = match policy.on_budget {
        OnBudget::Refuse => "Captures are refused",
        OnBudget::Queue => "Captures wait until the budget resets",
    };
    let protected = match policy.protect_administrators {
        true => "Only administrators and operators change them",
        false => "Whoever may write changes them",
    };
    let snapshots = match policy.retention.snapshots {
        Snapshots::Off => "None",
        Snapshots::Bounded => "First 2 KiB",
        Snapshots::Full => "Full",
    };
    html! {
        (Details::default()
            .row("Hooks", if hooks.is_empty() { "None".to_owned() } else { hooks.join("; ") })
            .row("Review", policy.review.as_ref().map_or_else(|| "Off".to_owned(), review))
            .row("Personal data", pii)
            .row("Over budget", on_budget)
            .row("Records of administrators", protected)
            .row("Payload snapshots", snapshots))
    }
}

fn review(review: &ReviewPolicy) -> String {
    if review.all {
        return "All extracted records".to_owned();
    }
    let others = review.thresholds.len();
    let pii = match review.pii_risk {
        1 => ", or with possible personal data",
        2 => ", or with personal data",
        _ => "",
    };
    format!(
        "Records with a confidence below {} ({others} kinds have their own threshold){pii}",
        percent(review.threshold)
    )
}

async fn secrets<P>(view: &CompanyView<P>, binding: &Binding) -> Result<Markup, Problem> {
    let set = view.service.control().secrets(&view.company).await?;
    Ok(html! {
        @if binding.grants.secrets.is_empty() { p.soft { "No secrets granted." } }
        ul.list {
            @for name in &binding.grants.secrets {
                @let found = set.iter().find(|secret| secret.name == *name);
                li.between {
                    code { (name) }
                    @match found {
                        Some(secret) => span.soft {
                            "sent to " (
                                secret.origins
                                    .iter()
                                    .map(ToString::to_string)
                                    .collect::<Vec<_>>()
                                    .join(", ")
                            )
                            " as " code { (secret.used_as) }
                        },
                        None => {
                            (badge(Tone::Bad, "not set")) " " code {
                                "memhost secret create " (name)
                            }
                        }
                    }
                }
            }
        }
    })
}

fn versions(view: &View, shown: &BindingView) -> Markup {
    let key = &shown.binding.provider_key;
    let builds = view.service.control().plugins().admitted;
    let builds = builds.iter().filter(|build| build.inspection.description.provider_key == *key);
    let rows = builds.map(|build| {
        let digest = build.inspection.digest;
        let version = &build.inspection.description.version;
        let waits = shown.waiting.iter().find(|waiting| waiting.build.digest == digest);
        let kept = shown.rejected_versions.iter().find(|kept| kept.digest == digest);
        let serves = shown.serving.as_ref().is_some_and(|serving| serving.digest == digest);
        let (state, why) = match (serves, waits, kept) {
            (true, ..) => (badge(Tone::Good, "active"), None),
            (_, Some(waits), _) => {
                let asks: Vec<_> =
                    waits.asks.iter().map(|ask| grants::permission_text(&ask.permission)).collect();
                (
                    badge(Tone::Warning, "needs permissions"),
                    Some(format!("Not decided yet: {}", asks.join(", "))),
                )
            }
            (_, _, Some(kept)) => (badge(Tone::Bad, "rejected"), Some(kept.reason.clone())),
            _ if shown.binding.version.allows(version, digest) => {
                (badge(Tone::Plain, "available"), None)
            }
            _ => (
                badge(Tone::Plain, "not allowed"),
                Some(format!("The binding {}", shown.binding.version)),
            ),
        };
        Row::new()
            .key(digest)
            .cell("Version", version.to_string())
            .cell("Digest", html! { code title=(digest) { (digest.short()) } })
            .cell("Status", state)
            .maybe(long("Reason"), why)
    });
    table("Versions", rows)
}

fn config(binding: &Binding) -> Markup {
    html! {
        @if binding.config.is_empty() {
            p.soft { "Empty: the provider's defaults apply." }
        } @else {
            pre tabindex="0" { (serde_json::to_string_pretty(&binding.config).unwrap_or_default()) }
        }
    }
}
