//! The interface `correction`: correcting a record.

use crate::answer::Answer;
use crate::contract::correction as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, Normalize, usages};
use memhost_types::{CorrectRequest, OperationId, RecordHandle, Usage};

/// The answer of `correct`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct Correction {
    pub record: RecordHandle,
    pub superseded: Option<RecordHandle>,
    pub usage: Vec<Usage>,
}

impl Instances {
    /// Corrects a record.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn correct(
        &self, id: OperationId, request: &CorrectRequest,
    ) -> Result<Answer<Correction>, Failure> {
        let request = correct_request(id, request);
        call!(self, wire.call_correct(&request), corrected).await
    }
}

fn correct_request(id: OperationId, request: &CorrectRequest) -> wire::CorrectRequest {
    let patch = match (&request.patch.record, &request.patch.instruction) {
        (Some(record), _) => wire::Patch::Replacement(convert::record_write(record)),
        (None, instruction) => wire::Patch::Instruction(instruction.clone().unwrap_or_default()),
    };
    wire::CorrectRequest {
        operation_id: id.to_string(),
        id: request.handle.provider_record_id.as_str().to_owned(),
        scope: convert::scope(&request.scope),
        patch,
    }
}

fn corrected(normalize: &Normalize, answer: wire::CorrectResponse) -> Checked<Correction> {
    Ok(Correction {
        record: normalize.handle(answer.record_id)?,
        superseded: answer.superseded.map(|id| normalize.handle(id)).transpose()?,
        usage: usages(answer.usage)?,
    })
}
