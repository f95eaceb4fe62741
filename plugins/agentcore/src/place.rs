//! Where a scope's records are: its actor, and the namespaces below `/memhost/`.

use memhost_sdk::remote;
use memhost_sdk::types::Scope;

/// The part of a place that the scope does not name.
const NONE: &str = "-";

/// The actor of a scope: company, agent, subject and namespace, each as a part of a path. A
/// strategy whose namespaces begin with `/memhost/{actorId}/` puts what it extracts where its scope
/// is.
pub(crate) fn actor(scope: &Scope) -> String {
    let part = |of: &Option<String>| of.as_deref().map_or_else(|| NONE.to_owned(), escaped);
    let [agent, subject, namespace] =
        [&scope.agent_id, &scope.subject_id, &scope.namespace].map(part);
    format!("{}/{agent}/{subject}/{namespace}", escaped(&scope.company_id))
}

/// The beginning of every namespace of a company.
pub(crate) fn path(company: &str) -> String {
    format!("/memhost/{}/", escaped(company))
}

/// The namespace of records that are written as they are.
pub(crate) fn records(scope: &Scope) -> String {
    format!("/memhost/{}/records", actor(scope))
}

/// The scope of a namespace, and whether its records were written as they are; none for one of
/// somebody else.
pub(crate) fn read(namespace: &str) -> Option<(Scope, bool)> {
    let mut parts = namespace.strip_prefix("/memhost/")?.split('/');
    let mut next = || parts.next().filter(|part| !part.is_empty());
    let company = unescaped(next()?)?;
    let mut part = || {
        let part = next()?;
        if part == NONE { Some(None) } else { unescaped(part).map(Some) }
    };
    let (agent_id, subject_id, namespace) = (part()?, part()?, part()?);
    let rest: Vec<&str> = parts.collect();
    Some((
        Scope { agent_id, subject_id, namespace, ..Scope::company(&company) },
        rest == ["records"],
    ))
}

/// A text as a part of a place, which is never [`NONE`].
pub(crate) fn escaped(text: &str) -> String {
    remote::escaped(text, '_', if text == NONE { "" } else { "-" })
}

/// The original of an escaped text.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    remote::unescaped(text, '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let scope = Scope {
            agent_id: Some("-".to_owned()),
            namespace: Some("a_b/é".to_owned()),
            ..Scope::company("acme.eu")
        };
        assert_eq!(records(&scope), "/memhost/acme_2eeu/_2d/-/a_5fb_2f_c3_a9/records");
        assert_eq!(read(&records(&scope)), Some((scope.clone(), true)));
        assert_eq!(
            read(&format!("/memhost/{}/preferences/s-1", actor(&scope))),
            Some((scope, false))
        );
        for other in [
            "/",
            "/memhost/acme",
            "/memhost/acme/a/b",
            "/memhost/acme/a/b/_zz/records",
            "/users/a/b/c/d",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
