//! Forgetting a scope: all that was written for an agent, a subject, a namespace, a run, a session,
//! an issue or a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::Checked;
use super::{AgentId, BindingKey, DeliveryId, FieldError, ForgottenAt, Scope};

impl Scope {
    /// The values beyond the company, in the plan's order.
    fn parts(&self) -> [Option<&str>; 7] {
        [
            self.agent_id.as_ref().map(AgentId::as_str),
            self.project_id.as_deref(),
            self.issue_id.as_deref(),
            self.run_id.as_deref(),
            self.subject_id.as_deref(),
            self.session_key.as_deref(),
            self.namespace.as_deref(),
        ]
    }

    /// Whether it is that of a whole company.
    pub fn is_company(&self) -> bool {
        self.parts().iter().all(Option::is_none)
    }

    /// Whether another scope is within this one: it is of the same company, and has everything that
    /// this one names. What this one does not name is any.
    pub fn covers(&self, other: &Self) -> bool {
        let is =
            |(wanted, found): (Option<&str>, Option<&str>)| wanted.is_none() || wanted == found;
        self.company_id == other.company_id && self.parts().into_iter().zip(other.parts()).all(is)
    }

    /// Every scope that this one is within and that names something: 1 to 127, or none where it is
    /// that of a company.
    pub fn all_around(&self) -> impl Iterator<Item = Self> {
        let set: Vec<usize> = self
            .parts()
            .iter()
            .enumerate()
            .filter_map(|(part, value)| value.map(|_| part))
            .collect();
        let count = 1_u32 << set.len();
        (1..count).map(move |chosen| {
            let mut around = self.clone();
            for (number, part) in set.iter().enumerate() {
                if chosen & (1 << number) == 0 {
                    around.leave_out(*part);
                }
            }
            around.actor_agent_id = None;
            around
        })
    }

    /// Leaves out the part of this number in [`Self::parts`].
    fn leave_out(&mut self, part: usize) {
        match part {
            0 => self.agent_id = None,
            1 => self.project_id = None,
            2 => self.issue_id = None,
            3 => self.run_id = None,
            4 => self.subject_id = None,
            5 => self.session_key = None,
            _ => self.namespace = None,
        }
    }
}

/// `forgetScope`: forget all that was written in a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForgetScopeRequest {
    /// Only records of this binding; absent: those of every binding of the company.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Records written with all of its fields. It names something beside the company.
    pub scope: Scope,
}

impl ForgetScopeRequest {
    /// Checks the scope.
    ///
    /// # Errors
    /// The first field at fault; `scope` where it names nothing beside the company.
    pub fn check(&self) -> Checked {
        self.scope.check()?;
        match self.scope.is_company() {
            false => Ok(()),
            true => {
                let message = "names nothing beside the company; name an agent, a subject, a \
                               namespace, a run, a session, an \
                               issue or a project, or erase the company with `memhost company \
                               delete`";
                Err(FieldError::new("scope", message))
            }
        }
    }
}

/// The result of forgetting a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenScope {
    /// One for each binding that was asked.
    pub bindings: Vec<ForgottenAt>,
    /// Deliveries of material for this scope that had not been captured; they are discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<DeliveryId>,
    /// Whether all of it is done. Otherwise send the same request again: it goes on with what is
    /// left.
    pub is_complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(json: &str) -> Scope {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_scope_covers_what_has_everything_that_it_names() {
        let ada = scope(r#"{"companyId":"acme","agentId":"ada"}"#);
        let run = scope(r#"{"companyId":"acme","agentId":"ada","runId":"r1","namespace":"n"}"#);
        assert!(ada.covers(&run) && ada.covers(&ada) && !run.covers(&ada));
        for other in [
            r#"{"companyId":"zeta","agentId":"ada"}"#,
            r#"{"companyId":"acme","agentId":"carol"}"#,
            r#"{"companyId":"acme","subjectId":"ada"}"#,
            r#"{"companyId":"acme"}"#,
        ] {
            assert!(!ada.covers(&scope(other)), "{other}");
        }
    }

    #[test]
    fn all_scopes_around_one_cover_it_and_each_is_there_once() {
        let full = scope(
            r#"{"companyId":"a","agentId":"b","projectId":"c","issueId":"d","runId":"e",
                "subjectId":"f","sessionKey":"g",
               "namespace":"h"}"#,
        );
        let all: Vec<Scope> = full.all_around().collect();
        assert_eq!(all.len(), 127);
        for (number, around) in all.iter().enumerate() {
            assert!(
                around.covers(&full) && !around.is_company() && !all[..number].contains(around),
                "{around:?}"
            );
        }
        assert_eq!(scope(r#"{"companyId":"a"}"#).all_around().count(), 0);
    }

    #[test]
    fn a_request_names_something_beside_the_company() {
        let request = |scope: &str| {
            serde_json::from_str::<ForgetScopeRequest>(&format!(r#"{{"scope":{scope}}}"#)).unwrap()
        };
        let refused = request(r#"{"companyId":"a"}"#).check().unwrap_err();
        assert_eq!(refused.field, "scope");
        assert!(refused.message.contains("memhost company delete"), "{}", refused.message);
        assert_eq!(
            request(r#"{"companyId":"a","runId":"../x"}"#).check().unwrap_err().field,
            "scope.runId"
        );
        for part in
            ["agentId", "projectId", "issueId", "runId", "subjectId", "sessionKey", "namespace"]
        {
            assert!(
                request(&format!(r#"{{"companyId":"a","{part}":"x"}}"#)).check().is_ok(),
                "{part}"
            );
        }
    }
}
