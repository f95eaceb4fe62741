//! Bindings for people: a table, which one is used, and what a change means.

use crate::page::{Columns, rows};
use crate::texts::{moment, text};
use memhost_core::{BindingView, BreakerState, Why};
use memhost_http::api::{BriefBinding, BriefResolved};
use memhost_types::Binding;

/// The columns of a list of bindings.
pub(super) const BINDINGS: &Columns<BindingView> = &[
    ("key", |view| view.binding.key.to_string()),
    ("provider", |view| match &view.serving {
        Some(build) => format!("{} {}", view.binding.provider_key, build.version),
        None => view.binding.provider_key.to_string(),
    }),
    ("assigned to", |view| {
        let company = view.is_default.then(|| "company".to_owned());
        company.into_iter().chain(agents(view)).collect::<Vec<_>>().join(", ")
    }),
    ("state", state),
    ("created", |view| moment(view.binding.created_at)),
];

/// The agents that have a binding as their own.
fn agents(view: &BindingView) -> Vec<String> {
    view.agents.iter().map(ToString::to_string).collect()
}

/// One binding as a table.
pub(super) fn one(binding: &BindingView) -> String {
    rows(std::slice::from_ref(binding), BINDINGS)
}

/// The state of a binding, in a few words.
fn state(view: &BindingView) -> String {
    let mut all = Vec::new();
    if !view.binding.enabled {
        all.push("disabled".to_owned());
    }
    match view.breaker {
        BreakerState::Open { .. } => {
            let why = view.failing.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            all.push(format!("circuit open because the provider keeps failing{why}"));
        }
        BreakerState::HalfOpen => {
            all.push("circuit half open: the provider is being retried".to_owned());
        }
        BreakerState::Closed => {}
    }
    let waiting = view.waiting.iter().map(|waiting| &waiting.build.version);
    all.extend(waiting.map(|version| format!("version {version} waits for a grant")));
    let rejected = view.rejected_versions.iter().map(|rejected| &rejected.version);
    all.extend(rejected.map(|version| format!("version {version} was rejected")));
    all.extend(view.warnings.iter().cloned());
    if all.is_empty() { "enabled".to_owned() } else { all.join("; ") }
}

/// What the deletion of a binding means.
pub(super) fn deletion(view: &BindingView) -> String {
    let (key, agents) = (&view.binding.key, agents(view));
    let whom = match (view.is_default, agents.is_empty()) {
        (true, true) => "answers for the whole company".to_owned(),
        (true, false) => format!("answers for the whole company and for {}", agents.join(", ")),
        (false, false) => format!("answers for {}", agents.join(", ")),
        (false, true) => "answers for nobody who does not name it".to_owned(),
    };
    format!(
        "The binding {key} {whom}. Delete it, with everything that its provider stored in the host?"
    )
}

/// What another default of the company means. `None`: nothing changes for anybody.
pub(super) fn reroute(present: &str, key: Option<&str>) -> Option<String> {
    match key {
        Some(key) if key == present => None,
        Some(key) => Some(format!(
            "The whole company uses {present}, except for agents with their own. Let it use {key} \
             from now on?"
        )),
        None => Some(format!(
            "The whole company uses {present}, except for agents with their own. Let it use none?"
        )),
    }
}

/// The resolved binding; with `why` also the result of every rule.
pub(super) fn resolved(answer: &BriefResolved, why: bool) -> String {
    let BriefBinding { key, provider_key, .. } = &answer.binding;
    let in_words = |why: Why| text(&why).replace('_', " ");
    let mut lines = vec![format!("{key} ({provider_key}), by {}", in_words(answer.why))];
    for step in answer.steps.iter().filter(|_| why) {
        let mark = if step.decides { "decides" } else { "       " };
        lines.push(format!("  {mark}  {}: {}", in_words(step.rule), step.says));
    }
    lines.join("\n")
}

/// What is said where a company has a default binding and the one that was asked for was not made.
pub(super) fn kept_instead(
    present: &Binding,
    key: &str,
    provider: &str,
    company: &str,
) -> Option<String> {
    let (own, of) = (present.key.as_str(), present.provider_key.as_str());
    match (own == key, of == provider) {
        (true, true) => None,
        (true, false) => Some(format!(
            "the binding `{own}` is there already, with the provider `{of}`; nothing was changed"
        )),
        (false, _) => {
            Some(format!("{company} has the default binding `{own}`; `{key}` was not made"))
        }
    }
}
