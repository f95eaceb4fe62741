//! Tests of the rules of bindings, in a store and without a provider.

use crate::activity::NewActivity;
use crate::bindings::{NewBinding, StoredTarget, Why, binding_key};
use crate::error::BindingError;
use crate::testing::{Process, id, known_key, new_binding, process, store};
use memhost_store::{Change, Table};
use memhost_types::{Activity, ActivityAction, AgentId, Binding, BindingKey, Principal, Target};

const CHANGED: (&Principal, ActivityAction) =
    (&Principal::Operator, ActivityAction::BindingChanged);

fn key(key: &str) -> BindingKey {
    key.parse().unwrap()
}

fn agent(agent: &str) -> AgentId {
    agent.parse().unwrap()
}

impl Process {
    async fn assign(&self, company: &str, to: Option<&str>, binding: Option<&str>) {
        let target = to.map_or(Target::Company, |to| Target::Agent(agent(to)));
        let binding = binding.map(key);
        let company = id(company);
        let set =
            self.bindings.set_target(&Principal::Operator, &company, target, binding.as_ref());
        set.await.unwrap();
    }

    fn resolved(
        &self,
        to: Option<&str>,
        named: Option<&str>,
    ) -> Result<(String, Why), BindingError> {
        let (to, named) = (to.map(agent), named.map(key));
        let found = self.bindings.resolve(&id("acme"), to.as_ref(), named.as_ref())?;
        Ok((found.binding.key.to_string(), found.why))
    }

    /// The company's activity log, newest first.
    async fn log(&self, company: &str) -> Vec<Activity> {
        self.activity.page(&id(company), None, 100).await.unwrap().0
    }
}

#[tokio::test]
async fn a_named_binding_goes_before_the_agents_and_that_before_the_default() {
    let host = process().await;
    for (key, is_default) in [("a", true), ("b", false), ("c", false)] {
        host.make("acme", key, is_default).await;
    }
    host.assign("acme", Some("ada"), Some("b")).await;
    let is = |key: &str, why| (key.to_owned(), why);
    assert_eq!(host.resolved(Some("ada"), Some("c")).unwrap(), is("c", Why::ExplicitKey));
    assert_eq!(host.resolved(Some("ada"), None).unwrap(), is("b", Why::AgentOverride));
    assert_eq!(host.resolved(Some("bob"), None).unwrap(), is("a", Why::CompanyDefault));
    assert_eq!(host.resolved(None, None).unwrap(), is("a", Why::CompanyDefault));
}

#[tokio::test]
async fn a_name_that_is_wrong_does_not_fall_back_to_the_default() {
    let host = process().await;
    host.make("acme", "a", true).await;
    let error = host.resolved(None, Some("b")).unwrap_err();
    assert!(matches!(&error, BindingError::NotFound { key, .. } if key.as_str() == "b"));
    assert!(error.to_string().contains("memhost binding list"), "{error}");
}

#[tokio::test]
async fn a_company_without_a_default_says_for_whom_none_answers() {
    let host = process().await;
    host.make("acme", "a", false).await;
    let error = host.resolved(Some("ada"), None).unwrap_err();
    assert!(matches!(&error, BindingError::NoDefault { agent: Some(_), .. }));
    assert!(error.to_string().contains("agent ada of the company acme"), "{error}");
    // The binding of another company never answers.
    host.make("other", "default", true).await;
    assert!(host.resolved(None, None).is_err());
}

