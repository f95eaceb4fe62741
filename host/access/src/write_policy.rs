//! What a system in front decides about the memory of a binding, beside the caller's role: a guard
//! that the operations ask.

use std::fmt::Debug;
use std::sync::Arc;

use crate::attached::Attached;
use crate::denied::Denied;
use memhost_types::{Binding, BindingKey, CompanyId, JsonObject, Principal, RecordRow, Scope};

/// How an operation uses the memory of its scope.
#[derive(Debug)]
pub enum Access<'a> {
    /// It reads records.
    Read,
    /// It corrects or forgets records.
    Change {
        /// The request means its scope as it is: without one of its fields it would be a larger
        /// one.
        is_exact: bool,
    },
    /// It writes records.
    Add {
        /// The metadata of the records, and of the request.
        metadata: Vec<&'a JsonObject>,
    },
    /// Something else, such as an export.
    Other,
}

/// Decides what somebody may do with the memory of the bindings that it is attached to. No method
/// has a default: a policy says all of it.
pub trait WritePolicy: Debug + Send + Sync {
    /// Checks whether somebody may name a scope, whatever they do there.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, principal: &Principal, scope: &Scope) -> Result<(), Denied>;

    /// Narrows the scope that an operation is bound to.
    fn narrow(&self, principal: &Principal, access: &Access<'_>, scope: &mut Scope);

    /// Notes in the metadata of a record, which somebody writes in a scope, what the system behind
    /// the policy knows of its source. Takes out of them who made it, and answers that, where it is
    /// to be believed: it is kept in the record's row only.
    fn stamp(
        &self,
        principal: &Principal,
        scope: &Scope,
        metadata: &mut Option<JsonObject>,
    ) -> Option<String>;

    /// Who is deleted in the system behind the policy when a scope is forgotten: their name goes
    /// from the records that stay. `None`: the scope is only a part of somebody's.
    fn leaver<'a>(&self, forgotten: &'a Scope) -> Option<&'a str>;

    /// Whether somebody may change every record there, so that it need not be asked of each.
    fn may_change_all(&self, principal: &Principal) -> bool;

    /// Checks whether somebody may correct, replace or forget a record.
    ///
    /// # Errors
    /// Why not.
    fn may_change(&self, principal: &Principal, record: &RecordRow) -> Result<(), Denied>;

    /// Checks whether somebody may forget a scope as a whole.
    ///
    /// # Errors
    /// Why not.
    fn may_clear(&self, principal: &Principal, scope: &Scope) -> Result<(), Denied>;
}

impl Attached<dyn WritePolicy> {
    /// The guard of a binding for somebody.
    pub fn guard(&self, principal: &Principal, binding: &Binding) -> Guard {
        Guard {
            protects: Guard::protection(principal, binding).protects,
            ..Guard::of(self, principal, &binding.company_id, Some(&binding.key))
        }
    }
}

/// The policies of a binding, for one principal. Without policies everything is allowed, and with
/// several each of them must allow it.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    policies: Option<(Principal, Vec<Arc<dyn WritePolicy>>)>,
    /// The binding keeps the records of administrators from the principal.
    protects: bool,
}

impl Guard {
    fn of(
        policies: &Attached<dyn WritePolicy>,
        principal: &Principal,
        company: &CompanyId,
        binding: Option<&BindingKey>,
    ) -> Self {
        let policies = policies.at(company, binding);
        let policies = (!policies.is_empty()).then(|| (principal.clone(), policies));
        Self { policies, protects: false }
    }

    /// Only what the binding itself keeps from somebody, without the policies of a system in front.
    /// The host itself is refused nothing: it asks for whomever it works.
    pub fn protection(principal: &Principal, binding: &Binding) -> Self {
        let is_hosts = matches!(principal, Principal::Host | Principal::System);
        let may = is_hosts || principal.is_administrator();
        Self { policies: None, protects: binding.policy.protect_administrators && !may }
    }

    /// Whether no policy narrows or stamps anything.
    pub fn is_open(&self) -> bool {
        self.policies.is_none()
    }

    /// Whether the binding keeps the records of administrators from the principal.
    pub fn is_protecting(&self) -> bool {
        self.protects
    }

