//! The reader that a caller is: it decides which private records are in an answer.

use memhost_access::Caller;
use memhost_records::{Reader, Viewer};
use memhost_types::Scope;

/// The reader that a caller is in a scope, which is confined to what the caller may name.
pub fn reader_of(caller: &Caller, scope: &Scope) -> Reader {
    let sees_private = caller.sees_private(&scope.company_id);
    Reader::of(&Viewer { person: caller.person(), sees_private }, scope)
}

/// The reader whose records are forgotten: everybody, or the one that a caller is in a scope.
pub fn forgetter_of(of_everybody: bool, caller: &Caller, scope: &Scope) -> Reader {
    if of_everybody { Reader::All } else { reader_of(caller, scope) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_narrows_what_an_operator_reads() {
        let scope = |agent: Option<&str>, person: Option<&str>| Scope {
            agent_id: agent.map(|id| id.parse().unwrap()),
            subject_id: person.map(str::to_owned),
            ..Scope::company("acme".parse().unwrap())
        };
        let of = |agent, person| reader_of(&Caller::operator(), &scope(agent, person));
        assert_eq!(of(None, None), Reader::All);
        assert_eq!(of(Some("ada"), None), Reader::Agent("ada".parse().unwrap()));
        assert_eq!(
            of(Some("ada"), Some("u1")),
            Reader::Agent("ada".parse().unwrap()),
            "an agent claims no person"
        );
        assert_eq!(of(None, Some("u1")), Reader::Person("u1".to_owned()));
        // The host works for whom the scope names: it may not see more than they do.
        assert_eq!(reader_of(&Caller::worker(), &scope(None, None)), Reader::Nobody);
        assert_eq!(
            reader_of(&Caller::operator().through("mcp:x"), &scope(None, None)),
            Reader::Nobody
        );
        assert_eq!(reader_of(&Caller::system(), &scope(None, None)), Reader::All);
    }
}