#[tokio::test]
async fn the_rules_are_explained_in_their_order_and_one_decides() {
    let host = process().await;
    host.make("acme", "a", true).await;
    host.make("acme", "b", false).await;
    host.assign("acme", Some("ada"), Some("b")).await;
    let ada = agent("ada");
    let steps = host.bindings.explain(&id("acme"), Some(&ada), None);
    let decides: Vec<bool> = steps.iter().map(|step| step.decides).collect();
    assert_eq!(decides, [false, true, false]);
    let says: Vec<&str> = steps.iter().map(|step| step.says.as_str()).collect();
    assert_eq!(
        says,
        [
            "the request names no binding",
            "the agent ada is assigned to `b`",
            "the default of the company is `a`"
        ]
    );
    // A name decides even where there is no such binding.
    let steps = host.bindings.explain(&id("acme"), None, Some(&key("none")));
    assert!(steps[0].decides && !steps[2].decides, "{steps:?}");
    assert_eq!(steps[1].says, "there is no agent in the scope");
}

#[tokio::test]
async fn a_key_is_taken_once_in_a_company_and_free_in_another() {
    let host = process().await;
    host.make("acme", "a", false).await;
    let again = host.bindings.create(&Principal::Operator, &id("acme"), new_binding("a")).await;
    assert!(matches!(again, Err(BindingError::Exists { .. })));
    host.make("acme2", "a", false).await;
    assert_eq!(host.bindings.list(&id("acme")).len(), 1);
    assert_eq!(host.bindings.companies(), [id("acme"), id("acme2")]);
}

#[tokio::test]
async fn a_key_that_another_process_took_is_taken() {
    let store = store();
    let (ours, theirs) = (Process::on(&store).await, Process::on(&store).await);
    ours.make("acme", "a", false).await;
    let again = theirs.bindings.create(&Principal::Operator, &id("acme"), new_binding("a")).await;
    assert!(matches!(again, Err(BindingError::Exists { .. })));
    assert!(theirs.bindings.list(&id("acme")).is_empty(), "the cache has what was written only");
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let store = store();
    let host = Process::on(&store).await;
    host.make("acme", "a", true).await;
    host.make("acme", "b", false).await;
    host.assign("acme", Some("ada"), Some("b")).await;
    let again = Process::on(&store).await;
    assert_eq!(again.bindings.list(&id("acme")), host.bindings.list(&id("acme")));
    assert_eq!(again.bindings.targets(&id("acme")), host.bindings.targets(&id("acme")));
}

#[tokio::test]
async fn a_new_binding_that_becomes_the_default_leaves_who_answered_before() {
    let host = process().await;
    for made in ["a", "b"] {
        host.make("acme", made, true).await;
    }
    host.make("acme", "c", false).await;
    let log = host.log("acme").await;
    let turned: Vec<_> =
        log.iter().filter(|entry| entry.action == ActivityAction::TargetChanged).collect();
    let [second, first] = turned.as_slice() else { panic!("{log:?}") };
    assert_eq!((&second.before, &second.after), (&Some("a".into()), &Some("b".into())));
    assert_eq!((&first.before, &first.after), (&None, &Some("a".into())));
    assert_eq!(second.subject, "the company");
}

#[tokio::test]
async fn a_change_counts_the_revision_and_no_change_does_not() {
    let host = process().await;
    host.make("acme", "a", false).await;
    let (company, a) = (id("acme"), key("a"));
    let update = host.bindings.update(&company, &a, Some(1), CHANGED, |binding| {
        binding.enabled = false;
    });
    assert_eq!(update.await.unwrap().revision, 2);
    let same = host.bindings.update(&company, &a, None, CHANGED, |binding| binding.enabled = false);
    assert_eq!(same.await.unwrap().revision, 2);
    let log = host.log("acme").await;
    let actions: Vec<ActivityAction> = log.iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [ActivityAction::BindingChanged, ActivityAction::BindingCreated]);
    assert_eq!(log[0].before.as_ref().unwrap()["enabled"], true);
    assert_eq!(log[0].after.as_ref().unwrap()["enabled"], false);
}

