//! Who may read what: every owner against every reader.

use super::*;
use crate::{Viewer, check_owner};
use memhost_types::Sharing;

fn all_readers() -> Vec<Reader> {
    let named = AWKWARD.iter().flat_map(|id| [agent(id), person(id)]);
    [Reader::All, Reader::Nobody].into_iter().chain(named).collect()
}

fn scope(agent: Option<&str>, person: Option<&str>) -> Scope {
    Scope {
        agent_id: agent.map(|id| id.parse().unwrap()),
        subject_id: person.map(str::to_owned),
        ..Scope::company(company("acme"))
    }
}

#[test]
fn only_the_owner_is_the_owner() {
    let owner = Owner::of(Visibility::Agent, &scope(Some("ada"), None)).unwrap();
    assert!(Reader::All.is(&owner) && agent("ada").is(&owner));
    for other in [agent("carol"), person("ada"), Reader::Nobody] {
        assert!(!other.is(&owner), "{other:?}");
    }
    assert_eq!(Owner::of(Visibility::Person, &scope(Some("ada"), None)), None);
}

#[test]
fn a_private_record_is_read_by_its_owner_and_by_all_readers_only() {
    for owner in all_readers().iter().filter(|reader| visibility_of(reader) != Visibility::Company)
    {
        let row = row("r", owner);
        for reader in all_readers() {
            let may = reader == Reader::All || reader == *owner;
            assert_eq!(reader.may_read(&row), may, "{reader:?} reads what {owner:?} wrote");
        }
    }
}

#[test]
fn everybody_reads_what_is_for_the_company_whoever_wrote_it() {
    for writer in all_readers() {
        let row = RecordRow { visibility: Visibility::Company, ..row("r", &writer) };
        assert!(all_readers().iter().all(|reader| reader.may_read(&row)), "{writer:?}");
    }
}

#[test]
fn a_record_that_is_private_to_nobody_is_read_by_administrators_only() {
    for visibility in [Visibility::Agent, Visibility::Person] {
        let row = RecordRow { visibility, ..row("r", &Reader::Nobody) };
        assert!(Reader::All.may_read(&row));
        for reader in [Reader::Nobody, agent("ada"), person("ada")] {
            assert!(!reader.may_read(&row), "{reader:?}, {visibility}");
            // Nobody keeps it for themselves: whoever forgets its scope forgets it.
            assert!(reader.may_forget_of(visibility, &row.scope), "{reader:?}, {visibility}");
        }
    }
}

#[test]
fn nobody_forgets_what_is_private_to_others() {
    for reader in [Reader::Nobody, agent("carol"), person("ada")] {
        assert!(!reader.may_forget_of(Visibility::Agent, &scope(Some("ada"), None)), "{reader:?}");
    }
    for reader in [Reader::All, agent("ada")] {
        assert!(reader.may_forget_of(Visibility::Agent, &scope(Some("ada"), None)), "{reader:?}");
    }
}

#[test]
fn a_scope_names_the_reader() {
    let sees = Viewer { person: None, sees_private: true };
    let blind = Viewer::default();
    for (named, expected) in [
        (scope(Some("ada"), None), agent("ada")),
        (scope(None, Some("u1")), person("u1")),
        (scope(Some("ada"), Some("u1")), agent("ada")),
    ] {
        assert_eq!(Reader::of(&sees, &named), expected);
        assert_eq!(Reader::of(&blind, &named), expected);
    }
    assert_eq!(Reader::of(&sees, &scope(None, None)), Reader::All);
    assert_eq!(Reader::of(&blind, &scope(None, None)), Reader::Nobody);
}

#[test]
fn whoever_acts_for_a_person_is_that_person_in_every_scope() {
    for sees_private in [false, true] {
        for named in [
            scope(None, None),
            scope(Some("ada"), None),
            scope(None, Some("u2")),
            scope(Some("ada"), Some("u1")),
        ] {
            let viewer = Viewer { person: Some("u1"), sees_private };
            assert_eq!(Reader::of(&viewer, &named), person("u1"), "{named:?}");
        }
    }
}

#[test]
fn the_default_reader_sees_nothing_private() {
    assert_eq!(Reader::default(), Reader::Nobody);
    assert!(!Reader::default().may_read(&row("r", &agent("ada"))));
}

#[test]
fn a_private_write_needs_a_scope_that_names_its_owner() {
    let wrong = |visibility, scope| check_owner(&scope, visibility).unwrap_err().message;
    assert!(wrong(Visibility::Agent, scope(None, Some("u"))).contains("give `scope.agentId`"));
    assert!(wrong(Visibility::Person, scope(Some("a"), None)).contains("give `scope.subjectId`"));
    check_owner(&scope(None, None), Visibility::Company).unwrap();
    check_owner(&scope(Some("a"), None), Visibility::Agent).unwrap();
    check_owner(&scope(None, Some("u")), Visibility::Person).unwrap();
}

#[test]
fn the_policy_says_who_owns_what_no_request_decides() {
    let mut binding = binding(1, "main");
    let of = |binding: &Binding, scope: &Scope, asked| {
        let found = Ownership::of(binding, scope, asked).unwrap();
        (found.visibility(), found.owner().cloned())
    };
    binding.policy.sharing = Sharing::Shared;
    assert_eq!(of(&binding, &scope(Some("ada"), None), None), (Visibility::Company, None));
    binding.policy.sharing = Sharing::PerAgent;
    let adas = (Visibility::Agent, Some(owner(&agent("ada"))));
    assert_eq!(of(&binding, &scope(Some("ada"), None), None), adas);
    assert_eq!(of(&binding, &scope(None, Some("u1")), None), (Visibility::Company, None));
    let asked = Some(Visibility::Company);
    assert_eq!(of(&binding, &scope(Some("ada"), None), asked), (Visibility::Company, None));
}

#[test]
fn a_provider_sees_an_agent_as_a_partition_only_of_its_own_records() {
    let binding = binding(1, "main");
    let scope = scope(Some("ada"), Some("u1"));
    let seen = |asked| Ownership::of(&binding, &scope, Some(asked)).unwrap().scope(&scope);
    let ada = scope.agent_id.clone();
    for (asked, partition) in
        [(Visibility::Agent, ada.clone()), (Visibility::Person, None), (Visibility::Company, None)]
    {
        let seen = seen(asked);
        assert_eq!((seen.agent_id, seen.actor_agent_id), (partition, ada.clone()), "{asked}");
        assert_eq!(seen.subject_id.as_deref(), Some("u1"));
    }
}
