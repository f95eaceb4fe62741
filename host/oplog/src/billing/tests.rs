//! The rules of budgets, cost events and sums, on a store in memory.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::testing::{NOON, TestClock, acme, cents, company, handle, memory, operation, paid};
use memhost_store::{self as store, Store, Table};
use memhost_types::{
    BindingKey, BudgetState, CompanyId, CostEvent, CostEventFilter, Microcents, Operation, Period,
    Principal, SetBudget,
};

mod figures;

const DAY: SignedDuration = SignedDuration::from_hours(24);

struct Host {
    store: Arc<dyn Store>,
    clock: Arc<TestClock>,
    ledger: Ledger,
}

impl Host {
    async fn new() -> Self {
        Self::on(memory(), TestClock::new()).await
    }

    async fn on(store: Arc<dyn Store>, clock: Arc<TestClock>) -> Self {
        let ledger = Ledger::open(Arc::clone(&store), clock.clone()).await.unwrap();
        Self { store, clock, ledger }
    }

    /// The same store after a restart.
    async fn restarted(&self) -> Self {
        Self::on(Arc::clone(&self.store), Arc::clone(&self.clock)).await
    }

    /// Sets a budget of so many cents, and writes it.
    async fn budget(&self, binding: Option<&str>, period: Period, cents: u64) {
        let set: SetBudget = serde_json::from_value(json!({"limitCents": cents})).unwrap();
        let binding: Option<BindingKey> = binding.map(|key| key.parse().unwrap());
        let change = binding.as_ref().map(|key| (key, None));
        let change = self.ledger.set_budget(&acme(), change, period, Some(set)).unwrap();
        store::write(&*self.store, std::slice::from_ref(&change.change)).await.unwrap();
        self.ledger.apply(&acme(), change);
    }

    async fn check(&self, binding: &str) -> Option<Exceeded> {
        self.check_as(binding, MayCost::Something).await
    }

    async fn check_as(&self, binding: &str, costs: MayCost) -> Option<Exceeded> {
        let binding: BindingKey = binding.parse().unwrap();
        self.ledger.check(&acme(), (&binding, None), costs).await.unwrap()
    }

    /// Charges an operation and writes it with its events.
    async fn run(&self, operation: Operation) -> Charged {
        let charged = self.ledger.charge(&operation).unwrap();
        let written = self.store.write_operation(Arc::new(operation), charged.writes.clone());
        written.await.unwrap();
        charged
    }

    async fn spent(&self) -> u64 {
        self.ledger.budgets(&acme()).await.unwrap()[0].spent.0 / 1_000_000
    }
}

fn cost_event(cost: u64) -> CostEvent {
    CostEvent::of(&paid(1, NOON, cost)).remove(0)
}

#[tokio::test]
async fn a_budget_that_is_used_up_stops_the_next_call_and_not_the_one_before() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 5).await;
    assert!(host.check("b").await.is_none());
    host.run(paid(1, NOON, 4)).await;
    assert!(host.check("b").await.is_none(), "a cent is left");
    host.run(paid(2, NOON, 3)).await;
    let exceeded = host.check("b").await.unwrap();
    assert_eq!(exceeded.spent, Microcents(7_000_000));
    let message = exceeded.to_string();
    assert!(message.contains("5 cents a day") && message.contains("7 cents"), "{message}");
    assert!(message.contains("2026-03-11T00:00:00Z"), "{message}");
    assert!(message.contains("memhost budget update"), "{message}");
}

#[tokio::test]
async fn a_day_begins_with_nothing_spent_and_its_month_goes_on() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 5).await;
    host.budget(None, Period::Month, 8).await;
    host.check("b").await;
    host.run(paid(1, NOON, 5)).await;
    assert_eq!(host.check("b").await.unwrap().budget.period, Period::Day);
    host.clock.advance(DAY);
    assert!(host.check("b").await.is_none());
    host.run(paid(2, NOON + DAY, 3)).await;
    assert_eq!(host.check("b").await.unwrap().budget.period, Period::Month);
    host.clock.advance(DAY * 30);
    assert!(host.check("b").await.is_none(), "a month later");
}