#[tokio::test]
async fn a_revision_that_is_passed_is_stale_and_changes_nothing() {
    let host = process().await;
    let made = host.make("acme", "a", false).await;
    let (company, a) = (id("acme"), key("a"));
    let off = |binding: &mut Binding| binding.enabled = false;
    host.bindings.update(&company, &a, None, CHANGED, off).await.unwrap();
    let late = host.bindings.update(&company, &a, Some(1), CHANGED, |binding| {
        binding.limits.queued_calls = 7;
    });
    let late = late.await.unwrap_err();
    assert!(matches!(late, BindingError::Stale { expected: 1, found: 2, .. }), "{late}");
    let deleted =
        host.bindings.delete(&company, (&a, made.id), Some(1), &Principal::Operator).await;
    assert!(matches!(deleted, Err(BindingError::Stale { .. })));
    assert_ne!(host.bindings.get(&company, &a).unwrap().limits.queued_calls, 7);
}

#[tokio::test]
async fn a_revision_that_another_process_has_passed_is_stale() {
    let store = store();
    let (ours, theirs) = (Process::on(&store).await, Process::on(&store).await);
    ours.make("acme", "a", true).await;
    let (company, a) = (id("acme"), key("a"));
    theirs.bindings.reload(&company).await.unwrap();
    let off = |binding: &mut Binding| binding.enabled = false;
    theirs.bindings.update(&company, &a, Some(1), CHANGED, off).await.unwrap();
    let seven = |binding: &mut Binding| binding.limits.queued_calls = 7;
    let late = ours.bindings.update(&company, &a, Some(1), CHANGED, seven).await.unwrap_err();
    assert!(matches!(late, BindingError::Stale { expected: 1, found: 2, .. }), "{late}");
    ours.bindings.update(&company, &a, Some(2), CHANGED, seven).await.unwrap();
}

#[tokio::test]
async fn bindings_of_another_process_are_read_again() {
    let store = store();
    let (here, there) = (Process::on(&store).await, Process::on(&store).await);
    let made = here.make("acme", "a", true).await;
    let resolved = |process: &Process| process.resolved(None, None).ok();
    assert!(resolved(&there).is_none());
    there.bindings.reload(&id("acme")).await.unwrap();
    assert_eq!(resolved(&there).unwrap().0, "a");
    here.bindings
        .delete(&id("acme"), (&made.key, made.id), None, &Principal::Operator)
        .await
        .unwrap();
    there.bindings.reload(&id("acme")).await.unwrap();
    assert!(there.bindings.list(&id("acme")).is_empty() && resolved(&there).is_none());
}

#[tokio::test]
async fn a_deletion_takes_the_targets_along_and_says_so() {
    let store = store();
    let host = Process::on(&store).await;
    let made = host.make("acme", "a", true).await;
    host.make("acme", "b", false).await;
    host.assign("acme", Some("ada"), Some("a")).await;
    host.assign("acme", Some("bob"), Some("b")).await;
    let ann = Principal::Agent(agent("ann"));
    host.bindings.delete(&id("acme"), (&made.key, made.id), Some(1), &ann).await.unwrap();
    let bob = (Target::Agent(agent("bob")), key("b"));
    assert_eq!(host.bindings.targets(&id("acme")), std::slice::from_ref(&bob));
    assert_eq!(Process::on(&store).await.bindings.targets(&id("acme")), [bob]);
    let log = host.log("acme").await;
    let by_ann = log.iter().filter(|entry| entry.principal == ann);
    let mut subjects: Vec<&str> = by_ann.map(|entry| entry.subject.as_str()).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["a", "the agent ada", "the company"]);
}

#[tokio::test]
async fn a_late_deletion_does_not_reach_the_next_binding_of_the_key() {
    let host = process().await;
    let first = host.make("acme", "default", true).await;
    let acme = id("acme");
    host.bindings.delete(&acme, (&first.key, first.id), None, &Principal::Operator).await.unwrap();
    let next = host.make("acme", "default", true).await;
    let late =
        host.bindings.delete(&acme, (&first.key, first.id), Some(1), &Principal::Operator).await;
    assert!(matches!(late, Err(BindingError::NotFound { .. })));
    assert_eq!(host.bindings.get(&acme, &first.key).unwrap().id, next.id);
}

