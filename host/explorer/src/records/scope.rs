//! The binding and the scope in an address: reading them, writing them, and their form fields.

use maud::{Markup, html};

use crate::components::{
    Field, FilterForm, SCOPE, ScopeField, View, binding_choices, empty, query,
};
use memhost_core::{Act, ServiceError};
use memhost_http::{Problem, parse};
use memhost_types::{BindingKey, CompanyId, JsonObject, RecordId, Scope};

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
    format!("{href}{}", query(pairs(binding, scope)))
}

/// The fields of an address that name a binding and a scope.
pub(crate) fn pairs<'a>(
    binding: Option<&'a BindingKey>,
    scope: &'a Scope,
) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let binding = ("bindingKey", binding.map(BindingKey::as_str));
    std::iter::once(binding).chain(SCOPE.iter().map(move |(name, _, value)| (*name, value(scope))))
}

/// The address of a record's page, as it is seen in a scope.
pub(crate) fn record_path(
    view: &View,
    binding: &BindingKey,
    id: &RecordId,
    scope: &Scope,
) -> String {
    address(&view.at(&["records", binding.as_str(), id.as_str()]), None, scope)
}

/// The fields of a filter that name a binding and a scope. An agent has no field for the agent, and
/// gets no list of bindings.
pub(crate) fn fields<'a, T>(view: &View, form: FilterForm<'a, T>) -> FilterForm<'a, T> {
    let form = match view.allows(Act::View) {
        true => form.select("bindingKey", "Binding", binding_choices(view)),
        false => form.text("bindingKey", "Binding"),
    };
    scope_fields(view).fold(form, |form, (name, label, _)| {
        // Most people name an agent, a person or a project.
        let form = if *name == "issueId" { form.more() } else { form };
        form.text(name, label)
    })
}

/// The fields of a scope that the caller may set: an agent has its own.
fn scope_fields(view: &View) -> impl Iterator<Item = &'static ScopeField> + use<> {
    let is_agent = view.caller.agent().is_some();
    SCOPE.iter().filter(move |(name, ..)| !is_agent || *name != "agentId")
}

/// The fields of a form that name a scope.
pub(crate) fn inputs(view: &View, scope: &Scope) -> Markup {
    html! {
        div.inline {
            @for (name, label, value) in scope_fields(view) {
                (Field::new(name, label, value(scope).unwrap_or_default()))
            }
        }
    }
}

/// The empty state of a scope that no binding serves.
pub(crate) fn no_binding(view: &View) -> Markup {
    empty(
        "No binding for this scope",
        &html! {
            @if view.allows(Act::View) {
                "Create a binding, or set a default, under " a
                    href=(view.at(&["bindings"])) { "Bindings" }
                "."
            } @else { "Ask an administrator to create one." }
        },
    )
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
