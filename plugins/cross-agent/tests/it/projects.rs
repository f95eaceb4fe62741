//! Whose items are seen where.

use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use serde_json::json;

use crate::{ask, ids, open, project, put};

fn agent(scope: &Scope, agent: &str) -> Scope {
    Scope { agent_id: Some(agent.to_owned()), ..scope.clone() }
}

#[test]
fn what_one_framework_wrote_another_one_recalls() {
    let mut provider = open();
    let scope = project("p1");
    put(
        &mut provider,
        &scope,
        "a",
        "The gate opens at nine",
        &json!({"agentKind": "codex", "type": "decision"}),
    );
    for agent_id in ["ada", "bob"] {
        assert_eq!(ids(&mut provider, &agent(&scope, agent_id), "when does the gate open?"), ["a"]);
    }
    let of_claude = json!({"agentKind": "claude"});
    assert!(ask(&mut provider, &scope, "gate", Some(&of_claude)).is_empty());
    let of_codex = json!({"agentKind": "codex", "type": "decision"});
    assert_eq!(ask(&mut provider, &scope, "gate", Some(&of_codex)).len(), 1);
}

#[test]
fn a_projects_items_stay_in_it_and_global_ones_do_not() {
    let mut provider = open();
    put(&mut provider, &project("p1"), "own", "gate one", &json!({}));
    put(&mut provider, &project("p1"), "global", "gate two", &json!({"visibility": "global"}));
    put(&mut provider, &Scope::company("company"), "company", "gate three", &json!({}));
    put(
        &mut provider,
        &Scope::company("company"),
        "named",
        "gate four",
        &json!({"projectId": "p1"}),
    );
    let found = |provider: &mut _, scope: &Scope| {
        let mut found = ids(provider, scope, "gate");
        found.sort();
        found
    };
    assert_eq!(found(&mut provider, &project("p1")), ["company", "global", "named", "own"]);
    assert_eq!(found(&mut provider, &project("p2")), ["company", "global"]);
    // Recall that names no project gets none of a project's; whoever looks after the company sees
    // all.
    assert_eq!(found(&mut provider, &Scope::company("company")), ["company", "global"]);
    let company = ListRequest { scope: Scope::company("company"), ..testing::list(None, 10) };
    assert_eq!(provider.list_records(company).unwrap().items.len(), 4);
    let other = ListRequest { scope: project("p2"), ..testing::list(None, 10) };
    assert_eq!(provider.list_records(other).unwrap().items.len(), 2);
    // A filter may name the project where the scope does not.
    let filter = json!({"projectId": "p1"});
    assert_eq!(ask(&mut provider, &Scope::company("company"), "gate", Some(&filter)).len(), 1);
    assert!(provider.get_record("own".into(), project("p2")).unwrap().snippet.is_none());
    let outcome = provider.forget(testing::forget(vec!["own".into()], project("p2"))).unwrap();
    assert_eq!(outcome.outcomes[0].effect, ForgetEffect::NotFound);
}

#[test]
fn partitions_hold() {
    let mut provider = open();
    let scope = project("p1");
    put(&mut provider, &agent(&scope, "ada"), "ada", "gate of ada", &json!({}));
    put(
        &mut provider,
        &Scope { subject_id: Some("s".into()), ..scope.clone() },
        "subject",
        "gate of s",
        &json!({}),
    );
    put(
        &mut provider,
        &Scope { namespace: Some("n".into()), ..scope },
        "namespace",
        "gate of n",
        &json!({}),
    );
    let bob = Scope {
        subject_id: Some("other".into()),
        namespace: Some("other".into()),
        ..agent(&project("p1"), "bob")
    };
    assert!(ids(&mut provider, &bob, "gate").is_empty());
    assert!(provider.get_record("ada".into(), bob).unwrap().snippet.is_none());
    assert_eq!(ids(&mut provider, &project("p1"), "gate").len(), 3);
}

#[test]
fn nobody_writes_over_what_they_may_not_see() {
    let mut provider = open();
    put(&mut provider, &project("p1"), "a", "gate", &json!({}));
    let request = UpsertRequest { scope: project("p2"), ..testing::upsert("op", &["mine now"]) };
    let mut request = request;
    request.records[0].id = Some("a".into());
    let error = provider.upsert_records(request).unwrap_err();
    assert!(
        matches!(&error, Error::InvalidRequest(at) if at.field.as_deref() == Some("records.0.id")),
        "{error:?}"
    );
    assert_eq!(ids(&mut provider, &project("p1"), "gate"), ["a"]);
}
