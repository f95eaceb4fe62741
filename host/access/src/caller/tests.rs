//! What each caller may do, in which scope, and which tokens it may give.

use jiff::SignedDuration;

use super::*;
use crate::testing::{
    BEGIN, CAPTURE, EXPORT, QUERY, acme, acting, ada, as_agent, as_person, as_role, caller,
    company, token,
};

fn may(caller: &Caller, act: Act) -> bool {
    caller.may(act, Some(&company("acme"))).is_ok()
}

#[test]
fn the_operator_may_do_everything_everywhere() {
    for act in Act::ALL {
        assert!(Caller::operator().may(*act, Some(&company("any"))).is_ok(), "{act}");
        assert!(Caller::operator().may(*act, None).is_ok(), "{act}");
    }
    assert!(!Caller::operator().is_host());
}

#[test]
fn the_host_is_no_operator_and_its_two_selves_are_told_apart() {
    let (worker, system) = (Caller::worker(), Caller::system());
    assert!(worker.is_host() && system.is_host() && worker != system);
    assert_eq!((worker.principal(), system.principal()), (&Principal::Host, &Principal::System));
    assert!(!caller(Role::Operator).is_host());
}

#[test]
fn a_token_reaches_its_own_company_only() {
    for role in [Role::CompanyAdministrator, Role::Agent, Role::Auditor, Role::Integration] {
        let caller = caller(role);
        assert!(may(&caller, QUERY), "{role}");
        assert!(caller.may(QUERY, Some(&company("other"))).is_err(), "{role}");
        assert!(caller.may(QUERY, None).is_err(), "{role}");
    }
    assert!(caller(Role::Operator).may(QUERY, Some(&company("other"))).is_ok());
}

#[test]
fn a_denial_in_another_company_says_nothing_of_the_role() {
    let denied = caller(Role::Agent).may(Act::View, Some(&company("other"))).unwrap_err();
    assert_eq!(denied, Denied::without_reason());
    let denied = caller(Role::Agent).may(Act::View, Some(&company("acme"))).unwrap_err();
    assert_eq!(denied.role, Some((Role::Agent, Act::View)));
}

#[test]
fn an_agent_acts_as_itself_and_in_its_run() {
    let mut scope = acme();
    ada(Some("r1"), None).may_in(QUERY, &mut scope).unwrap();
    assert_eq!(
        (scope.agent_id.as_ref().unwrap().as_str(), scope.run_id.as_deref()),
        ("ada", Some("r1"))
    );
    scope.run_id = Some("r2".to_owned());
    let denied = ada(Some("r1"), None).may_in(QUERY, &mut scope).unwrap_err();
    assert_eq!(denied.to_string(), "scope.runId: is not this token's run, `r1`; leave it out");
    assert!(ada(None, None).may_in(QUERY, &mut scope).is_ok());
    scope.agent_id = Some("bob".parse().unwrap());
    assert_eq!(ada(None, None).may_in(QUERY, &mut scope).unwrap_err().field, Some("scope.agentId"));
    assert!(ada(None, None).may_in(QUERY, &mut Scope::company(company("other"))).is_err());
}

#[test]
fn a_scope_is_not_filled_in_for_what_is_denied() {
    let mut scope = acme();
    assert!(ada(Some("r1"), None).may_in(EXPORT, &mut scope).is_err());
    assert_eq!(scope, acme());
}

#[test]
fn who_is_no_agent_names_any_agent_and_run() {
    let mut scope = Scope { agent_id: Some("bob".parse().unwrap()), ..acme() };
    scope.run_id = Some("r9".to_owned());
    for role in [Role::CompanyAdministrator, Role::Integration] {
        let asked = scope.clone();
        caller(role).may_in(QUERY, &mut scope).unwrap();
        assert_eq!(scope, asked, "{role}");
    }
}

#[test]
fn a_token_for_some_operations_is_good_for_no_other() {
    let caller = ada(None, Some(vec![QUERY]));
    assert!(may(&caller, QUERY) && !may(&caller, Act::Operate(OperationKind::Get)));
    for other in [Act::Deliver, Act::Emit, Act::Resolve] {
        let denied = caller.may(other, Some(&company("acme"))).unwrap_err();
        assert_eq!((denied.beyond, denied.role), (vec![other], None));
    }
}

