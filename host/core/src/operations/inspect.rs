//! Looking into a provider: how a query came to its answer, and its own tree.

use std::sync::Arc;

use crate::Service;
use crate::access::Caller;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::operations::pipeline::closed;
use crate::operations::pipeline::end;
use crate::operations::pipeline::refuse;
use crate::operations::privacy::private;
use crate::operations::record::Completion;
use crate::versions::serving::Serving;
use memhost_types::{
    BrowsePage, BrowseRequest, Explanation, OperationErrorCode, OperationKind, QueryDigest, QueryRequest, limits,
};

impl Service {
    /// Runs a query again and tells how it came to its answer.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `explain`, or where the binding holds
    /// records for a person: the way to an answer would tell of them.
    pub async fn explain(&self, caller: &Caller, mut request: QueryRequest) -> Result<Explanation, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Explain, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let admitted = self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await;
        let serving = match admitted.and_then(|serving| self.holds_nothing(serving)) {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        if let Err(refusal) = private(&serving, &mut request) {
            return refuse(open, refusal).await;
        }
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        let request = &request;
        let called =
            self.run(&mut open, serving, |serving| async move { serving.instances.explain(request).await }).await;
        let answer = end(open, called, |answer| Completion {
            records: answer.hits.iter().take(limits::MAX_RECORDED_HANDLES).map(|hit| hit.handle.clone()).collect(),
            record_count: answer.hits.len(),
            ..Completion::default()
        })
        .await?;
        Ok(Explanation { operation_id, query: answer.query, hits: answer.hits })
    }

    /// One page of the children of a node of the provider's own tree.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `not_found` for a path that is gone; `unsupported` as with [`Service::explain`], for
    /// the interface `browse`; a cursor that is not of this node is an invalid `cursor`.
    pub async fn browse(&self, caller: &Caller, mut request: BrowseRequest) -> Result<BrowsePage, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Browse, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let admitted = self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await;
        let serving = match admitted.and_then(|serving| self.holds_nothing(serving)) {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        let digest = node_digest(&serving, &request);
        let cursor = match self.provider_cursor(&digest, request.cursor.as_deref()) {
            Ok(cursor) => cursor,
            Err(error) => return refuse(open, error.into()).await,
        };
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        let (request, cursor) = (&request, cursor.as_deref());
        let called = self
            .run(&mut open, serving, |serving| async move { serving.instances.browse(request, cursor).await })
            .await;
        let answer = end(open, called, |answer| Completion {
            records: answer
                .nodes
                .iter()
                .filter_map(|node| node.record.clone())
                .take(limits::MAX_RECORDED_HANDLES)
                .collect(),
            record_count: answer.nodes.len(),
            ..Completion::default()
        })
        .await?;
        let next_cursor = answer.next.map(|cursor| self.cursors.seal(&digest, cursor.as_bytes()));
        Ok(BrowsePage { operation_id, nodes: answer.nodes, next_cursor })
    }

    /// A tree's labels and a score's parts say what a record says, and nobody can take one record out of them.
    pub(crate) fn holds_nothing(&self, serving: Arc<Serving>) -> Result<Arc<Serving>, Refusal> {
        let binding = &serving.binding;
        if binding.policy.review.is_none() && self.reviews.hidden(binding.id) == 0 {
            return Ok(serving);
        }
        let message = format!(
            "the binding `{}` holds records until a person approves them, and this would tell of them; query it instead",
            binding.key
        );
        Err(Refusal::new(OperationErrorCode::Unsupported, message))
    }
}

fn node_digest(serving: &Serving, request: &BrowseRequest) -> QueryDigest {
    let scope = serde_json::to_vec(&request.scope).unwrap_or_default();
    let binding = &serving.binding;
    QueryDigest::new([
        b"browse".as_slice(),
        binding.company_id.as_str().as_bytes(),
        binding.id.0.as_bytes(),
        &scope,
        request.path.as_bytes(),
    ])
}
