//! The seams between core and systems in front: a policy that refuses, narrows and stamps, and a
//! sink of events, on a host without any integration.

use std::sync::Arc;

use memhost_core::{Access, Denied, OperationContext, OperationSink, Section, WritePolicy};
use memhost_tests::faults::Faults;
use memhost_tests::{TestHost, caller, capture, forget, list, parse, query, upsert};
use memhost_types::{
    EventFilter, EventType, JsonObject, NewEvent, Operation, OperationKind, Principal, RecordRow,
    Scope,
};

fn section(binding: Option<&str>) -> Section {
    Section { name: "test", company: parse("acme"), binding: binding.map(parse) }
}

/// Refuses the subject `nobody`, binds writes to the project `p`, notes it in the metadata, and
/// keeps every record.
#[derive(Debug)]
struct Policy;

impl WritePolicy for Policy {
    fn check(&self, _: &Principal, scope: &Scope) -> Result<(), Denied> {
        match scope.subject_id.as_deref() {
            Some("nobody") => Err(Denied::because("scope.subjectId", "is nobody")),
            _ => Ok(()),
        }
    }

    fn narrow(&self, _: &Principal, access: &Access<'_>, scope: &mut Scope) {
        if let Access::Add { metadata } = access {
            scope.project_id = Some(format!("p{}", metadata.len()));
        }
    }

    fn stamp(
        &self,
        _: &Principal,
        scope: &Scope,
        metadata: &mut Option<JsonObject>,
    ) -> Option<String> {
        let project = scope.project_id.clone().unwrap_or_default();
        metadata.get_or_insert_default().insert("project".to_owned(), project.into());
        None
    }

    fn leaver<'a>(&self, _: &'a Scope) -> Option<&'a str> {
        None
    }

    fn may_change_all(&self, _: &Principal) -> bool {
        false
    }

    fn may_change(&self, _: &Principal, record: &RecordRow) -> Result<(), Denied> {
        Err(Denied::whole(format!("`{}` is kept", record.handle.provider_record_id)))
    }

    fn may_clear(&self, _: &Principal, _: &Scope) -> Result<(), Denied> {
        Err(Denied::whole("the scope is kept"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_guards_its_binding_whatever_else_is_configured() {
    let host = TestHost::new(&[]).await.unwrap();
    let service = host.service();
    service.attach_policy(section(None), Arc::new(Policy));
    let written = service.operations().upsert(&caller(), upsert("acme", &["kept"])).await.unwrap();
    let operation =
        service.control().operation(&parse("acme"), written.operation_id).await.unwrap();
    assert_eq!(operation.scope.project_id.as_deref(), Some("p0"), "narrowed");
    let listed = service.operations().list(&caller(), list("acme", 10, None)).await.unwrap();
    assert_eq!(listed.items[0].metadata.as_ref().unwrap()["project"], "p0", "stamped");
    let mut request = forget("acme", &written.records);
    let refused =
        service.operations().forget(&caller(), request.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("is kept"), "{refused}");
    let mut of_nobody = query("acme", "kept");
    of_nobody.scope.subject_id = Some("nobody".to_owned());
    let refused = service.operations().query(&caller(), of_nobody).await.unwrap_err().to_string();
    assert!(refused.contains("scope.subjectId: is nobody"), "{refused}");
    // Another company is not guarded.
    let written = service.operations().upsert(&caller(), upsert("zeta", &["free"])).await.unwrap();
    request = forget("zeta", &written.records);
    service.operations().forget(&caller(), request).await.unwrap();
}

/// Leaves an event of each capture.
struct Sink;

impl OperationSink for Sink {
    fn events(&self, operation: &Operation, context: &OperationContext) -> Vec<NewEvent> {
        let is_meant = operation.kind == OperationKind::Capture && operation.error.is_none();
        let event = is_meant.then(|| NewEvent {
            event_id: None,
            r#type: EventType::MemorySaved,
            project_id: "p".to_owned(),
            session_id: context.session.clone().unwrap_or_default(),
            agent_kind: "k".to_owned(),
            agent_id: None,
            run_id: None,
            tool_id: None,
            status: None,
            duration_ms: None,
            error: None,
            occurred_at: None,
            details: None,
        });
        // Each has its own id.
        event.into_iter().cycle().take(if is_meant { 2 } else { 0 }).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_written_with_the_completion_or_not_at_all() {
    let (faults, wrap) = Faults::new();
    let host = TestHost::with(&[], |options| options.wrap_store = Some(wrap)).await.unwrap();
    let service = host.service();
    service.attach_sink(section(None), Arc::new(Sink));
    let events = async || {
        let filter = EventFilter::default();
        service.tenancy().events(&parse("acme"), &filter, None, None).await.unwrap().items
    };
    let mut request = capture("acme", "saved");
    let session = [("sessionId".to_owned(), "s1".into())];
    request.metadata = Some(session.into_iter().collect());
    let captured = service.operations().capture(&caller(), request).await.unwrap();
    let left = events().await;
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0].event.session_id, "s1", "what the request says of who asks");
    let ids: Vec<_> = left.iter().map(|event| event.id).collect();
    assert!(ids.contains(&captured.operation_id.uuid()) && ids[0] != ids[1]);
    // The completion is tried twice.
    faults.break_completions(2);
    service.operations().capture(&caller(), capture("acme", "not completed")).await.unwrap_err();
    assert_eq!(events().await.len(), 2, "no event without a completion");
    service.operations().capture(&caller(), capture("acme", "completed again")).await.unwrap();
    assert_eq!(events().await.len(), 4);
}
