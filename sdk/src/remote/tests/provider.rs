//! A provider made of a service's routes, with a service in memory that keeps texts by number.

use std::cell::RefCell;

use serde_json::json;

use crate::http::Error as HttpError;
use crate::remote::{
    Capture, Elsewhere, Learnt, Listing, Progress, Record, Records, Search, Service, Tag, Wipes,
    Work, work_of,
};
use crate::testing::{capture, forget, query, reopen, reset, scope, upsert};
use crate::types::*;
use crate::{Correction, Erasure, Extraction, NoConfig, Provider};

/// What the service holds, and what it was asked.
#[derive(Default)]
struct State {
    records: Vec<Record>,
    asked: Vec<String>,
    progress: Vec<Progress>,
    instructions: Vec<String>,
    /// How many of the next requests that read one record are refused.
    refused: usize,
    /// Whether it does not say how far it forgets.
    is_silent: bool,
    /// Whether its list has not all of them.
    is_cut: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn state<R>(with: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(with)
}

fn limited() -> HttpError {
    HttpError::Status {
        request: "GET /1".to_owned(),
        status: 429,
        message: "too many".to_owned(),
        retry_after: None,
    }
}

/// Refuses as many requests as the test said.
fn read() -> Result<(), HttpError> {
    state(|state| match state.refused.checked_sub(1) {
        Some(left) => {
            state.refused = left;
            Err(limited())
        }
        None => Ok(()),
    })
}

/// Two services with the same routes: one that keeps texts, and one that keeps what it makes of
/// them.
struct Kept<const TEXTS: bool> {
    company: String,
}

impl<const TEXTS: bool> Service for Kept<TEXTS> {
    type Config = NoConfig;

    const MOST_HITS: usize = 10;
    const KEEPS_TEXTS: bool = TEXTS;
    const TAKES_INSTRUCTIONS: bool = TEXTS;
    const RETRIES_JOBS: bool = TEXTS;