#[tokio::test]
async fn of_several_budgets_the_one_that_is_reset_last_is_named() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 1).await;
    host.budget(Some("b"), Period::Month, 1).await;
    host.check("b").await;
    host.run(paid(1, NOON, 1)).await;
    let exceeded = host.check("b").await.unwrap();
    assert_eq!(exceeded.budget.period, Period::Month);
    assert!(exceeded.to_string().contains("budget of the binding `b`"));
}

#[tokio::test]
async fn a_bindings_budget_stops_that_binding_and_the_companys_stops_all() {
    let host = Host::new().await;
    host.budget(Some("b"), Period::Day, 1).await;
    host.check("b").await;
    host.run(paid(1, NOON, 1)).await;
    assert!(host.check("b").await.is_some() && host.check("other").await.is_none());
    host.budget(None, Period::Day, 1).await;
    assert!(host.check("other").await.is_some());
}

#[tokio::test]
async fn what_costs_nothing_is_not_stopped_until_it_has_cost_something_this_month() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 1).await;
    host.check("b").await;
    let other = json!({"bindingKey": "other", "usage": [cents(1)]});
    host.run(operation(1, NOON, &other)).await;
    assert!(host.check_as("b", MayCost::Nothing).await.is_none());
    assert!(host.check_as("b", MayCost::IfItDidBefore).await.is_none());
    assert!(host.check_as("other", MayCost::IfItDidBefore).await.is_some());
    assert!(host.check_as("other", MayCost::Nothing).await.is_none());
}

#[tokio::test]
async fn a_change_of_a_budgets_state_is_told_once() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 10).await;
    host.check("b").await;
    let mut states = Vec::new();
    for sequence in 1..=12 {
        let charged = host.run(paid(sequence, NOON, 1)).await;
        states.extend(charged.turned.iter().map(|view| (sequence, view.state)));
    }
    assert_eq!(states, [(8, BudgetState::Warning), (10, BudgetState::Stopped)]);
}

#[tokio::test]
async fn what_was_spent_before_the_budget_was_set_counts() {
    let host = Host::new().await;
    host.check("b").await;
    host.run(paid(1, NOON, 7)).await;
    host.budget(None, Period::Day, 5).await;
    assert!(host.check("b").await.is_some());
}

#[tokio::test]
async fn what_was_spent_before_a_restart_counts_once() {
    let host = Host::new().await;
    host.budget(None, Period::Month, 100).await;
    host.check("b").await;
    host.run(paid(1, NOON, 7)).await;
    host.run(paid(2, NOON, 2)).await;
    assert_eq!(host.spent().await, 9);
    let again = host.restarted().await;
    assert_eq!(again.spent().await, 9, "from the sums");
    again.run(paid(3, NOON, 1)).await;
    assert_eq!(again.spent().await, 10);
    assert_eq!(again.restarted().await.spent().await, 10);
}

#[tokio::test]
async fn an_operation_that_is_charged_before_the_sums_are_read_counts_once() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 100).await;
    host.run(paid(1, NOON, 7)).await;
    assert_eq!(host.spent().await, 7);
}

#[tokio::test]
async fn what_many_operations_spend_at_once_is_exact() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 1_000_000).await;
    host.check("b").await;
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let ledger = &host.ledger;
            scope.spawn(move || {
                for n in 0..250 {
                    ledger.charge(&paid(thread * 250 + n, NOON, 3)).unwrap();
                }
            });
        }
    });
    assert_eq!(host.spent().await, 3_000);
}