    /// Whether the binding keeps this record from the principal.
    pub fn protects(&self, record: &RecordRow) -> bool {
        self.protects && record.written_by.is_administrator()
    }

    /// Checks whether the principal may name a scope.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, scope: &Scope) -> Result<(), Denied> {
        self.all(|policy, principal| policy.check(principal, scope))
    }

    /// Narrows the scope that an operation is bound to.
    pub fn narrow(&self, access: &Access<'_>, scope: &mut Scope) {
        self.each(|policy, principal| policy.narrow(principal, access, scope));
    }

    /// Stamps the metadata of records that are written in a scope. Answers who made each of them,
    /// where their writer names somebody; nothing without policies.
    pub fn stamp<'a>(
        &self,
        scope: &Scope,
        records: impl Iterator<Item = &'a mut Option<JsonObject>>,
    ) -> Vec<Option<String>> {
        let Some((principal, policies)) = &self.policies else { return Vec::new() };
        let stamp = |metadata: &mut Option<JsonObject>| {
            let stamps = policies.iter().map(|policy| policy.stamp(principal, scope, metadata));
            stamps.fold(None, Option::or)
        };
        records.map(stamp).collect()
    }

    /// Who is deleted in a system in front when a scope is forgotten.
    pub fn leaver<'a>(&self, forgotten: &'a Scope) -> Option<&'a str> {
        let (_, policies) = self.policies.as_ref()?;
        policies.iter().find_map(|policy| policy.leaver(forgotten))
    }

    /// Whether the principal may change every record, so that it need not be asked of each.
    pub fn may_change_all(&self) -> bool {
        if self.protects {
            return false;
        }
        let Some((principal, policies)) = &self.policies else { return true };
        policies.iter().all(|policy| policy.may_change_all(principal))
    }

    /// Checks whether the principal may correct, replace or forget a record.
    ///
    /// # Errors
    /// Why not.
    pub fn may_change(&self, record: &RecordRow) -> Result<(), Denied> {
        if self.protects(record) {
            return Err(Denied::whole(format!(
                "the record `{}` was written by an administrator (`{}`), and its binding keeps \
                 those from everybody else (`protectAdministrators`); write a record of your own, \
                 or ask an administrator to change this one",
                record.handle.provider_record_id, record.written_by
            )));
        }
        self.all(|policy, principal| policy.may_change(principal, record))
    }

    /// Checks whether the principal may forget a scope as a whole.
    ///
    /// # Errors
    /// Why not.
    pub fn may_clear(&self, scope: &Scope) -> Result<(), Denied> {
        self.all(|policy, principal| policy.may_clear(principal, scope))
    }

    fn all(
        &self,
        asks: impl Fn(&dyn WritePolicy, &Principal) -> Result<(), Denied>,
    ) -> Result<(), Denied> {
        let Some((principal, policies)) = &self.policies else { return Ok(()) };
        policies.iter().try_for_each(|policy| asks(&**policy, principal))
    }

    fn each(&self, mut does: impl FnMut(&dyn WritePolicy, &Principal)) {
        let Some((principal, policies)) = &self.policies else { return };
        policies.iter().for_each(|policy| does(&**policy, principal));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Section;

    /// Refuses the subject `nobody`, names the project `narrowed`, and says so in metadata.
    #[derive(Debug)]
    struct Fake;

    impl WritePolicy for Fake {
        fn check(&self, principal: &Principal, scope: &Scope) -> Result<(), Denied> {
            match scope.subject_id.as_deref() {
                Some("nobody") => {
                    Err(Denied::because("scope.subjectId", format!("not {principal}")))
                }
                _ => Ok(()),
            }
        }

        fn narrow(&self, _: &Principal, access: &Access<'_>, scope: &mut Scope) {
            if matches!(access, Access::Read) {
                scope.project_id = Some("narrowed".to_owned());
            }
        }

        fn stamp(
            &self,
            _: &Principal,
            _: &Scope,
            metadata: &mut Option<JsonObject>,
        ) -> Option<String> {
            let by = metadata.get_or_insert_default().insert("by".to_owned(), "policy".into());
            by.and_then(|by| by.as_str().map(str::to_owned))
        }

        fn leaver<'a>(&self, forgotten: &'a Scope) -> Option<&'a str> {
            forgotten.subject_id.as_deref()
        }

        fn may_change_all(&self, _: &Principal) -> bool {
            false
        }

        fn may_change(&self, _: &Principal, _: &RecordRow) -> Result<(), Denied> {
            Err(Denied::whole("kept"))
        }

        fn may_clear(&self, principal: &Principal, scope: &Scope) -> Result<(), Denied> {
            self.check(principal, scope)
        }
    }

    /// Allows everything.
    #[derive(Debug)]
    struct Open;

    impl WritePolicy for Open {
        fn check(&self, _: &Principal, _: &Scope) -> Result<(), Denied> {
            Ok(())
        }

        fn narrow(&self, _: &Principal, _: &Access<'_>, _: &mut Scope) {}

        fn stamp(&self, _: &Principal, _: &Scope, _: &mut Option<JsonObject>) -> Option<String> {
            None
        }

        fn leaver<'a>(&self, _: &'a Scope) -> Option<&'a str> {
            None
        }

        fn may_change_all(&self, _: &Principal) -> bool {
            true
        }

        fn may_change(&self, _: &Principal, _: &RecordRow) -> Result<(), Denied> {
            Ok(())
        }

        fn may_clear(&self, _: &Principal, _: &Scope) -> Result<(), Denied> {
            Ok(())
        }
    }

    #[test]
    fn one_of_several_policies_is_enough_to_refuse() {
        let acme: CompanyId = "acme".parse().unwrap();
        let (open, fake): (Arc<dyn WritePolicy>, Arc<dyn WritePolicy>) =
            (Arc::new(Open), Arc::new(Fake));
        for both in [[&open, &fake], [&fake, &open]] {
            let policies = Attached::<dyn WritePolicy>::default();
            for (name, policy) in ["first", "second"].into_iter().zip(both) {
                let section = Section { name, company: acme.clone(), binding: None };
                policies.attach(section, Arc::clone(policy));
            }
            let guard = Guard::of(&policies, &Principal::Operator, &acme, None);
            let nobodys =
                Scope { subject_id: Some("nobody".to_owned()), ..Scope::company(acme.clone()) };
            assert!(guard.check(&nobodys).is_err() && guard.may_clear(&nobodys).is_err());
            assert!(!guard.may_change_all(), "each record must be asked of the one that refuses");
        }
    }

    #[test]
    fn a_guard_refuses_narrows_and_stamps() {
        let acme: CompanyId = "acme".parse().unwrap();
        let policies = Attached::<dyn WritePolicy>::default();
        let binding = None;
        policies.attach(Section { name: "fake", company: acme.clone(), binding }, Arc::new(Fake));
        let guard = |company: &CompanyId| Guard::of(&policies, &Principal::Operator, company, None);
        let mut scope = Scope::company(acme.clone());
        guard(&acme).narrow(&Access::Other, &mut scope);
        assert_eq!(scope.project_id, None);
        guard(&acme).narrow(&Access::Read, &mut scope);
        assert_eq!(scope.project_id.as_deref(), Some("narrowed"));
        assert!(guard(&acme).check(&scope).is_ok() && guard(&acme).may_clear(&scope).is_ok());
        scope.subject_id = Some("nobody".to_owned());
        let denied = guard(&acme).check(&scope).unwrap_err();
        assert_eq!(denied.to_string(), "scope.subjectId: not operator");
        assert!(guard(&acme).may_clear(&scope).is_err() && !guard(&acme).may_change_all());
        let mut metadata = [None, Some(JsonObject::new())];
        guard(&acme).stamp(&scope, metadata.iter_mut());
        assert!(metadata.iter().flatten().all(|metadata| metadata["by"] == "policy"));
        assert_eq!(metadata.iter().flatten().count(), 2);

        let other = guard(&"other".parse().unwrap());
        let mut unstamped = [None];
        other.stamp(&scope, unstamped.iter_mut());
        assert!(other.is_open() && other.check(&scope).is_ok() && other.may_change_all());
        assert_eq!(unstamped, [None]);
    }
}