#[test]
fn what_the_role_does_not_have_is_not_blamed_on_the_tokens_list() {
    let denied = ada(None, Some(vec![QUERY])).may(Act::View, Some(&company("acme"))).unwrap_err();
    assert_eq!((denied.beyond, denied.role), (Vec::new(), Some((Role::Agent, Act::View))));
}

#[test]
fn an_integration_that_names_nobody_may_what_an_agent_may() {
    let own = caller(Role::Integration);
    for act in Act::ALL.iter().filter(|act| act.is_runtime()) {
        assert_eq!(may(&own, *act), allows(Role::Agent, *act), "{act}");
    }
    assert!(!may(&own, Act::Resolve), "it has memory traffic only");
    assert_eq!((own.agent(), own.person(), own.is_acting()), (None, None, false));
}

#[test]
fn what_an_integration_acts_as_narrows_it_and_widens_nothing() {
    for act in Act::ALL {
        for role in [Role::Agent, Role::Auditor, Role::CompanyAdministrator] {
            let expected = allows(Role::Integration, *act) && allows(role, *act);
            assert_eq!(may(&as_role(role), *act), expected, "{role}: {act}");
            assert_eq!(may(&as_person("u1", Some(role)), *act), expected, "{role}: {act}");
        }
        assert_eq!(may(&as_agent("ada"), *act), may(&as_role(Role::Agent), *act), "{act}");
    }
    assert!(may(&as_role(Role::CompanyAdministrator), EXPORT));
    assert!(!may(&as_role(Role::CompanyAdministrator), Act::Administer));
    let denied = as_role(Role::Auditor).may(CAPTURE, Some(&company("acme"))).unwrap_err();
    assert_eq!(denied.role, Some((Role::Auditor, CAPTURE)), "the role that stops it");
}

#[test]
fn the_list_of_an_integrations_token_holds_for_whom_it_acts_for() {
    let listed = Token { operations: Some(vec![QUERY]), ..token(Role::Integration) };
    let whom = ActAs { role: Some(Role::CompanyAdministrator), ..ActAs::default() };
    let admin = Caller::of(&listed).acting(whom).unwrap();
    assert!(may(&admin, QUERY) && !may(&admin, EXPORT));
}

#[test]
fn an_integration_is_the_agent_that_it_acts_for() {
    let whom = ActAs {
        agent_id: Some("bob".parse().unwrap()),
        run_id: Some("r1".to_owned()),
        ..ActAs::default()
    };
    let bob = acting(whom);
    let mut scope = acme();
    bob.confine(&mut scope).unwrap();
    assert_eq!((scope.agent_id, scope.run_id.as_deref()), (bob.agent().cloned(), Some("r1")));
    let mut other = Scope { agent_id: Some("ada".parse().unwrap()), ..acme() };
    assert_eq!(
        bob.confine(&mut other).unwrap_err().to_string(),
        "scope.agentId: is not the agent that this request acts for, `bob`; leave it out"
    );
}

#[test]
fn a_person_is_no_agent() {
    let person = as_person("u1", None);
    let mut scope = acme();
    person.confine(&mut scope).unwrap();
    assert_eq!(scope.subject_id.as_deref(), Some("u1"));
    scope.agent_id = Some("ada".parse().unwrap());
    assert_eq!(person.confine(&mut scope).unwrap_err().field, Some("scope.agentId"));
}

#[test]
fn a_person_has_its_own_scope_and_one_with_another_role_any() {
    let mut others = Scope { subject_id: Some("u2".to_owned()), ..acme() };
    let denied = as_person("u1", None).confine(&mut others).unwrap_err();
    assert_eq!(denied.field, Some("scope.subjectId"));
    for role in [Role::Auditor, Role::CompanyAdministrator] {
        let person = as_person("u1", Some(role));
        assert_eq!(person.person(), None, "{role}");
        person.confine(&mut others).unwrap();
        let mut nobodys = acme();
        person.confine(&mut nobodys).unwrap();
        assert_eq!(nobodys, acme());
    }
}

