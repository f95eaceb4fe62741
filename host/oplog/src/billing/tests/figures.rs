//! Figures move with memory only: neither with who looks at it, nor with what waits, nor with what
//! another binding did.

use super::*;
use memhost_types::BindingId;

fn of_run() -> Value {
    json!({"companyId": "acme", "runId": "r1"})
}

/// A person who looks at memory changes no figure of recall, also where the page is about an agent.
#[tokio::test]
async fn only_what_an_agent_or_a_run_recalls_counts_as_recall() {
    let host = Host::new().await;
    let write = async |sequence, kind: &str, scope: &Value, via: Option<&str>| {
        let mut fields = json!({
            "kind": kind, "recordCount": 1, "records": [handle("r1")], "scope": scope,
        });
        if let Some(via) = via {
            fields["source"] =
                json!({"kind": "manual_note", "companyId": "acme", "externalRef": via});
        }
        host.run(operation(sequence, NOON, &fields)).await;
    };
    let shown = async || {
        let report = host.ledger.evaluation(&acme(), &SumsQuery::default()).await.unwrap();
        (report.total.queries, report.total.recall_hit_rate)
    };
    let (company, of_agent) =
        (json!({"companyId": "acme"}), json!({"companyId": "acme", "agentId": "ada"}));
    write(1, "query", &of_run(), None).await;
    write(2, "query", &company, None).await;
    write(3, "query", &of_agent, Some("explorer")).await;
    write(4, "get", &company, None).await;
    write(5, "get", &of_agent, Some("explorer")).await;
    assert_eq!(shown().await, (1, Some(0.0)));
    write(6, "get", &of_agent, None).await;
    assert_eq!(shown().await, (1, Some(1.0)));
    // A program that speaks MCP asks for its agent, whether or not it names one.
    write(7, "query", &company, Some("mcp:claude-code/2.1")).await;
    assert_eq!(shown().await.0, 2);
}

#[tokio::test]
async fn an_extraction_that_waits_for_a_budget_has_not_failed() {
    let host = Host::new().await;
    for (sequence, code) in [(1, "budget_exceeded"), (2, "circuit_open"), (3, "no_binding")] {
        let fields = json!({
            "kind": "extraction", "outcome": "refused",
            "error": {"code": code, "message": "no"},
        });
        host.run(operation(sequence, NOON, &fields)).await;
    }
    let report = host.ledger.evaluation(&acme(), &SumsQuery::default()).await.unwrap();
    assert_eq!(report.total.extraction_failures, 1);
}

/// Its key is all that a binding has in common with one that was deleted.
#[tokio::test]
async fn a_binding_inherits_nothing_of_another_one_that_had_its_key() {
    let host = Host::new().await;
    let (old, new) = (BindingId(Uuid::from_u128(1)), BindingId(Uuid::from_u128(2)));
    let key: BindingKey = "b".parse().unwrap();
    let set: SetBudget = serde_json::from_value(json!({"limitCents": 1})).unwrap();
    let set_budget = |id| {
        let of = Some((&key, Some(id)));
        let change = host.ledger.set_budget(&acme(), of, Period::Day, Some(set.clone())).unwrap();
        host.ledger.apply(&acme(), change);
    };
    let is_stopped = async |id| {
        let found = host.ledger.check(&acme(), (&key, Some(id)), MayCost::Something).await;
        found.unwrap().is_some()
    };
    set_budget(old);
    assert!(!is_stopped(old).await);
    let paid = json!({
        "bindingId": old, "usage": [cents(2)], "scope": of_run(), "recordCount": 1,
    });
    host.run(operation(1, NOON, &paid)).await;
    assert!(is_stopped(old).await && !is_stopped(new).await);
    set_budget(new);
    assert!(!is_stopped(new).await, "the spending of the old binding is its own");
    host.run(operation(2, NOON, &json!({"bindingId": new, "scope": of_run()}))).await;
    let report = host.ledger.evaluation(&acme(), &SumsQuery::default()).await.unwrap();
    let queries: Vec<_> = report.bindings.iter().map(|row| (row.binding_id, row.queries)).collect();
    assert_eq!(queries, [(Some(old), 1), (Some(new), 1)]);
    let query = SumsQuery { binding_id: Some(new), ..SumsQuery::default() };
    let sums = host.ledger.sums(&acme(), &query, &[]).await.unwrap();
    assert_eq!(sums.total.cost.0, 0);
    // The company has spent it, whichever binding did.
    host.budget(None, Period::Day, 1).await;
    assert!(is_stopped(new).await);
}

#[tokio::test]
async fn sums_and_cost_events_agree_on_who_and_on_the_model() {
    let host = Host::new().await;
    let mut usage = cents(1);
    usage["model"] = json!("");
    let charged = host.run(operation(1, NOON, &json!({"usage": [usage]}))).await;
    let event = &charged.events[0];
    let group_by = GroupBy::parse_list("agent,model").unwrap();
    let query = SumsQuery { group_by, ..SumsQuery::default() };
    let sums = host.ledger.sums(&acme(), &query, &[]).await.unwrap();
    let row = sums.rows.iter().find(|row| row.sums.cost.0 > 0).unwrap();
    assert_eq!(
        (row.agent_id.as_deref(), row.model.as_deref()),
        (Some("operator"), Some("unknown"))
    );
    assert_eq!((event.agent_id.as_str(), event.model.as_str()), ("operator", "unknown"));
}

/// Sums are kept without issue, project and run, so that these are summed from the log.
#[tokio::test]
async fn sums_by_run_are_of_whatever_names_it_and_say_what_the_log_has_no_more() {
    let host = Host::new().await;
    host.run(operation(1, NOON, &json!({"scope": of_run()}))).await;
    let source = json!({"kind": "run", "companyId": "acme", "runId": "r1"});
    host.run(operation(2, NOON, &json!({"source": source}))).await;
    host.run(operation(3, NOON, &json!({}))).await;
    let query =
        SumsQuery { group_by: GroupBy::parse_list("run,issue").unwrap(), ..SumsQuery::default() };
    let sums = async || host.ledger.sums(&acme(), &query, &[]).await.unwrap();
    let rows = |sums: &Sums| -> Vec<(String, u64)> {
        let row = |row: &SumsRow| (row.run_id.clone().unwrap(), row.sums.counts.operations);
        sums.rows.iter().map(row).collect()
    };
    let all = sums().await;
    assert_eq!(rows(&all), [(String::new(), 1), ("r1".to_owned(), 2)]);
    assert!(all.is_complete);
    host.store.trim_operations(&acme(), 2).await.unwrap();
    let rest = sums().await;
    assert_eq!(rows(&rest), [(String::new(), 1), ("r1".to_owned(), 1)]);
    assert!(!rest.is_complete && rest.total.counts.operations == 3);
    // Sums that are kept need no log.
    let by_day = SumsQuery { group_by: vec![GroupBy::Day], ..SumsQuery::default() };
    let by_day = host.ledger.sums(&acme(), &by_day, &[]).await.unwrap();
    assert!(by_day.is_complete && by_day.rows[0].sums.counts.operations == 3);
}
