//! How the last hour was for each binding: calls, those that its provider failed, and recalls that
//! were answered without all that there is. In memory, since the host started.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

use memhost_types::{BindingKey, CompanyId, Operation, OperationErrorCode, counted};

/// Minutes that are counted.
const MINUTES: usize = 60;
/// So many failures are trouble, if they are also a [`SHARE`]th of what was asked.
const MOST_FAILED: u64 = 5;
/// The same of recalls: an agent that starts without its memory does not know that it does.
const MOST_DEGRADED: u64 = 3;
/// One in twenty, 5 %.
const SHARE: u64 = 20;

#[derive(Debug, Clone, Copy, Default)]
struct Minute {
    number: i64,
    calls: u64,
    failed: u64,
    recalls: u64,
    degraded: u64,
}

#[derive(Debug)]
struct Hour {
    minutes: [Minute; MINUTES],
    /// Why the last call failed, and why the last recall was not whole.
    failed: String,
    degraded: String,
}

impl Default for Hour {
    fn default() -> Self {
        Self {
            minutes: [Minute::default(); MINUTES],
            failed: String::new(),
            degraded: String::new(),
        }
    }
}

impl Hour {
    fn minute(&mut self, now: Timestamp) -> &mut Minute {
        let number = now.as_second().div_euclid(60);
        let place = usize::try_from(number.rem_euclid(MINUTES as i64)).unwrap_or_default();
        let minute = &mut self.minutes[place];
        if minute.number != number {
            *minute = Minute { number, ..Minute::default() };
        }
        minute
    }

    fn sum(&self, now: Timestamp, of: impl Fn(&Minute) -> u64) -> u64 {
        let first = now.as_second().div_euclid(60) - MINUTES as i64 + 1;
        self.minutes.iter().filter(|minute| minute.number >= first).map(of).sum()
    }
}

type Hours = HashMap<CompanyId, HashMap<BindingKey, Arc<Mutex<Hour>>>>;

/// What is wrong with a binding by its last hour, in a sentence each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Too many of its calls failed.
    pub failing: Option<String>,
    /// Too many recalls were answered without all that there is.
    pub degraded: Option<String>,
}

/// The last hour of every binding.
#[derive(Debug, Default)]
pub struct Recent(RwLock<Hours>);

impl Recent {
    fn known(&self, company: &CompanyId, binding: &BindingKey) -> Option<Arc<Mutex<Hour>>> {
        self.0.read().get(company)?.get(binding).cloned()
    }

    fn hour(&self, company: &CompanyId, binding: &BindingKey) -> Arc<Mutex<Hour>> {
        self.known(company, binding).unwrap_or_else(|| {
            let mut all = self.0.write();
            Arc::clone(all.entry(company.clone()).or_default().entry(binding.clone()).or_default())
        })
    }

    /// Counts an operation that has ended, if its binding's provider was asked or could not be.
    pub(crate) fn note(&self, operation: &Operation, now: Timestamp) {
        let Some(binding) = &operation.binding_key else { return };
        let error = operation.error.as_ref();
        let failed = error.filter(|error| is_failure(error.code));
        if error.is_some() && failed.is_none() {
            return;
        }
        let hour = self.hour(&operation.company_id, binding);
        let mut hour = hour.lock();
        let minute = hour.minute(now);
        minute.calls += 1;
        if let Some(error) = failed {
            minute.failed += 1;
            hour.failed.clone_from(&error.message);
        }
    }

    /// Counts a recall. `degraded`: why it was not whole.
    pub fn recalled(
        &self,
        company: &CompanyId,
        binding: &BindingKey,
        degraded: Option<&str>,
        now: Timestamp,
    ) {
        let hour = self.hour(company, binding);
        let mut hour = hour.lock();
        let minute = hour.minute(now);
        minute.recalls += 1;
        if let Some(why) = degraded {
            minute.degraded += 1;
            why.clone_into(&mut hour.degraded);
        }
    }

    /// What is wrong with a binding by its last hour.
    pub fn troubles(&self, company: &CompanyId, binding: &BindingKey, now: Timestamp) -> Troubles {
        let mut troubles = Troubles::default();
        let Some(hour) = self.known(company, binding) else { return troubles };
        let hour = hour.lock();
        let sum = |of: fn(&Minute) -> u64| hour.sum(now, of);
        let (failed, calls) = (sum(|minute| minute.failed), sum(|minute| minute.calls));
        let (degraded, recalls) = (sum(|minute| minute.degraded), sum(|minute| minute.recalls));
        if failed >= MOST_FAILED && failed * SHARE >= calls {
            let calls = counted(calls, "call", "calls");
            let last = &hour.failed;
            troubles.failing =
                Some(format!("{failed} of {calls} failed in the last hour; the last: {last}"));
        }
        if degraded >= MOST_DEGRADED && degraded * SHARE >= recalls {
            let recalls = counted(recalls, "recall", "recalls");
            let last = &hour.degraded;
            troubles.degraded = Some(format!(
                "{degraded} of {recalls} were degraded in the last hour; the last: {last}"
            ));
        }
        troubles
    }

    /// A binding was deleted: one that gets its key begins anew.
    pub fn forget(&self, company: &CompanyId, binding: &BindingKey) {
        if let Some(of_company) = self.0.write().get_mut(company) {
            of_company.remove(binding);
        }
    }

    /// A company was erased.
    pub fn forget_company(&self, company: &CompanyId) {
        self.0.write().remove(company);
    }
}

/// Whether this says something of the provider, and not of what was asked or of a limit that
/// somebody has set.
fn is_failure(code: OperationErrorCode) -> bool {
    matches!(
        code,
        OperationErrorCode::Unauthorized
            | OperationErrorCode::Unavailable
            | OperationErrorCode::Internal
            | OperationErrorCode::TimedOut
            | OperationErrorCode::Trapped
            | OperationErrorCode::LimitExceeded
            | OperationErrorCode::BadAnswer
            | OperationErrorCode::CircuitOpen
            | OperationErrorCode::ProviderMissing
            | OperationErrorCode::Host
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_trouble_by_number_and_share_and_passes() {
        let (recent, acme): (_, CompanyId) = (Recent::default(), "acme".parse().unwrap());
        let (key, other): (BindingKey, BindingKey) = ("a".parse().unwrap(), "b".parse().unwrap());
        let at = |minute: i64| Timestamp::from_second(1_000_000_020 + 60 * minute).unwrap();
        let recalled = |degraded: bool, minute: i64| {
            recent.recalled(&acme, &key, degraded.then_some("it was late"), at(minute));
        };
        (0..57).for_each(|_| recalled(false, 0));
        (0..2).for_each(|_| recalled(true, 30));
        let none = Troubles::default();
        assert_eq!(recent.troubles(&acme, &key, at(30)), none);
        recalled(true, 31);
        let found = recent.troubles(&acme, &key, at(59));
        let said = "3 of 60 recalls were degraded in the last hour; the last: it was late";
        assert_eq!(found, Troubles { degraded: Some(said.to_owned()), failing: None });
        assert_eq!(recent.troubles(&acme, &other, at(59)), none);
        let later = recent.troubles(&acme, &key, at(60));
        assert!(later.degraded.is_some(), "the first minute has passed");
        assert_eq!(recent.troubles(&acme, &key, at(90)), none, "one is left");
        recent.forget(&acme, &key);
        assert_eq!(recent.troubles(&acme, &key, at(31)), none);
    }
}