#[tokio::test]
async fn a_deletion_is_marked_until_it_is_complete() {
    let store = store();
    let host = Process::on(&store).await;
    for company in ["acme", "acme2"] {
        let made = host.make(company, "a", false).await;
        host.bindings
            .delete(&id(company), (&made.key, made.id), None, &Principal::Operator)
            .await
            .unwrap();
    }
    // Also after a restart, and each for its own company.
    let host = Process::on(&store).await;
    assert_eq!(host.bindings.deleted(None).await.unwrap().len(), 2);
    let of_acme = host.bindings.deleted(Some(&id("acme"))).await.unwrap();
    assert_eq!((of_acme.len(), of_acme[0].company_id.as_str()), (1, "acme"));
    host.bindings.deletion_is_complete(&of_acme[0]).await.unwrap();
    assert!(host.bindings.deleted(Some(&id("acme"))).await.unwrap().is_empty());
    assert_eq!(host.bindings.deleted(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_target_names_a_binding_that_is_there() {
    let store = store();
    let host = Process::on(&store).await;
    let made = host.make("acme", "a", false).await;
    let set = |to: &'static str| {
        let target = Target::Agent(agent("ada"));
        let (host, binding) = (&host, key(to));
        let acme = id("acme");
        async move {
            host.bindings.set_target(&Principal::Operator, &acme, target, Some(&binding)).await
        }
    };
    assert!(matches!(set("none").await, Err(BindingError::NotFound { .. })));
    // Another process deleted it, which this one does not know yet.
    let other = Process::on(&store).await;
    other
        .bindings
        .delete(&id("acme"), (&made.key, made.id), None, &Principal::Operator)
        .await
        .unwrap();
    assert!(set("a").await.is_err());
    assert!(Process::on(&store).await.bindings.targets(&id("acme")).is_empty());
}

#[tokio::test]
async fn an_assignment_is_replaced_and_removed() {
    let host = process().await;
    host.make("acme", "a", true).await;
    host.make("acme", "b", false).await;
    host.assign("acme", None, Some("b")).await;
    host.assign("acme", Some("ada"), Some("a")).await;
    let ada = (Target::Agent(agent("ada")), key("a"));
    assert_eq!(host.bindings.targets(&id("acme")), [(Target::Company, key("b")), ada]);
    host.assign("acme", None, None).await;
    host.assign("acme", Some("ada"), None).await;
    assert!(host.bindings.targets(&id("acme")).is_empty());
    let log = host.log("acme").await;
    assert_eq!(log[0].before, Some("a".into()), "the entry says what it was");
    assert_eq!(log[0].after, None);
}

#[tokio::test]
async fn the_key_of_a_row_follows_from_the_row() {
    let host = process().await;
    let made = host.make("acme", "a", true).await;
    host.assign("acme", Some("ada"), Some("a")).await;
    let stored = host.store.get(Table::Bindings, &binding_key(&made)).await.unwrap().unwrap();
    assert_eq!(memhost_store::decode::<Binding>("binding", &stored).unwrap(), *made);
    let mut rows = memhost_store::scan_all(&*host.store, Table::Targets, b"");
    let mut count = 0;
    while let Some((key, target)) = rows.next_row::<StoredTarget>("target").await.unwrap() {
        assert_eq!(target.key(), key);
        count += 1;
    }
    assert_eq!(count, 2);
}

#[tokio::test]
async fn an_id_is_looked_for_in_other_companies_only() {
    let host = process().await;
    let made = host.make("acme", "a", false).await;
    assert!(!host.bindings.has_id(made.id, &id("acme")));
    assert!(host.bindings.has_id(made.id, &id("other")));
    host.bindings.forget(&id("acme"));
    assert!(!host.bindings.has_id(made.id, &id("other")));
}

#[tokio::test]
async fn the_first_entry_of_a_company_makes_it_known_in_one_step() {
    let host = process().await;
    let row = known_key(&id("acme"));
    assert!(host.store.get(Table::Host, &row).await.unwrap().is_none());
    host.make("acme", "a", false).await;
    assert!(host.store.get(Table::Host, &row).await.unwrap().is_some());
    // A change that is refused makes no company.
    let conflict = Change::insert(Table::Host, known_key(&id("acme")), Vec::new());
    let entry = NewActivity::new(&Principal::Operator, ActivityAction::BindingChanged, "x");
    let recorded = host.activity.record_with(&id("other"), entry, vec![conflict]).await;
    assert!(matches!(recorded, Err(BindingError::Conflict { company }) if company == id("other")));
    assert!(host.store.get(Table::Host, &known_key(&id("other"))).await.unwrap().is_none());
    assert!(host.log("other").await.is_empty());
    let entry = NewActivity::new(&Principal::Operator, ActivityAction::BindingChanged, "x");
    host.activity.record(&id("other"), entry).await.unwrap();
    assert!(host.store.get(Table::Host, &known_key(&id("other"))).await.unwrap().is_some());
}

#[tokio::test]
async fn the_activity_log_is_read_in_pages_newest_first() {
    let host = process().await;
    for n in 0..5 {
        let entry =
            NewActivity::new(&Principal::Host, ActivityAction::BindingChanged, n.to_string());
        host.activity.record(&id("acme"), entry).await.unwrap();
    }
    let (mut subjects, mut from) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let (page, next) = host.activity.page(&id("acme"), from.as_deref(), 2).await.unwrap();
        assert!(page.len() <= 2);
        subjects.extend(page.into_iter().map(|entry| entry.subject));
        from = next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(subjects, ["4", "3", "2", "1", "0"]);
    assert!(host.log("acme2").await.is_empty());
}

#[tokio::test]
async fn a_default_is_written_with_its_binding() {
    let store = store();
    let host = Process::on(&store).await;
    host.make("acme", "a", true).await;
    let new = NewBinding { make_default: true, ..new_binding("a") };
    // The key is taken, so the default stays.
    host.make("acme", "b", true).await;
    assert!(host.bindings.create(&Principal::Operator, &id("acme"), new).await.is_err());
    assert_eq!(host.resolved(None, None).unwrap().0, "b");
    assert_eq!(Process::on(&store).await.resolved(None, None).unwrap().0, "b");
}

#[tokio::test]
async fn who_answers_is_decided_once_and_for_all() {
    let store = store();
    let host = Process::on(&store).await;
    let made = host.make("acme", "a", false).await;
    let delete = async |company: &str, made: &Binding| {
        let whose = (&made.key, made.id);
        host.bindings.delete(&id(company), whose, None, &Principal::Operator).await.unwrap();
    };
    delete("acme", &made).await;
    for (company, taken_away) in [("beta", false), ("gamma", true)] {
        assert!(host.bindings.is_undecided(&id(company)));
        let made = host.make(company, "a", true).await;
        if taken_away {
            host.assign(company, None, None).await;
        }
        delete(company, &made).await;
    }
    for host in [&host, &Process::on(&store).await] {
        let undecided = ["acme", "beta", "gamma"].map(|of| host.bindings.is_undecided(&id(of)));
        assert_eq!(undecided, [true, false, false]);
        let none = host.bindings.resolve(&id("beta"), None, None).err().unwrap();
        assert!(matches!(none, BindingError::NoDefault { .. }), "{none}");
    }
}

#[tokio::test]
async fn a_company_that_is_full_takes_what_is_there_already() {
    let host = process().await;
    host.make("acme", "a", false).await;
    host.assign("acme", Some("ada"), Some("a")).await;
    for (company, name) in [("acme", "a"), ("acme", "b"), ("other", "a")] {
        host.bindings.check_room(&id(company), &key(name)).unwrap();
        host.bindings.check_target_room(&id(company), &agent("ada")).unwrap();
    }
}