    fn describe() -> Description {
        Description::new("kept", "0.1.0", "A test")
    }

    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self { company: "nobody".to_owned() })
    }

    fn serve(&mut self, company: &str) {
        company.clone_into(&mut self.company);
    }

    fn is_id(&self, id: &str) -> bool {
        id.parse::<u32>().is_ok()
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, HttpError> {
        state(|state| {
            let id = state.records.len().to_string();
            let (key, text, tag) = (Some(key.to_owned()), text.to_owned(), tag.clone());
            state.records.push(Record { id: id.clone(), key, text, tag, ..Record::default() });
            Ok(id)
        })
    }

    /// All of them: the SDK picks the right one.
    fn written(&self, _: &str, _: &str) -> Result<Vec<Record>, HttpError> {
        read()?;
        Ok(state(|state| state.records.clone()))
    }

    fn find(&self, id: &str) -> Result<Option<Record>, HttpError> {
        read()?;
        Ok(state(|state| state.records.iter().find(|record| record.id == id).cloned()))
    }

    fn replace(&self, old: &Record, text: &str, _: &Tag) -> Result<(), HttpError> {
        state(|state| {
            state
                .records
                .iter_mut()
                .filter(|record| record.id == old.id)
                .for_each(|record| record.text = text.to_owned());
        });
        Ok(())
    }

    fn delete(&self, id: &str) -> Result<(), HttpError> {
        state(|state| state.records.retain(|record| record.id != id));
        Ok(())
    }

    fn left_of(&self, gone: &Record) -> Result<ForgetEffect, HttpError> {
        if state(|state| state.is_silent) {
            return Err(limited());
        }
        Ok(ForgetEffect::hard_unless(gone.is_extracted))
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, HttpError> {
        state(|state| {
            state
                .asked
                .push(format!("{} {:?} {}", search.query, search.scope.agent_id, self.company));
        });
        Ok(state(|state| state.records.clone()))
    }

    fn list(&self, _: u32) -> Result<(Vec<Record>, bool), HttpError> {
        Ok(state(|state| (state.records.clone(), state.is_cut)))
    }

    fn listing(&self) -> Listing {
        if TEXTS { Listing::Pages } else { Listing::Whole(100) }
    }

    fn instruct(&self, old: &Record, instruction: &str) -> Result<(), HttpError> {
        state(|state| state.instructions.push(format!("{}: {instruction}", old.id)));
        Ok(())
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        mode == CaptureMode::CaptureResidue
    }

    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, HttpError> {
        let turns: Vec<_> =
            capture.turns.iter().map(|turn| format!("{}={}", turn.role, turn.text)).collect();
        state(|state| state.asked.push(turns.join(",")));
        Ok(Learnt { details: json!({"tries": 0}), ..Learnt::job(format!("job-{}", capture.key)) })
    }
}

impl Elsewhere for Kept<true> {
    fn ask(&self, _: &str, _: &Work) -> Result<Progress, HttpError> {
        Ok(state(|state| state.progress.remove(0)))
    }

    fn retry(&self, _: &str, work: &mut Work) -> Result<(), HttpError> {
        work.details = json!({"tries": 1});
        Ok(())
    }
}

impl Wipes for Kept<true> {
    fn wipe(&self) -> Result<ForgetScopeResponse, HttpError> {
        state(|state| state.asked.push(format!("wipe {}", self.company)));
        Ok(Extent::Soft.into())
    }
}

fn open<const TEXTS: bool>() -> Kept<TEXTS> {
    reset(json!({}));
    state(|state| *state = State::default());
    reopen().unwrap()
}

fn residue(operation_id: &str, turns: &[(&str, &str)]) -> CaptureRequest {
    let turn = |(role, text): &(&str, &str)| Turn {
        role: (*role).to_owned(),
        name: None,
        text: (*text).to_owned(),
        at: None,
    };
    let payload =
        SourcePayload { turns: turns.iter().map(turn).collect(), ..SourcePayload::default() };
    CaptureRequest { mode: CaptureMode::CaptureResidue, payload, ..capture(operation_id, "") }
}

#[test]
fn the_company_is_known_before_every_call_and_none_at_first() {
    let mut kept = open::<true>();
    assert_eq!(kept.company, "");
    kept.query(query(" gate ")).unwrap();
    assert_eq!(state(|state| state.asked.pop()).as_deref(), Some("gate Some(\"agent\") company"));
}

#[test]
fn only_the_record_with_the_key_was_written_before() {
    let mut kept = open::<true>();
    let first = kept.capture(capture("op-1", "one")).unwrap().records;
    crate::testing::lose_storage();
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-03-01T12:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let again =
        |operation: &str| CaptureRequest { hook: Some(hook.clone()), ..capture(operation, "one") };
    assert_eq!(kept.capture(again("op-1")).unwrap().records, first);
    assert_ne!(kept.capture(again("op-2")).unwrap().records, first);
}

#[test]
fn a_record_that_cannot_be_read_back_is_not_added_again() {
    let mut kept = open::<true>();
    state(|state| state.refused = 2);
    assert!(matches!(kept.capture(capture("op", "one")), Err(Error::RateLimited(_))));
    let id = kept.capture(capture("op", "one")).unwrap().records.remove(0);
    assert_eq!((id.as_str(), state(|state| state.records.len())), ("0", 1));
}

#[test]
fn a_conversation_is_learnt_once_without_what_says_nothing() {
    let mut kept = open::<true>();
    let talk =
        [("user", "Hi <memhost-recall>old</memhost-recall>"), ("assistant", " "), ("tool", "42")];
    let first = kept.capture(residue("op", &talk)).unwrap().jobs;
    assert_eq!(kept.capture(residue("op", &talk)).unwrap().jobs, first);
    assert_eq!(state(|state| std::mem::take(&mut state.asked)), ["user=Hi ,tool=42"]);
    let nothing =
        kept.capture(residue("op-2", &[("user", " "), ("user", "<memhost-recall>x")])).unwrap();
    assert_eq!((nothing, state(|state| state.asked.len())), (CaptureResponse::default(), 0));
    kept.capture(CaptureRequest { mode: CaptureMode::CaptureResidue, ..capture("op-3", "one") })
        .unwrap();
    assert_eq!(state(|state| std::mem::take(&mut state.asked)), ["user=one"]);
}

#[test]
fn a_job_is_asked_for_until_it_has_ended_and_taken_up_again() {
    let mut kept = open::<true>();
    let id =
        kept.capture(residue("op", &[("user", "one")])).unwrap().jobs.remove(0).provider_job_id;
    let done = Progress::Done { records: vec!["7".to_owned()], usage: vec![Usage::of("kept")] };
    state(|state| state.progress = vec![Progress::Working, Progress::failed("no"), done]);
    let ask = |kept: &mut Kept<true>| kept.get_job(id.clone()).unwrap().unwrap();
    assert_eq!(ask(&mut kept).job.status, JobStatus::Running);
    let failed = ask(&mut kept).job;
    assert_eq!(
        (failed.status, failed.error.as_deref(), failed.is_retryable),
        (JobStatus::Failed, Some("no"), true)
    );
    assert_eq!(kept.retry_job(id.clone()).unwrap().status, JobStatus::Running);
    let work = work_of(&id).unwrap().unwrap();
    assert_eq!((work.scope, work.details), (scope(), json!({"tries": 1})));
    let ended = ask(&mut kept);
    assert_eq!(
        (ended.job.status, ended.records.len(), ended.usage.len()),
        (JobStatus::Succeeded, 1, 1)
    );
    assert_eq!(ask(&mut kept), ended, "it is not asked for again");
    assert!(matches!(kept.cancel_job(id.clone()), Ok(job) if job.status == JobStatus::Succeeded));
    assert_eq!(work_of("nobody").unwrap(), None);
}

#[test]
fn an_instruction_is_given_once_and_only_where_it_is_taken() {
    let mut kept = open::<true>();
    let id = kept.capture(capture("op", "one")).unwrap().records.remove(0);
    let request = |id: &str| CorrectRequest {
        operation_id: "op-2".to_owned(),
        id: id.to_owned(),
        scope: scope(),
        patch: Patch::Instruction("It is two.".to_owned()),
    };
    for _ in 0..2 {
        assert_eq!(kept.correct(request(&id)).unwrap().record_id, id);
    }
    assert_eq!(state(|state| state.instructions.clone()), ["0: It is two."]);
    assert!(matches!(kept.correct(request("9")), Err(Error::NotFound(_))));
    assert!(matches!(open::<false>().correct(request("0")), Err(Error::Unsupported(_))));
}

#[test]
fn a_service_that_keeps_no_texts_learns_from_every_capture() {
    let mut kept = open::<false>();
    assert_eq!(kept.capture(capture("op", "one")).unwrap().jobs.len(), 1);
    assert!(matches!(kept.upsert_records(upsert("op-2", &["one"])), Err(Error::Unsupported(_))));
    assert!(state(|state| state.records.is_empty()));
}

#[test]
fn what_was_extracted_is_told_when_it_is_forgotten() {
    let mut kept = open::<true>();
    for (is_extracted, effect) in [(false, ForgetEffect::Hard), (true, ForgetEffect::HistoryKept)] {
        let id =
            kept.capture(capture(&format!("op-{is_extracted}"), "one")).unwrap().records.remove(0);
        state(|state| state.records[0].is_extracted = is_extracted);
        assert_eq!(kept.forget(forget(vec![id], scope())).unwrap().outcomes[0].effect, effect);
    }
}

#[test]
fn how_far_a_record_is_forgotten_is_told_by_the_next_call_where_it_was_not_known() {
    let mut kept = open::<true>();
    let id = kept.capture(capture("op", "one")).unwrap().records.remove(0);
    state(|state| (state.records[0].is_extracted, state.is_silent) = (true, true));
    assert!(matches!(kept.forget(forget(vec![id.clone()], scope())), Err(Error::RateLimited(_))));
    assert!(state(|state| state.records.is_empty()));
    state(|state| state.is_silent = false);
    let other = Scope { agent_id: Some("other".to_owned()), ..scope() };
    let mut effect =
        |scope| kept.forget(forget(vec![id.clone()], scope)).unwrap().outcomes[0].effect;
    assert_eq!(effect(other), ForgetEffect::NotFound, "another agent's record");
    assert_eq!(effect(scope()), ForgetEffect::HistoryKept);
    assert_eq!(effect(scope()), ForgetEffect::NotFound);
}

#[test]
fn a_list_that_is_cut_says_that_it_cannot_go_on() {
    let mut kept = open::<false>();
    state(|state| state.records = vec![Record { id: "1".to_owned(), ..Record::default() }]);
    for (is_cut, expected) in [(false, Continuation::End), (true, Continuation::CannotContinue)] {
        state(|state| state.is_cut = is_cut);
        let page = kept.list_records(crate::testing::list(None, 10)).unwrap();
        assert_eq!((page.items.len(), page.continuation), (1, expected));
    }
}

#[test]
fn a_company_is_wiped_and_no_part_of_it() {
    let mut kept = open::<true>();
    let request = |scope: Scope| ForgetScopeRequest { operation_id: "op".to_owned(), scope };
    assert!(matches!(kept.forget_scope(request(scope())), Err(Error::Unsupported(_))));
    assert!(state(|state| state.asked.is_empty()));
    assert_eq!(kept.forget_scope(request(Scope::company("acme"))).unwrap().extent, Extent::Soft);
    assert_eq!(state(|state| state.asked.clone()), ["wipe acme"]);
}

#[test]
fn a_record_is_a_node_with_its_first_line() {
    let kept = open::<true>();
    let record = Record {
        id: "7".to_owned(),
        text: format!("{}\nmore", "é".repeat(100)),
        ..Record::default()
    };
    let node = record.node("a/7".to_owned(), true);
    assert_eq!(
        (node.label.chars().count(), node.record_id.as_deref(), node.path.as_str()),
        (80, Some("7"), "a/7")
    );
    assert!(Records::of(&kept).shows(&record, &scope()));
}
