//! The binding and the scope in an address: reading them, writing them, and their form fields.

use maud::{Markup, html};

use crate::components::{Field, FilterForm, View, binding_choices, escape};
use memhost_core::{Act, ServiceError};
use memhost_http::{Problem, parse};
use memhost_types::{AgentId, BindingKey, CompanyId, JsonObject, Scope};

/// Fields of an address or a form that name a scope, and some more.
macro_rules! scope_query {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(crate) struct $name {
            agent_id: Option<memhost_types::AgentId>,
            subject_id: Option<String>,
            project_id: Option<String>,
            issue_id: Option<String>,
            run_id: Option<String>,
            session_key: Option<String>,
            namespace: Option<String>,
            $($field: $type),*
        }

        impl $name {
            /// The scope that was named.
            fn scope(&self, company: &memhost_types::CompanyId) -> memhost_types::Scope {
                memhost_types::Scope {
                    company_id: company.clone(),
                    agent_id: self.agent_id.clone(),
                    actor_agent_id: None,
                    project_id: self.project_id.clone(),
                    issue_id: self.issue_id.clone(),
                    run_id: self.run_id.clone(),
                    subject_id: self.subject_id.clone(),
                    session_key: self.session_key.clone(),
                    namespace: self.namespace.clone(),
                }
            }
        }
    };
}
pub(crate) use scope_query;

scope_query! {
    /// A scope, and nothing else.
    ScopeQuery {}
}

impl ScopeQuery {
    /// The scope, for other files.
    pub(crate) fn of(&self, company: &CompanyId) -> Scope {
        self.scope(company)
    }
}

/// An address with a scope, and a binding where the address itself has none.
pub(crate) fn address(href: &str, binding: Option<&BindingKey>, scope: &Scope) -> String {
    let fields = [
        ("bindingKey", binding.map(BindingKey::as_str)),
        ("agentId", scope.agent_id.as_ref().map(AgentId::as_str)),
        ("subjectId", scope.subject_id.as_deref()),
        ("projectId", scope.project_id.as_deref()),
        ("issueId", scope.issue_id.as_deref()),
        ("runId", scope.run_id.as_deref()),
        ("sessionKey", scope.session_key.as_deref()),
        ("namespace", scope.namespace.as_deref()),
    ];
    let named =
        fields.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escape(value?))));
    let named: Vec<String> = named.collect();
    if named.is_empty() { href.to_owned() } else { format!("{href}?{}", named.join("&")) }
}

/// The fields of a filter that name a binding and a scope. An agent has no field for the agent, and
/// gets no list of bindings.
pub(crate) fn fields<'a, T>(view: &View, form: FilterForm<'a, T>) -> FilterForm<'a, T> {
    let form = match view.allows(Act::View) {
        true => form.select("bindingKey", "Binding", binding_choices(view)),
        false => form.text("bindingKey", "Binding"),
    };
    let form = if view.caller.agent().is_none() { form.text("agentId", "Agent") } else { form };
    form.text("subjectId", "Subject")
        .text("projectId", "Project")
        .more()
        .text("issueId", "Issue")
        .text("runId", "Run")
        .text("sessionKey", "Session")
        .text("namespace", "Namespace")
}

/// The fields of a form that name a scope.
pub(crate) fn inputs(view: &View, scope: &Scope) -> Markup {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let agent = scope.agent_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let one = |name: &str, label: &str, value: &str| html! { (Field::new(name, label, value)) };
    html! {
        div.inline {
            @if view.caller.agent().is_none() { (one("agentId", "Agent", &agent)) }
            (one("subjectId", "Subject", &text(&scope.subject_id)))
            (one("namespace", "Namespace", &text(&scope.namespace)))
            (one("projectId", "Project", &text(&scope.project_id)))
            (one("issueId", "Issue", &text(&scope.issue_id)))
            (one("runId", "Run", &text(&scope.run_id)))
            (one("sessionKey", "Session", &text(&scope.session_key)))
        }
    }
}

/// An object of JSON in a field.
pub(crate) fn object(field: &str, text: Option<&str>) -> Result<Option<JsonObject>, Problem> {
    text.map(|text| parse::<Object>(field, text).map(|object| object.0)).transpose()
}

struct Object(JsonObject);

impl std::str::FromStr for Object {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = serde_json::from_str(text);
        read.map(Self).map_err(|error| {
            format!("is not a JSON object, such as {{\"kind\": \"fact\"}}: {error}")
        })
    }
}

/// The message of an error that the caller can correct in the form. Any other error is returned as
/// it is.
pub(crate) fn correctable(error: ServiceError) -> Result<String, Problem> {
    use memhost_types::OperationErrorCode as Code;
    match &error {
        ServiceError::Field(_) => Ok(error.to_string()),
        ServiceError::Operation { error: cause, .. } => match cause.code {
            Code::InvalidRequest | Code::Unsupported | Code::QuotaExceeded => Ok(error.to_string()),
            _ => Err(error.into()),
        },
        _ => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_whole_scope() {
        let mut scope = Scope::company("acme".parse().unwrap());
        assert_eq!(address("/x", None, &scope), "/x");
        scope.agent_id = Some("a&b".parse().unwrap());
        scope.namespace = Some("n/1".to_owned());
        let key = "notes".parse().unwrap();
        assert_eq!(
            address("/x", Some(&key), &scope),
            "/x?bindingKey=notes&agentId=a%26b&namespace=n%2F1"
        );
    }

    #[test]
    fn only_an_object_is_metadata() {
        assert_eq!(object("metadata", None).unwrap(), None);
        assert_eq!(object("metadata", Some(r#"{"a": 1}"#)).unwrap().unwrap()["a"], 1);
        assert!(object("metadata", Some("[1]")).is_err() && object("metadata", Some("{")).is_err());
    }
}