#[tokio::test]
async fn no_operation_waits_for_another_companys_account() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 1).await;
    host.check("b").await;
    let zeta = company("zeta");
    let key: BindingKey = "b".parse().unwrap();
    host.ledger.check(&zeta, (&key, None), MayCost::Something).await.unwrap();
    let account = host.ledger.known(&acme()).unwrap();
    let _held = account.lock();
    let of_zeta = operation(
        1,
        NOON,
        &json!({
            "companyId": "zeta", "scope": {"companyId": "zeta"}, "usage": [cents(1)],
        }),
    );
    host.ledger.charge(&of_zeta).unwrap();
}

#[tokio::test]
async fn a_budget_that_is_not_there_cannot_be_removed_and_one_that_is_can() {
    let host = Host::new().await;
    let remove = || host.ledger.set_budget(&acme(), None, Period::Day, None);
    let error = remove().unwrap_err().to_string();
    assert!(error.contains("no day budget of the company"), "{error}");
    host.budget(None, Period::Day, 1).await;
    let change = remove().unwrap();
    assert!(change.before.is_some() && change.after.is_none());
    store::write(&*host.store, std::slice::from_ref(&change.change)).await.unwrap();
    host.ledger.apply(&acme(), change);
    assert!(host.ledger.budgets(&acme()).await.unwrap().is_empty());
    assert!(host.restarted().await.ledger.budgets(&acme()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_share_beyond_the_whole_is_refused() {
    let host = Host::new().await;
    let set = serde_json::from_value(json!({"limitCents": 1, "warnShare": 1.5})).unwrap();
    let error = host.ledger.set_budget(&acme(), None, Period::Day, Some(set)).unwrap_err();
    assert!(error.to_string().contains("warnShare: is 1.5; 0 to 1 is allowed"), "{error}");
}

#[tokio::test]
async fn budgets_are_listed_those_of_the_company_first() {
    let host = Host::new().await;
    host.budget(Some("b"), Period::Day, 1).await;
    host.budget(Some("a"), Period::Month, 1).await;
    host.budget(None, Period::Month, 1).await;
    host.budget(None, Period::Day, 1).await;
    let all = host.ledger.budgets(&acme()).await.unwrap();
    let names = all.iter().map(|view| {
        let key = view.budget.binding_key.as_ref().map_or("", |key| key.as_str());
        format!("{key}/{}", view.budget.period)
    });
    assert_eq!(names.collect::<Vec<_>>(), ["/day", "/month", "a/month", "b/day"]);
}

#[tokio::test]
async fn an_erased_company_has_no_budget_and_has_spent_nothing() {
    let host = Host::new().await;
    host.budget(None, Period::Day, 1).await;
    host.check("b").await;
    host.run(paid(1, NOON, 5)).await;
    host.store.erase_company(&acme()).await.unwrap();
    host.ledger.forget(&acme());
    assert!(host.check("b").await.is_none());
    host.budget(None, Period::Day, 1).await;
    assert_eq!(host.spent().await, 0);
}

fn costs(filter: Value) -> CostEventFilter {
    serde_json::from_value(filter).unwrap()
}

fn amounts(events: &[CostEvent]) -> Vec<u64> {
    events.iter().map(|event| event.cost.0 / 1_000_000).collect()
}

#[tokio::test]
async fn each_use_that_is_billed_has_one_event_beside_its_operation() {
    let host = Host::new().await;
    let free = json!({"provider": "p", "billingType": "subscription_included", "costCents": 9});
    let usage = json!({"usage": [cents(1), free, cents(2)]});
    let charged = host.run(operation(1, NOON, &usage)).await;
    assert_eq!(amounts(&charged.events), [1, 2]);
    let found = host.ledger.newest_cost_events(&acme(), &costs(json!({})), None, 10).await.unwrap();
    assert_eq!(amounts(&found.0), [1, 2]);
    let ids: Vec<Uuid> = found.0.iter().map(|event| event.id).collect();
    assert!(host.ledger.has_cost_event(&acme(), ids[1]).await.unwrap());
    assert!(!host.ledger.has_cost_event(&acme(), Uuid::nil()).await.unwrap());
    assert!(!host.ledger.has_cost_event(&company("zeta"), ids[1]).await.unwrap());
}

#[tokio::test]
async fn the_newest_events_come_first_and_pages_join() {
    let host = Host::new().await;
    for n in 1..=5 {
        let at = NOON + SignedDuration::from_secs(i64::try_from(n).unwrap());
        host.run(paid(n, at, n)).await;
    }
    let (mut all, mut from) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let filter = costs(json!({}));
        let page = host.ledger.newest_cost_events(&acme(), &filter, from.as_deref(), 2).await;
        let (events, next) = page.unwrap();
        all.extend(amounts(&events));
        match next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    assert_eq!(all, [5, 4, 3, 2, 1]);
    let of_other = costs(json!({"bindingKey": "other"}));
    let none = host.ledger.newest_cost_events(&acme(), &of_other, None, 10).await.unwrap();
    assert!(none.0.is_empty());
}

#[tokio::test]
async fn a_reader_from_the_oldest_on_gets_the_event_of_an_operation_that_ended_late() {
    let host = Host::new().await;
    let late = paid(1, NOON, 1);
    host.run(paid(2, NOON + SignedDuration::from_secs(1), 2)).await;
    let first = host.oldest(0).await;
    assert_eq!((amounts(&first.events), first.more), (vec![2], false));
    host.run(late).await;
    let second = host.oldest(first.through).await;
    assert_eq!(amounts(&second.events), [1]);
    let third = host.oldest(second.through).await;
    assert!(third.events.is_empty() && third.through == second.through);
    assert_eq!(third.trimmed_before, None);
}

#[tokio::test]
async fn old_events_are_removed_and_a_reader_that_comes_back_learns_it() {
    let host = Host::new().await;
    for n in 1..=3 {
        let at = NOON + DAY * i32::try_from(n).unwrap();
        host.run(paid(n, at, n)).await;
    }
    host.clock.advance(DAY * 5);
    assert_eq!(host.ledger.trim_cost_events(&acme(), 3).await.unwrap(), 1);
    assert_eq!(host.ledger.trim_cost_events(&acme(), 3).await.unwrap(), 0);
    let all = costs(json!({}));
    let left = host.ledger.newest_cost_events(&acme(), &all, None, 10).await.unwrap();
    assert_eq!(amounts(&left.0), [3, 2]);
    let read = host.oldest(0).await;
    assert_eq!(amounts(&read.events), [2, 3]);
    assert_eq!(read.trimmed_before, Some(NOON + DAY * 2));
    assert_eq!(host.spent_of_sums().await, 6, "sums keep their cost");
}

impl Host {
    async fn oldest(&self, after: u64) -> OldestFirst {
        let all = costs(json!({}));
        self.ledger.oldest_cost_events(&acme(), &all, after, 10).await.unwrap()
    }

    async fn spent_of_sums(&self) -> u64 {
        let sums = self.ledger.sums(&acme(), &SumsQuery::default(), &[]).await;
        sums.unwrap().total.cost.0 / 1_000_000
    }
}

#[tokio::test]
async fn an_event_that_only_an_import_can_bring_is_removed_a_day_later() {
    let host = Host::new().await;
    let event = cost_event(1);
    let key = [&store::newest_first(&acme(), event.operation_id.uuid())[..], &[0; 4]].concat();
    let value = store::encode("cost event", &event).unwrap();
    let change = store::Change::insert(Table::CostEvents, key, value);
    store::write(&*host.store, &[change]).await.unwrap();
    host.clock.advance(DAY * 3);
    assert_eq!(host.ledger.trim_cost_events(&acme(), 2).await.unwrap(), 0);
    host.clock.advance(DAY);
    assert_eq!(host.ledger.trim_cost_events(&acme(), 2).await.unwrap(), 1);
}

#[tokio::test]
async fn a_flat_charge_belongs_to_a_cost_event_that_is_there() {
    let host = Host::new().await;
    let charge = |cost_event: Option<Uuid>| {
        let mut entered = json!({
            "eventKind": "subscription_fee", "direction": "debit", "biller": "openai",
            "amountCents": 100, "occurredAt": NOON,
        });
        if let Some(id) = cost_event {
            entered["costEventId"] = json!(id);
        }
        serde_json::from_value(entered).unwrap()
    };
    let by = Principal::Operator;
    let error = host.ledger.finance_event(&acme(), &by, charge(Some(Uuid::nil()))).await;
    assert!(error.unwrap_err().to_string().contains("costEventId"));
    let (event, change) = host.ledger.finance_event(&acme(), &by, charge(None)).await.unwrap();
    store::write(&*host.store, &[change]).await.unwrap();
    let listed = host.ledger.finance_events(&acme(), None, 10).await.unwrap();
    assert_eq!(listed.0, [event]);
}

/// Reads a row of an import.
fn import(company: &CompanyId, table: Table, key: &[u8], value: &Value) -> Result<bool, String> {
    BillingRow::read(company, table, key, value).map(|row| row.is_some())
}

#[test]
fn a_row_of_an_import_has_the_key_that_follows_from_it() {
    let event = cost_event(1);
    let key = |id: Uuid| [&id.into_bytes().map(|byte| !byte)[..], &[0, 0, 0, 0]].concat();
    let (own, value) = (key(event.operation_id.uuid()), json!(event));
    assert_eq!(import(&acme(), Table::CostEvents, &own, &value), Ok(true));
    let wrong = import(&acme(), Table::CostEvents, &key(Uuid::nil()), &value);
    assert_eq!(wrong, Err("has a key that is not its own".to_owned()));
    import(&company("zeta"), Table::CostEvents, &own, &value).unwrap_err();
    assert_eq!(import(&acme(), Table::Jobs, &own, &value), Ok(false), "not a table of billing");
    let budget = |share: f64| {
        json!({
            "companyId": "acme", "period": "day", "limitCents": 1, "warnShare": share,
            "setAt": NOON,
        })
    };
    assert_eq!(import(&acme(), Table::Budgets, b"\0day", &budget(0.5)), Ok(true));
    import(&acme(), Table::Budgets, b"b\0day", &budget(0.5)).unwrap_err();
    let error = import(&acme(), Table::Budgets, b"\0day", &budget(7.0)).unwrap_err();
    assert!(error.contains("warnShare") && error.contains("0 to 1"), "{error}");
}

#[test]
fn the_order_of_an_import_leads_to_events_and_its_numbers_leave_room() {
    let event = [&store::newest_first(&acme(), Uuid::nil())[..], &[0; 4]].concat();
    let place = store::encode_cost_place(&acme(), &event).unwrap();
    let place: Value = store::decode("place", &place).unwrap();
    let key = |number: u64| [&b"n"[..], &number.to_be_bytes()].concat();
    assert_eq!(import(&acme(), Table::CostOrder, &key(1), &place), Ok(true));
    for number in [0, (1 << 52) + 1] {
        let error = import(&acme(), Table::CostOrder, &key(number), &place).unwrap_err();
        assert!(error.contains("has the number"), "{error}");
    }
    import(&acme(), Table::CostOrder, &key(1), &json!("00")).unwrap_err();
    let trimmed = json!({"through": 7, "before": NOON});
    assert_eq!(import(&acme(), Table::CostOrder, b"t", &trimmed), Ok(true));
    import(&acme(), Table::CostOrder, b"x", &trimmed).unwrap_err();
}

#[tokio::test]
async fn sums_are_grouped_and_add_up_to_their_total() {
    let host = Host::new().await;
    host.run(paid(1, NOON, 1)).await;
    host.run(operation(2, NOON, &json!({"bindingKey": "other", "usage": [cents(2)]}))).await;
    host.run(paid(3, NOON + DAY, 4)).await;
    host.clock.advance(DAY);
    let sums = |group_by: &str, binding: Option<&str>| {
        let group_by = GroupBy::parse_list(group_by).unwrap();
        let binding_key = binding.map(|key| key.parse().unwrap());
        let query = SumsQuery { group_by, binding_key, ..SumsQuery::default() };
        let ledger = &host.ledger;
        async move { ledger.sums(&acme(), &query, &[]).await.unwrap() }
    };
    let costs = |sums: &Sums| -> Vec<u64> {
        sums.rows.iter().map(|row| row.sums.cost.0 / 1_000_000).collect()
    };
    let days = sums("day", None).await;
    assert_eq!((costs(&days), days.total.cost), (vec![3, 4], Microcents(7_000_000)));
    let by_binding = sums("binding", None).await;
    let keys = by_binding.rows.iter().map(|row| row.binding_key.clone().unwrap());
    assert_eq!(keys.collect::<Vec<_>>(), ["b", "other"]);
    assert_eq!(costs(&by_binding), [5, 2]);
    let one = sums("", Some("other")).await;
    assert_eq!((costs(&one), one.total.counts.operations), (vec![2], 1));
}

#[tokio::test]
async fn an_agent_is_one_row_whoever_names_it() {
    let host = Host::new().await;
    let asked = [
        json!({"scope": {"companyId": "acme", "agentId": "ada"}}),
        json!({"principal": "agent:ada"}),
        json!({"principal": "integration:gw as agent:ada"}),
        json!({"principal": "operator"}),
    ];
    for (number, fields) in (1..).zip(&asked) {
        host.run(operation(number, NOON, fields)).await;
    }
    let group_by = GroupBy::parse_list("agent").unwrap();
    let query = SumsQuery { group_by, ..SumsQuery::default() };
    let rows = host.ledger.sums(&acme(), &query, &[]).await.unwrap().rows;
    let rows: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| (row.agent_id.as_deref().unwrap(), row.sums.counts.operations))
        .collect();
    assert_eq!(rows, [("ada", 3), ("operator", 1)]);
}

#[tokio::test]
async fn the_first_day_of_a_query_is_not_after_its_last() {
    let host = Host::new().await;
    let day = |day: &str| Some(day.parse().unwrap());
    let query =
        SumsQuery { since: day("2026-03-02"), until: day("2026-03-01"), ..SumsQuery::default() };
    let error = host.ledger.sums(&acme(), &query, &[]).await.unwrap_err().to_string();
    assert!(error.starts_with("since: is 2026-03-02"), "{error}");
    let error = GroupBy::parse_list("day,weekday").unwrap_err().to_string();
    assert!(error.contains("`weekday`") && error.contains("day, binding, agent"), "{error}");
}

#[tokio::test]
async fn a_query_hits_if_a_record_of_it_is_used_within_a_day() {
    let host = Host::new().await;
    let at = |hours| NOON + SignedDuration::from_hours(hours);
    let write = |sequence, at: Timestamp, kind: &str, record: &str| {
        let fields = json!({
            "kind": kind, "recordCount": 1, "records": [handle(record)],
            "scope": {"companyId": "acme", "runId": "r1"},
        });
        host.run(operation(sequence, at, &fields))
    };
    write(1, at(0), "query", "r1").await;
    write(2, at(0), "query", "r2").await;
    host.run(operation(3, at(1), &json!({"scope": {"companyId": "acme", "runId": "r1"}}))).await;
    write(4, at(23), "get", "r1").await;
    write(5, at(25), "get", "r2").await;
    host.clock.advance(DAY * 2);
    let report = host.ledger.evaluation(&acme(), &SumsQuery::default()).await.unwrap();
    assert_eq!((report.total.queries, report.total.recall_hit_rate), (3, Some(0.5)));
    let empty = report.total.empty_query_rate.unwrap();
    assert!((empty - 1.0 / 3.0).abs() < 1e-9 && report.is_complete, "{empty}");
    assert_eq!(report.bindings.len(), 1);
}