#[test]
fn an_id_is_one_agent_or_person_whatever_it_holds() {
    for id in ["eve as person:bob", "eve as agent:bob", "x, company_administrator", "a:b", "ü 名"]
    {
        let person = as_person(id, None);
        assert_eq!((person.person(), person.agent()), (Some(id), None));
        let agent = as_agent(id);
        assert_eq!((agent.person(), agent.agent().unwrap().as_str()), (None, id));
        let mut scope = acme();
        person.confine(&mut scope).unwrap();
        assert_eq!(scope.subject_id.as_deref(), Some(id));
        let named = Token { name: format!("gw as agent:{id}"), ..token(Role::Integration) };
        let own = Caller::of(&named);
        assert!(own.agent().is_none() && own.person().is_none() && !own.is_acting(), "{id}");
    }
}

#[test]
fn each_of_those_that_a_token_acts_for_has_a_key_of_its_own() {
    let mut keys = std::collections::HashSet::new();
    let mut whom = vec![caller(Role::Integration)];
    for id in ["u1", "u1, auditor", "auditor", "eve as agent:bob"] {
        whom.extend([as_agent(id), as_person(id, None), as_person(id, Some(Role::Auditor))]);
    }
    whom.extend([as_role(Role::Auditor), as_role(Role::Agent)]);
    for caller in &whom {
        assert!(keys.insert(caller.key().to_owned()), "{}", caller.key());
    }
    // Two tokens of one name are two callers.
    let other = Token { id: memhost_types::TokenId(uuid::Uuid::max()), ..token(Role::Auditor) };
    let (one, other) = (caller(Role::Auditor), Caller::of(&other));
    assert_eq!(one.principal(), other.principal());
    assert_ne!(one.key(), other.key());
}

#[test]
fn a_value_that_is_not_accepted_is_counted_apart() {
    let (valid, refused) =
        (caller(Role::Auditor), caller(Role::Auditor).not_accepted("has expired"));
    assert_ne!(valid.key(), refused.key());
    assert_eq!((valid.principal(), valid.company()), (refused.principal(), refused.company()));
}

#[test]
fn a_program_that_speaks_mcp_is_known_by_its_client() {
    for (via, is) in [("mcp", true), ("mcp:claude-code/2.1", true), ("mcpx", false), ("", false)] {
        assert_eq!(Caller::operator().through(via).is_mcp(), is, "{via}");
    }
    assert!(!Caller::operator().is_mcp() && !is_mcp(None));
}

#[test]
fn who_may_view_a_company_sees_what_is_private_and_no_program_does() {
    let acme = company("acme");
    let viewers = [
        Caller::operator(),
        Caller::system(),
        caller(Role::Operator),
        caller(Role::CompanyAdministrator),
        caller(Role::Auditor),
        as_role(Role::Auditor),
        as_person("u1", Some(Role::CompanyAdministrator)),
    ];
    for caller in viewers {
        assert!(caller.sees_private(&acme), "{}", caller.principal());
        assert!(!caller.clone().through("mcp:x").sees_private(&acme), "{}", caller.principal());
    }
    let without_view = Token { operations: Some(vec![QUERY]), ..token(Role::Auditor) };
    let others = [
        Caller::worker(),
        caller(Role::Agent),
        caller(Role::Monitor),
        caller(Role::Integration),
        as_agent("ada"),
        as_person("u1", None),
        Caller::of(&without_view),
    ];
    for caller in others {
        assert!(!caller.sees_private(&acme), "{}", caller.principal());
    }
    assert!(!caller(Role::Auditor).sees_private(&company("other")));
}

#[test]
fn memory_is_used_by_whoever_has_one_of_its_operations() {
    let acme = company("acme");
    let only = |act| Caller::of(&Token { operations: Some(vec![act]), ..token(Role::Auditor) });
    assert!(only(QUERY).may_use_memory(&acme).is_ok());
    assert!(only(Act::View).may_use_memory(&acme).is_err());
    assert!(caller(Role::Monitor).may_use_memory(&acme).is_err());
    assert!(caller(Role::Agent).may_use_memory(&company("other")).is_err());
}

#[test]
fn who_only_watches_or_runs_the_host_reaches_no_company() {
    let host = Token { operations: Some(vec![Act::Host, Act::Monitor]), ..token(Role::Operator) };
    assert!(!Caller::of(&host).reaches_companies());
    assert!(!caller(Role::Monitor).reaches_companies());
    for role in [Role::Operator, Role::Agent, Role::Auditor, Role::Integration] {
        assert!(caller(role).reaches_companies(), "{role}");
    }
}

