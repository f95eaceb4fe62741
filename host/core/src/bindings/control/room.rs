//! How many bindings and assignments a company may have. All are in memory, and in one answer each.

use async_recursion::async_recursion as boxed;

use super::SetTarget;
use crate::Service;
use crate::access::Caller;
use crate::error::ServiceError;
use memhost_types::{BindingKey, CompanyId, FieldError, Target};

/// A company has at most so many bindings.
const MAX_BINDINGS: usize = 1_000;
/// A company has at most so many assignments.
const MAX_TARGETS: usize = 10_000;

/// Whether there is room for one more of what there are so many of.
fn room(
    field: &str,
    what: &str,
    present: usize,
    most: usize,
    command: &str,
) -> Result<(), FieldError> {
    if present < most {
        return Ok(());
    }
    let message = format!(
        "would be one too many; a company has at most {most} {what}; make room with `memhost \
         binding {command}`"
    );
    Err(FieldError::new(field, message))
}

impl Service {
    /// Checks that a company may have one more binding. A key that exists already passes here and
    /// gets an error of its own.
    pub(super) fn check_room(
        &self,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<(), FieldError> {
        if self.bindings.get(company, key).is_ok() {
            return Ok(());
        }
        room("key", "bindings", self.bindings.list(company).len(), MAX_BINDINGS, "delete KEY")
    }

    /// Assigns a binding to the company or to an agent, or removes the assignment.
    ///
    /// # Errors
    /// Where there is no such binding, or too many agents have one of their own.
    #[boxed]
    pub async fn set_target(
        &self,
        caller: &Caller,
        company: &CompanyId,
        request: SetTarget,
    ) -> Result<(), ServiceError> {
        let present = self.bindings.targets(company);
        if let (Some(agent), Some(_)) = (&request.agent_id, &request.binding_key)
            && !present
                .iter()
                .any(|(target, _)| matches!(target, Target::Agent(other) if other == agent))
        {
            room(
                "agentId",
                "agents with a binding of their own",
                present.len(),
                MAX_TARGETS,
                "assign --none --agent ID",
            )?;
        }
        let target = request.agent_id.map_or(Target::Company, Target::Agent);
        Ok(self
            .bindings
            .set_target(caller.principal(), company, target, request.binding_key.as_ref())
            .await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_the_most_is_refused() {
        assert!(room("key", "bindings", 9, 10, "delete").is_ok());
        let full = room("key", "bindings", 10, 10, "delete").unwrap_err();
        assert_eq!(full.field, "key");
        assert!(
            full.message.contains("at most 10 bindings") && full.message.contains("binding delete"),
            "{full}"
        );
    }
}
