//! The selection of records to forget, by scope or by source.

use jiff::Timestamp;

use super::traces::Origin;
use memhost_access::Guard;
use memhost_records::{Reader, Selection};
use memhost_types::{Delivery, FieldError, OperationId, RecordRow, Scope, SourceSelector};

/// Which records are forgotten.
#[derive(Clone)]
pub(super) enum What {
    /// Those that came from these sources, at any time.
    Sources(Vec<SourceSelector>),
    /// Those of the scope that were written before the request.
    Scope,
}

/// The records to forget at a binding.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) what: What,
    pub(super) scope: Scope,
    /// Who is to forget it: what somebody may not read stays.
    pub(super) reader: Reader,
    /// When the request came.
    pub(super) received: Timestamp,
    /// The first operation that forgets the scope at the binding: what came later stays.
    pub(super) by: Option<OperationId>,
    /// What the binding's policies keep stays.
    pub(super) guard: Guard,
}

impl Wanted {
    pub(super) fn selection(&self) -> Selection<'_> {
        match &self.what {
            What::Sources(sources) => Selection::Sources(sources),
            What::Scope => Selection::Scope(&self.scope),
        }
    }

    /// Whose name goes from the records that stay.
    pub(super) fn leaver(&self) -> Option<&str> {
        match self.what {
            What::Sources(_) => None,
            What::Scope => self.guard.leaver(&self.scope),
        }
    }

    /// What leaves traces beside the records that are known, for this operation.
    pub(super) fn origin(&self, by: OperationId) -> Origin<'_> {
        match &self.what {
            What::Sources(sources) => Origin::Sources(sources),
            What::Scope => Origin::Scope(&self.scope, &self.reader, self.by.unwrap_or(by)),
        }
    }

    /// Whether a selected record is to be forgotten from this operation on.
    pub(super) fn has(&self, row: &RecordRow, by: OperationId) -> bool {
        let by = self.by.unwrap_or(by);
        // What changed a record of a source later was not captured from the source.
        let is_before =
            matches!(self.what, What::Sources(_)) || row.operation_id.sequence() < by.sequence();
        is_before && self.reader.may_read(row) && self.guard.may_change(row).is_ok()
    }

    pub(super) fn has_delivery(&self, delivery: &Delivery) -> bool {
        let visibility = delivery.visibility.unwrap_or_default();
        match &self.what {
            What::Sources(sources) => delivery
                .source
                .as_ref()
                .is_some_and(|from| sources.iter().any(|source| source.matches(from))),
            What::Scope => {
                self.scope.covers(&delivery.scope)
                    && self.reader.may_forget_of(visibility, &delivery.scope)
            }
        }
    }

    /// A source is forgotten for the whole company.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        match self.what {
            What::Sources(_) => names_nobody(&self.scope),
            What::Scope => Ok(()),
        }
    }

    /// An operation was the first one: what a scope gets after it stays.
    pub(super) fn goes_on_from(&mut self, by: OperationId) {
        if matches!(self.what, What::Scope) {
            self.by.get_or_insert(by);
        }
    }
}

/// The records that one operation has forgotten.
pub(super) struct Gone {
    pub(super) operation_id: OperationId,
    pub(super) forgotten: u32,
    pub(super) hidden: u32,
}

pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A source is forgotten for the whole company.
pub(super) fn names_nobody(scope: &Scope) -> Result<(), FieldError> {
    let field = match (&scope.agent_id, &scope.subject_id) {
        (Some(_), _) => "scope.agentId",
        (_, Some(_)) => "scope.subjectId",
        _ => return Ok(()),
    };
    let message = "is set, and a source is forgotten for the whole company; leave it out, or \
                   forget records by handle";
    Err(FieldError::new(field, message))
}