#[test]
fn a_replacement_needs_the_right_to_forget() {
    let acme = company("acme");
    assert!(caller(Role::Agent).may_replace(&acme).is_ok());
    let denied = ada(None, Some(vec![CAPTURE])).may_replace(&acme).unwrap_err();
    assert_eq!(denied.field, Some("replacesSource"));
    assert!(denied.reason().contains("do not include `forget`"), "{denied}");
}

#[test]
fn an_agent_and_a_person_forget_for_themselves() {
    for confined in [ada(None, None), as_agent("ada"), as_person("u1", None)] {
        assert!(!confined.is_for_everybody(), "{}", confined.principal());
    }
    for whole in [caller(Role::CompanyAdministrator), as_role(Role::Agent), Caller::operator()] {
        assert!(whole.is_for_everybody(), "{}", whole.principal());
    }
}

#[test]
fn an_operator_gives_every_token() {
    for role in Role::ALL {
        assert_eq!(Caller::operator().covers(&token(*role)), Ok(()), "{role}");
        assert_eq!(caller(Role::Operator).covers(&token(*role)), Ok(()), "{role}");
    }
}

#[test]
fn a_company_gives_no_token_of_another_company_or_of_none() {
    let admin = caller(Role::CompanyAdministrator);
    let other = Token { company_id: Some(company("other")), ..token(Role::Auditor) };
    for beyond in [other, token(Role::Operator), token(Role::Monitor)] {
        assert_eq!(admin.covers(&beyond).unwrap_err().field, Some("companyId"), "{beyond:?}");
    }
}

#[test]
fn an_administrator_gives_every_role_of_its_company() {
    let admin = caller(Role::CompanyAdministrator);
    for role in [Role::CompanyAdministrator, Role::Agent, Role::Auditor, Role::Integration] {
        assert_eq!(admin.covers(&token(role)), Ok(()), "{role}");
    }
}

#[test]
fn a_token_gives_no_operation_that_it_does_not_have() {
    let listed =
        |role, operations: &[Act]| Token { operations: Some(operations.to_vec()), ..token(role) };
    let own = Caller::of(&listed(Role::CompanyAdministrator, &[QUERY, Act::View, Act::Administer]));
    assert_eq!(own.covers(&listed(Role::Auditor, &[QUERY, Act::View])), Ok(()));
    let denied = own.covers(&listed(Role::Agent, &[QUERY, CAPTURE])).unwrap_err();
    assert_eq!((denied.field, denied.beyond), (Some("operations"), vec![CAPTURE]));
    // Without a list it would have all that its role has.
    let denied = own.covers(&token(Role::Auditor)).unwrap_err();
    assert_eq!(denied.field, Some("role"));
    assert!(denied.beyond.contains(&Act::Resolve));
}

#[test]
fn an_integration_is_covered_by_what_it_can_do_in_any_of_its_requests() {
    // An agent does what an integration that names nobody does, and less than one that says a role.
    let denied = ada(None, None).covers(&token(Role::Integration)).unwrap_err();
    assert!(denied.beyond.contains(&EXPORT), "{denied}");
}

#[test]
fn an_agent_gives_a_token_of_itself_in_its_run_only() {
    let own = Token { run_id: Some("r1".to_owned()), ..token(Role::Agent) };
    let ada = Caller::of(&own);
    assert_eq!(ada.covers(&own), Ok(()));
    let bob = Token { agent_id: Some("bob".parse().unwrap()), ..own.clone() };
    assert_eq!(ada.covers(&bob).unwrap_err().field, Some("agentId"));
    for run_id in [None, Some("r2".to_owned())] {
        let other = Token { run_id, ..own.clone() };
        assert_eq!(ada.covers(&other).unwrap_err().field, Some("runId"));
    }
}

#[test]
fn a_token_gives_none_that_outlives_it() {
    let ends = |hours| Some(BEGIN + SignedDuration::from_hours(hours));
    let until = |expires_at| Token { expires_at, ..token(Role::CompanyAdministrator) };
    let own = Caller::of(&until(ends(2)));
    assert_eq!(own.covers(&until(ends(2))), Ok(()));
    assert_eq!(own.covers(&until(ends(1))), Ok(()));
    for end in [ends(3), None] {
        assert_eq!(own.covers(&until(end)).unwrap_err().field, Some("expiresAt"));
    }
    assert_eq!(caller(Role::CompanyAdministrator).covers(&until(ends(9))), Ok(()));
}
