//! The interface `review`: records that wait at the provider for a person.

use crate::answer::{Answer, ListAnswer};
use crate::contract::{review as wire, types as wit};
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, Normalize, bad};
use memhost_types::{CompanyId, Decision, RecordId, RecordWrite, Scope, Snippet};

impl Instances {
    /// One page of what waits for a person, oldest first. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; the same for the call below.
    pub async fn pending(
        &self,
        scope: &Scope,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Answer<ListAnswer>, Failure> {
        let (asked, company) = (convert::scope(scope), &scope.company_id);
        let check = |checks: &Normalize, answer| checks.list(answer, limit, company);
        call!(self, wire.call_list_pending(&asked, cursor, limit), check).await
    }

    /// Tells the provider what a person decided. Answers the record as it now is.
    ///
    /// # Errors
    /// As [`Instances::pending`].
    pub async fn decide(
        &self,
        scope: &Scope,
        id: &RecordId,
        decision: Decision,
        edited: Option<&RecordWrite>,
    ) -> Result<Answer<Option<Snippet>>, Failure> {
        let (asked, id) = (convert::scope(scope), id.as_str().to_owned());
        let decision = wire_decision(decision, edited);
        let check = |checks: &Normalize, answer| decided(checks, answer, &id, &scope.company_id);
        call!(self, wire.call_decide(&id, &asked, &decision), check).await
    }
}

/// An edit without its record becomes an approval: the service has refused it before.
fn wire_decision(decision: Decision, edited: Option<&RecordWrite>) -> wire::Decision {
    match (decision, edited) {
        (Decision::Reject, _) => wire::Decision::Reject,
        (Decision::Edit, Some(record)) => wire::Decision::Edit(convert::record_write(record)),
        (Decision::Approve | Decision::Edit, _) => wire::Decision::Approve,
    }
}

fn decided(
    normalize: &Normalize,
    answer: Option<wit::Snippet>,
    asked: &str,
    company: &CompanyId,
) -> Checked<Option<Snippet>> {
    if answer.as_ref().is_some_and(|snippet| snippet.id != asked) {
        return bad("it answers another record than the one that was decided about");
    }
    answer.map(|snippet| normalize.snippet(snippet, company)).transpose()
}
