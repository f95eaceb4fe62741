//! A number of bytes that requests in progress may hold, and each company's share of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memhost_types::CompanyId;
use parking_lot::Mutex;

/// A semaphore of bytes that companies share.
///
/// A company may hold as much as it leaves free. So the first one that sends much has half of the
/// budget, the next one half of the rest, and however many do so, something is left for the next
/// one. A fixed share would be used up by a few. Operators may hold all that is free.
#[derive(Debug, Clone)]
pub(crate) struct ByteBudget {
    held: Arc<Mutex<Held>>,
    most: usize,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    /// By each company that holds some. No entry is 0.
    companies: HashMap<CompanyId, usize>,
}

impl ByteBudget {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// A permit of a company, or of an operator, for no bytes yet.
    pub(crate) fn permit(&self, company: Option<CompanyId>) -> BytePermit {
        BytePermit { budget: self.clone(), company, bytes: AtomicUsize::new(0) }
    }
}

/// The bytes that one request holds. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct BytePermit {
    budget: ByteBudget,
    company: Option<CompanyId>,
    bytes: AtomicUsize,
}

impl BytePermit {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes, unless those are too many. Answers whether it did.
    pub(crate) fn try_add(&self, bytes: usize) -> bool {
        let mut held = self.budget.held.lock();
        let mine = match &self.company {
            Some(company) => held.companies.get(company).copied().unwrap_or(0) + bytes,
            None => 0,
        };
        let fits = bytes == 0 || held.all + bytes + mine <= self.budget.most;
        if fits {
            self.put(&mut held, bytes);
        }
        fits
    }

    /// Adds bytes also where they are too many: they are in memory anyway.
    pub(crate) fn add(&self, bytes: usize) {
        self.put(&mut self.budget.held.lock(), bytes);
    }

    fn put(&self, held: &mut Held, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        held.all += bytes;
        let Some(company) = &self.company else { return };
        match held.companies.get_mut(company) {
            Some(mine) => *mine += bytes,
            None => {
                held.companies.insert(company.clone(), bytes);
            }
        }
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        let mut held = self.budget.held.lock();
        held.all -= bytes;
        if let Some(company) = &self.company
            && let Some(mine) = held.companies.get_mut(company)
        {
            *mine -= bytes;
            if *mine == 0 {
                held.companies.remove(company);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(budget: &ByteBudget, company: &str) -> BytePermit {
        budget.permit(Some(company.parse().unwrap()))
    }

    /// Takes single bytes until one is refused.
    fn takes_all_it_can(permit: &BytePermit) -> usize {
        while permit.try_add(1) {}
        permit.bytes()
    }

    #[test]
    fn each_company_has_half_of_what_the_others_leave() {
        let budget = ByteBudget::new(1_000);
        let permits: Vec<BytePermit> =
            ["a", "b", "c", "d", "e"].iter().map(|company| of(&budget, company)).collect();
        let had: Vec<usize> = permits.iter().map(takes_all_it_can).collect();
        assert_eq!(had, [500, 250, 125, 62, 31]);
        assert!(of(&budget, "f").try_add(10), "something is left for the next one");
        assert!(!of(&budget, "a").try_add(1), "a company has its share once, not for each request");
    }

    #[test]
    fn operators_have_all_that_is_free() {
        let budget = ByteBudget::new(100);
        let (mine, operators) = (of(&budget, "a"), budget.permit(None));
        assert!(
            mine.try_add(20)
                && operators.try_add(80)
                && !operators.try_add(1)
                && operators.try_add(0)
        );
        assert!(!mine.try_add(1) && mine.try_add(0), "nothing is free");
    }

    #[test]
    fn what_is_dropped_is_free_and_what_is_there_anyway_counts() {
        let budget = ByteBudget::new(100);
        let (mine, other) = (of(&budget, "a"), of(&budget, "b"));
        mine.add(300);
        assert!(!other.try_add(1) && !mine.try_add(1));
        drop(mine);
        assert!(other.try_add(50));
        drop(other);
        let held = budget.held.lock();
        assert!(held.companies.is_empty() && held.all == 0);
    }
}
