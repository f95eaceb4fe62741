//! What must hold of a provider's records whatever happens to requests: the same tests for every
//! service.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Fault, Requests, everywhere, serve};
use crate::testing::http::{Answer, Sent};
use crate::testing::{capture, forget, list, query, scope, upsert};
use crate::types::{
    CorrectRequest, ForgetEffect, JobStatus, Patch, RecordId, RecordWrite, UpsertRequest,
};
use crate::{Correction, Extraction, Provider};

/// A service in memory, with the routes that a provider uses. It is empty at first.
pub trait Stand: Default + 'static {
    /// Its answer to a request.
    fn answer(&mut self, sent: &Sent) -> Answer;

    /// The texts of the records there, in any order.
    fn texts(&self) -> Vec<String>;

    /// An answer as if it were about other things: with other ids.
    fn other_ids(answer: &str) -> String;
}

/// A service of which the request of this number, from 0, has a fault.
pub fn faulty<S: Stand>(number: usize, fault: Fault) -> (Rc<RefCell<S>>, Requests) {
    let service = Rc::new(RefCell::new(S::default()));
    let inner = Rc::clone(&service);
    (service, serve(move |sent| inner.borrow_mut().answer(sent), number, fault, S::other_ids))
}

/// Tries each fault at each request of a capture, an upsert, a correction, a forget and a query of
/// records, with a provider that `open` opens on an empty host. What is told as done must be done,
/// the same call again does the rest, and nothing is there twice. `effect` is how far the service
/// forgets.
///
/// # Panics
/// If that does not hold, with the fault and the number of the request.
pub fn hold<S: Stand, P: Provider + Correction>(open: impl Fn() -> P, effect: ForgetEffect) {
    captures::<S, P>(&open);
    upserts::<S, P>(&open);
    for id in [None, Some("given".to_owned())] {
        corrections::<S, P>(&open, id.as_ref());
    }
    let add = |provider: &mut P, at: &str| {
        fine(provider.capture(capture("op", "one")), at).records.remove(0)
    };
    forgets::<S, P>(&open, add, effect);
    queries::<S, P>(&open, add);
}

/// The same for a service that keeps no text as it is: a capture is a job, which ends with one
/// record. The stand-in makes it of the text at once, as the text is. Records are not upserted, and
/// of corrections only that of the text is tried.
///
/// # Panics
/// If that does not hold, with the fault and the number of the request.
pub fn hold_learnt<S: Stand, P: Provider + Correction + Extraction>(
    open: impl Fn() -> P,
    effect: ForgetEffect,
) {
    learns::<S, P>(&open);
    rewrites::<S, P>(&open);
    forgets::<S, P>(&open, learnt, effect);
    queries::<S, P>(&open, learnt);
}

/// Captures a text and answers the record that is made of it.
fn learnt<P: Provider + Extraction>(provider: &mut P, at: &str) -> RecordId {
    let mut jobs = fine(provider.capture(capture("op", "one")), at).jobs;
    assert_eq!(jobs.len(), 1, "{at}: jobs");
    let done = fine(provider.run_job(jobs.remove(0).provider_job_id), at);
    assert_eq!(
        (done.job.status, done.records.len()),
        (JobStatus::Succeeded, 1),
        "{at}: {:?}",
        done.job.error
    );
    done.records[0].clone()
}

