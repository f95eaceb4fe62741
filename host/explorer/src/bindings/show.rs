//! One binding: what serves and what waits, whom it answers for, its configuration and policy in words.

use std::sync::Arc;

use axum::extract::{Path, State};
use maud::{Markup, html};

use super::{answers_for, grants, health, limits};
use crate::kit::{
    Col, Facts, Field, Page, Row, Tone, View, badge, duration_us, exact, form, panel, percent, table, time, words,
};
use crate::pieces;
use memhost_core::{Act, BindingView, BreakerState, Service};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{Binding, BindingKey, CompanyId, OnBudget, PiiPolicy, ReviewPolicy, Snapshots, SubscribedWhen};

pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, key)): Path<(String, String)>,
    allowed: Authorized<permission::View>,
) -> Result<Markup, Problem> {
    let key: BindingKey = parse("bindingKey", &key)?;
    let shown = service.binding(&allowed.company, &key).await?;
    let asks = service.grants(&allowed.company, &key)?;
    let body = html! {
        @for warning in &shown.warnings { p.wrong { (pieces::prose(warning)) } }
        @if let BreakerState::Open { retry_after_ms } = shown.breaker {
            p.wrong {
                "Its provider kept failing and is left alone. The next trial is in " (duration_us(retry_after_ms.saturating_mul(1_000)))
                ". Reset it to try at once."
            }
        }
        div.two {
            div.stack {
                (panel("state", "State", &html! { (state(&view, &shown)) }))
                (panel("targets", "Answers for", &targets(&view, &shown)))
                (panel("policy", "Policy", &policy(&shown.binding)))
            }
            div.stack {
                (panel("limits", "Limits and their use", &limits::used(&shown)))
                (panel("budgets", "Budgets", &limits::budgets(&service, &view, &allowed.company, &key).await?))
                (panel("secrets", "Secrets", &secrets(&service, &allowed.company, &shown.binding).await?))
            }
        }
        (panel("grants", "What it may reach", &grants::shown(&view, &shown.binding, &asks)))
        (panel("versions", "Versions", &versions(&service, &shown)))
        (panel("config", "Configuration", &config(&shown.binding)))
    };
    Ok(Page::new(
        &view,
        key.as_str(),
        &format!("Served by {}. Answers for {}.", shown.binding.provider_key, answers_for(&shown)),
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
        @if view.allows(Act::Administer) {
            @if is_troubled { (form(view, &at("reset"), &html! { button.primary { "Reset" } })) }
            (form(view, &at("switch"), &html! {
                input type="hidden" name="enabled" value=(!shown.binding.enabled);
                input type="hidden" name="revision" value=(shown.binding.revision);
                @if shown.binding.enabled { button { "Disable" } } @else { button.primary { "Enable" } }
            }))
            a.button href=(at("edit")) { "Edit" }
            a.button href=(at("delete")) { "Delete" }
        }
    }
}

fn state(view: &View, shown: &BindingView) -> Facts {
    let binding = &shown.binding;
    let build = |build: &memhost_core::BuildView| {
        html! { (build.version) " " code.soft title=(build.digest) { (build.digest.short()) } }
    };
    let moment = |moment| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    let breaker = match shown.breaker {
        BreakerState::Closed => badge(Tone::Good, "closed, calls go through"),
        BreakerState::Open { .. } => badge(Tone::Bad, "open, calls are refused"),
        BreakerState::HalfOpen => badge(Tone::Warning, "half open, one call is on trial"),
    };
    Facts::default()
        .row("State", health(shown))
        .row("Breaker", breaker)
        .row("Provider", binding.provider_key.as_str())
        .row("Versions", binding.version.to_string())
        .row(
            "Serving",
            shown.serving.as_ref().map_or_else(|| html! { span.soft { "Nothing before the first operation" } }, build),
        )
        .row("Changes", binding.revision)
        .row("Made", moment(binding.created_at))
        .row("Last changed", moment(binding.updated_at))
}

fn targets(view: &View, shown: &BindingView) -> Markup {
    let key = shown.binding.key.as_str();
    let default = view.at(&["bindings", key, "default"]);
    let agent = view.at(&["bindings", key, "agents"]);
    let may = view.allows(Act::Administer);
    html! {
        ul.list {
            li.between {
                @if shown.is_default { span { "The company: it is the default" } } @else { span.soft { "It is not the company's default" } }
                @if may {
                    (form(view, &default, &html! {
                        input type="hidden" name="on" value=(!shown.is_default);
                        @if shown.is_default { button { "Take away" } } @else { button { "Make it the default" } }
                    }))
                }
            }
            @for name in &shown.agents {
                li.between {
                    span { "The agent " strong { (name) } }
                    @if may {
                        (form(view, &agent, &html! {
                            input type="hidden" name="agentId" value=(name); input type="hidden" name="on" value="false";
                            button { "Take away" span.vh { " from " (name) } }
                        }))
                    }
                }
            }
        }
        @if may {
            (form(view, &agent, &html! {
                input type="hidden" name="on" value="true";
                (Field::new("agentId", "Have an agent use it", "").required())
                button { "Point the agent here" }
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
            let all = if hook.when == SubscribedWhen::Always { ", for every event" } else { "" };
            format!("{}{all}", words(hook.kind.as_str()))
        })
        .collect();
    let pii = match policy.pii {
        PiiPolicy::Allow => "Leaves as it is",
        PiiPolicy::Redact => "Is replaced by its kind before it leaves",
        PiiPolicy::Hold => "What would be written waits for a person",
    };
    let on_budget = match policy.on_budget {
        OnBudget::Refuse => "Captures are refused",
        OnBudget::Queue => "Captures wait until there is budget again",
    };
    let snapshots = match policy.retention.snapshots {
        Snapshots::Off => "Nothing of what was asked",
        Snapshots::Bounded => "The first 2 KiB of what was asked",
        Snapshots::Full => "All of what was asked",
    };
    html! {
        (Facts::default()
            .row("Hooks", if hooks.is_empty() { "None".to_owned() } else { hooks.join("; ") })
            .row("Review", policy.review.as_ref().map_or_else(|| "Nothing waits for a person".to_owned(), review))
            .row("Personal data", pii)
            .row("Without budget", on_budget)
            .row("Kept in the log", snapshots))
    }
}

fn review(review: &ReviewPolicy) -> String {
    if review.all {
        return "Everything that is extracted waits for a person".to_owned();
    }
    let others = review.thresholds.len();
    let pii = match review.pii_risk {
        1 => ", or with possible personal data",
        2 => ", or with personal data",
        _ => "",
    };
    format!("Waits below a confidence of {} ({others} kinds have their own){pii}", percent(review.threshold))
}

async fn secrets(service: &Service, company: &CompanyId, binding: &Binding) -> Result<Markup, Problem> {
    let set = service.secrets(company).await?;
    Ok(html! {
        @if binding.grants.secrets.is_empty() { p.soft { "None is granted." } }
        ul.list {
            @for name in &binding.grants.secrets {
                @let found = set.iter().find(|secret| secret.name == *name);
                li.between {
                    code { (name) }
                    @match found {
                        Some(secret) => span.soft {
                            "goes to " (secret.origins.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                            @if secret.in_body { ", in bodies too" }
                        },
                        None => { (badge(Tone::Bad, "not set")) " " code { "memhost secret create " (name) } }
                    }
                }
            }
        }
    })
}

fn versions(service: &Service, shown: &BindingView) -> Markup {
    let key = &shown.binding.provider_key;
    let builds = service.plugins().admitted;
    let builds = builds.iter().filter(|build| build.inspection.description.provider_key == *key);
    let columns = [Col::text("Version"), Col::text("Digest"), Col::text("State"), Col::text("Why").long()];
    let rows = builds.map(|build| {
        let digest = build.inspection.digest;
        let version = &build.inspection.description.version;
        let waits = shown.waiting.iter().find(|waiting| waiting.build.digest == digest);
        let kept = shown.rejected_versions.iter().find(|kept| kept.digest == digest);
        let serves = shown.serving.as_ref().is_some_and(|serving| serving.digest == digest);
        let (state, why) = match (serves, waits, kept) {
            (true, ..) => (badge(Tone::Good, "serving"), None),
            (_, Some(waits), _) => {
                let asks: Vec<_> = waits.asks.iter().map(|ask| grants::said(&ask.permission)).collect();
                (badge(Tone::Warning, "waiting"), Some(format!("Nobody has decided yet about: {}", asks.join(", "))))
            }
            (_, _, Some(kept)) => (badge(Tone::Bad, "kept out"), Some(kept.reason.clone())),
            _ if shown.binding.version.allows(version, digest) => (badge(Tone::Plain, "available"), None),
            _ => (badge(Tone::Plain, "not allowed"), Some(format!("The binding {}", shown.binding.version))),
        };
        Row::new()
            .key(digest)
            .cell(version.to_string())
            .cell(html! { code title=(digest) { (digest.short()) } })
            .cell(state)
            .maybe(why)
    });
    table("Versions", &columns, rows)
}

fn config(binding: &Binding) -> Markup {
    html! {
        @if binding.config.is_empty() {
            p.soft { "Nothing is set: the provider's own defaults hold." }
        } @else {
            pre tabindex="0" { (serde_json::to_string_pretty(&binding.config).unwrap_or_default()) }
        }
    }
}
