//! Whose a fact is, and who gets it.

use memhost_sdk::types::{ForgetEffect, RecordWrite};
use memhost_sdk::{Provider, testing};
use serde_json::json;

use super::{Home, fact, refused, scope};

#[test]
fn a_fact_without_an_owner_is_the_companys() {
    let mut home = Home::new();
    home.write(&scope("", "", ""), "of the company");
    home.write(&scope("ada", "", ""), "an agent's own");
    let of_ada =
        "## About This User\n\n- an agent's own\n\n## About This Workspace\n\n- of the company\n\n";
    assert_eq!(home.preamble(&scope("ada", "", "")).0.unwrap(), of_ada);
    let shared = "## About This Workspace\n\n- of the company\n\n";
    for anybody in [scope("bob", "", ""), scope("", "u", ""), scope("", "", "p"), scope("", "", "")]
    {
        assert_eq!(home.preamble(&anybody).0.unwrap(), shared);
    }
    let user = vec![super::fact_with("of nobody", json!({"scope": "user"}))];
    let (field, message) = refused(home.try_write(&scope("", "", ""), user));
    assert_eq!(field, "scope.subjectId");
    assert!(message.contains("scope.projectId"), "{message}");
}

#[test]
fn a_scope_with_both_uses_metadata() {
    let mut home = Home::new();
    let both = scope("", "u", "p");
    home.write(&both, "not said");
    home.write_as(&both, "of the workspace", json!({"scope": "drive"}));
    home.write_as(&both, "of the user", json!({"scope": "user"}));
    assert_eq!(home.texts(&scope("", "u", "")), ["not said", "of the user"]);
    assert_eq!(home.texts(&scope("", "other", "p")), ["of the workspace"]);
    let mixed = vec![fact("x"), super::fact_with("y", json!({"scope": "drive"}))];
    assert_eq!(refused(home.try_write(&both, mixed)).0, "records.1.metadata.scope");
    assert_eq!(home.list(&both).len(), 3);
}

#[test]
fn workspaces_are_isolated_in_every_call() {
    let mut home = Home::new();
    let (here, there) = (scope("", "u", "here"), scope("", "u", "there"));
    let id = home.write_as(&here, "a zebra", json!({"scope": "drive"}));
    for (scope, is_seen) in [(&here, true), (&there, false)] {
        assert_eq!(home.texts(scope).len() == 1, is_seen);
        assert_eq!(home.ask(scope, "zebra").len() == 1, is_seen);
        assert_eq!(home.preamble(scope).0.is_some(), is_seen);
        assert_eq!(home.get(scope, &id).is_some(), is_seen);
    }
    let outcome = home
        .provider
        .forget(testing::forget(vec![id.clone()], there.clone()))
        .unwrap()
        .outcomes
        .remove(0);
    assert_eq!(outcome.effect, ForgetEffect::NotFound);
    let over = RecordWrite { id: Some(id.clone()), ..fact("mine now") };
    assert_eq!(refused(home.try_write(&there, vec![over])).0, "records.0.id");
    assert_eq!(home.get(&here, &id).unwrap().text, "a zebra");
    assert!(home.get(&scope("", "", ""), &id).is_some(), "who names nobody looks after all");
}

#[test]
fn what_is_one_agents_is_kept_apart() {
    let mut home = Home::new();
    home.write(&scope("ada", "u", ""), "likes tea");
    assert_eq!(home.preamble(&scope("ada", "u", "")).1.len(), 1);
    assert!(home.preamble(&scope("bob", "u", "")).1.is_empty());
    assert_eq!(home.preamble(&scope("", "u", "")).1.len(), 1);
    home.write(&scope("", "u", ""), "of no agent");
    assert_eq!(home.preamble(&scope("bob", "u", "")).1, ["of no agent"]);
}

#[test]
fn a_namespace_is_a_workspace_and_a_partition() {
    let mut home = Home::new();
    let with = |subject: &str, namespace: &str| memhost_sdk::types::Scope {
        namespace: Some(namespace.to_owned()),
        ..scope("", subject, "")
    };
    home.write(&with("", "one"), "of the workspace one");
    assert_eq!(
        home.preamble(&with("u", "one")).0.unwrap(),
        "## About This Workspace\n\n- of the workspace one\n\n"
    );
    assert_eq!(home.preamble(&with("u", "two")).0, None);
    home.write(&with("u", "one"), "of the user, there");
    assert!(home.texts(&with("u", "two")).is_empty());
    home.write_as(&with("u", "one"), "of the user, everywhere", json!({"scope": "user"}));
    assert_eq!(home.texts(&with("u", "two")), ["of the user, everywhere"]);
}