fn learns<S: Stand, P: Provider + Extraction>(open: impl Fn() -> P) {
    everywhere(|number, fault| {
        let at = format!("capture and job, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        let mut provider = open();
        let first = provider.capture(capture("op", "one"));
        if let Ok(first) = &first {
            assert_eq!(texts(&service), ["one"], "{at}: told as captured");
            drop(provider.run_job(first.jobs[0].provider_job_id.clone()));
        }
        let sent = requests.stop();
        learnt(&mut provider, &at);
        assert_eq!(texts(&service), ["one"], "{at}: {first:?}");
        sent
    });
}

fn rewrites<S: Stand, P: Provider + Correction + Extraction>(open: impl Fn() -> P) {
    everywhere(|number, fault| {
        let at = format!("correction, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        requests.stop();
        let mut provider = open();
        let id = learnt(&mut provider, &at);
        let patch = Patch::Replacement(record(None, "two"));
        let request = CorrectRequest { operation_id: "op-2".to_owned(), id, scope: scope(), patch };
        requests.start();
        let first = provider.correct(request.clone());
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(texts(&service), ["two"], "{at}: told as corrected");
        }
        fine(provider.correct(request), &at);
        assert_eq!(
            (listed(&mut provider, &at), texts(&service)),
            (vec!["two".to_owned()], vec!["two".to_owned()])
        );
        sent
    });
}

fn texts<S: Stand>(service: &Rc<RefCell<S>>) -> Vec<String> {
    let mut texts = service.borrow().texts();
    texts.sort();
    texts
}

fn record(id: Option<&RecordId>, text: &str) -> RecordWrite {
    RecordWrite { id: id.cloned(), text: text.to_owned(), ..RecordWrite::default() }
}

fn captures<S: Stand, P: Provider>(open: impl Fn() -> P) {
    everywhere(|number, fault| {
        let at = format!("capture, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        let mut provider = open();
        let first = provider.capture(capture("op", "one"));
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(texts(&service), ["one"], "{at}: told as written");
        }
        let again = fine(provider.capture(capture("op", "one")), &at);
        assert_eq!(texts(&service), ["one"], "{at}: {first:?}");
        assert!(first.is_err() || first == Ok(again), "{at}: another id");
        sent
    });
}

fn upserts<S: Stand, P: Provider>(open: impl Fn() -> P) {
    everywhere(|number, fault| {
        let at = format!("upsert, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        let mut provider = open();
        let request = || {
            let mut request = upsert("op", &["one", "two"]);
            request.records.push(record(Some(&"given".to_owned()), "three"));
            request
        };
        let first = provider.upsert_records(request());
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(texts(&service), ["one", "three", "two"], "{at}: told as written");
        }
        for id in fine(provider.upsert_records(request()), &at).records {
            assert!(fine(provider.get_record(id, scope()), &at).snippet.is_some(), "{at}");
        }
        assert_eq!(texts(&service), ["one", "three", "two"], "{at}: {first:?}");
        sent
    });
}

/// A record is always there while another text takes the place of its own, under the same id.
fn corrections<S: Stand, P: Provider + Correction>(open: impl Fn() -> P, id: Option<&RecordId>) {
    everywhere(|number, fault| {
        let at = format!("correction of {id:?}, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        requests.stop();
        let mut provider = open();
        let write = UpsertRequest { records: vec![record(id, "one")], ..upsert("op", &[]) };
        let id = fine(provider.upsert_records(write), &at).records.remove(0);
        let patch = Patch::Replacement(record(None, "two"));
        let request = CorrectRequest {
            operation_id: "op-2".to_owned(),
            id: id.clone(),
            scope: scope(),
            patch,
        };
        requests.start();
        let first = provider.correct(request.clone());
        let sent = requests.stop();
        let now = listed(&mut provider, &at);
        if first.is_ok() {
            assert_eq!(
                (&*now, &*texts(&service)),
                (&["two".to_owned()][..], &["two".to_owned()][..]),
                "{at}"
            );
        }
        assert!(now == ["one"] || now == ["two"], "{at}: {first:?}: {now:?}");
        let got =
            fine(provider.get_record(id.clone(), scope()), &at).snippet.map(|snippet| snippet.text);
        assert_eq!(got.as_ref(), now.first(), "{at}");
        fine(provider.correct(request), &at);
        assert_eq!(
            (listed(&mut provider, &at), texts(&service)),
            (vec!["two".to_owned()], vec!["two".to_owned()]),
            "{at}"
        );
        fine(provider.forget(forget(vec![id], scope())), &at);
        assert!(texts(&service).is_empty(), "{at}: something is left");
        sent
    });
}

fn listed(provider: &mut impl Provider, at: &str) -> Vec<String> {
    fine(provider.list_records(list(None, 10)), at)
        .items
        .into_iter()
        .map(|item| item.text)
        .collect()
}

fn forgets<S: Stand, P: Provider>(
    open: impl Fn() -> P,
    add: impl Fn(&mut P, &str) -> RecordId,
    effect: ForgetEffect,
) {
    everywhere(|number, fault| {
        let at = format!("forget, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        requests.stop();
        let mut provider = open();
        let id = add(&mut provider, &at);
        requests.start();
        let first = provider.forget(forget(vec![id.clone()], scope()));
        let sent = requests.stop();
        if let Ok(first) = &first {
            assert_eq!(first.outcomes[0].effect, effect, "{at}");
            assert!(texts(&service).is_empty(), "{at}: told as forgotten");
        }
        let again = fine(provider.forget(forget(vec![id], scope())), &at);
        assert!(texts(&service).is_empty(), "{at}: {first:?}");
        assert!(
            first.is_ok() || again.outcomes[0].effect == effect,
            "{at}: {:?}",
            again.outcomes[0].effect
        );
        sent
    });
}

fn queries<S: Stand, P: Provider>(open: impl Fn() -> P, add: impl Fn(&mut P, &str) -> RecordId) {
    everywhere(|number, fault| {
        let at = format!("query, {fault:?} at {number}");
        let (service, requests) = faulty::<S>(number, fault);
        requests.stop();
        let mut provider = open();
        add(&mut provider, &at);
        requests.start();
        match provider.query(query("which one")) {
            Ok(found) => {
                assert_eq!(
                    found.snippets.first().map(|hit| hit.text.as_str()),
                    Some("one"),
                    "{at}"
                );
            }
            // Every other fault of a request that reads is tried again.
            Err(error) => {
                assert!(matches!(fault, Fault::Nonsense | Fault::OtherShape), "{at}: {error:?}");
            }
        }
        assert_eq!(texts(&service), ["one"], "{at}");
        requests.stop()
    });
}

fn fine<T>(answer: Result<T, crate::types::Error>, at: &str) -> T {
    answer.unwrap_or_else(|error| panic!("{at}: {error:?}"))
}
