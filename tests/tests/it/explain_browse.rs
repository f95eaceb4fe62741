//! `explain` and `browse`: how a query got its result, and the provider's own tree.

use memhost_core::{ServiceError, UpdateBinding};
use memhost_tests::{TestHost, caller, parse, query, scope, upsert};
use memhost_types::{
    BindingLimits, BindingPolicy, BrowseRequest, OperationErrorCode, OperationKind, ReviewPolicy,
};

fn browse(path: &str, cursor: Option<String>) -> BrowseRequest {
    BrowseRequest {
        binding_key: None,
        scope: scope("acme"),
        path: path.to_owned(),
        cursor,
        limit: Some(2),
    }
}

fn code(error: &ServiceError) -> OperationErrorCode {
    match error {
        ServiceError::Operation { error, .. } => error.code,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_and_browse_answer() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    host.bind("acme", "reference", BindingLimits::default()).await.unwrap();
    let service = host.service();
    let texts = ["the gate is green", "the door is red", "the wall is grey"];
    service.operations().upsert(&caller(), upsert("acme", &texts)).await.unwrap();
    let told = service.operations().explain(&caller(), query("acme", "green door")).await.unwrap();
    assert_eq!(told.query["terms"].as_array().unwrap().len(), 2);
    assert_eq!(told.hits.len(), 2);
    assert_eq!(told.hits[0].contributions[0].name, "terms");

    let root = service.operations().browse(&caller(), browse("", None)).await.unwrap();
    assert!(root.nodes[0].has_children && root.nodes[0].record.is_none());
    let path = root.nodes[0].path.clone();
    let first = service.operations().browse(&caller(), browse(&path, None)).await.unwrap();
    let next = first.next_cursor.clone().unwrap();
    let rest =
        service.operations().browse(&caller(), browse(&path, Some(next.clone()))).await.unwrap();
    assert_eq!((first.nodes.len(), rest.nodes.len(), &rest.next_cursor), (2, 1, &None));
    let handle = rest.nodes[0].record.clone().unwrap();
    assert_eq!(handle.provider_key.as_str(), "reference", "the host sets the provider key");
    // A cursor is valid for its node only, and an unknown path is an error.
    let elsewhere =
        service.operations().browse(&caller(), browse("", Some(next))).await.unwrap_err();
    assert_eq!(code(&elsewhere), OperationErrorCode::InvalidRequest);
    let gone = service.operations().browse(&caller(), browse("gone", None)).await.unwrap_err();
    assert_eq!(code(&gone), OperationErrorCode::NotFound);
    let kinds: Vec<_> = host
        .operations("acme")
        .await
        .unwrap()
        .iter()
        .rev()
        .map(|operation| operation.kind)
        .collect();
    assert_eq!(
        kinds[..3],
        [OperationKind::Health, OperationKind::RecordUpsert, OperationKind::Explain]
    );
    assert_eq!(kinds[3..], [OperationKind::Browse; 5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_and_browse_are_refused_while_records_wait() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    host.bind("acme", "reference", BindingLimits::default()).await.unwrap();
    let service = host.service();
    let policy =
        BindingPolicy { review: Some(ReviewPolicy::default()), ..BindingPolicy::default() };
    let change = UpdateBinding { policy: Some(policy), ..Default::default() };
    service
        .control()
        .update_binding(&caller(), &parse("acme"), &parse("reference"), change)
        .await
        .unwrap();
    let explained = service.operations().explain(&caller(), query("acme", "x")).await.unwrap_err();
    let browsed = service.operations().browse(&caller(), browse("", None)).await.unwrap_err();
    assert_eq!([code(&explained), code(&browsed)], [OperationErrorCode::Unsupported; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_without_explain_and_browse_answer_unsupported() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    let explained =
        host.service().operations().explain(&caller(), query("acme", "x")).await.unwrap_err();
    let browsed =
        host.service().operations().browse(&caller(), browse("", None)).await.unwrap_err();
    assert_eq!([code(&explained), code(&browsed)], [OperationErrorCode::Unsupported; 2]);
}
