//! A sum of bytes that the host holds for requests in progress, and what each company may have of
//! it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memhost_types::CompanyId;
use parking_lot::Mutex;

/// A sum of bytes, and how much it may be.
///
/// A company may have as much as it leaves free. So the first one that sends much has half of the
/// sum, the next one half of the rest, and however many do so, something is left for the next one.
/// A fixed share would be used up by a few. Operators are no company and may have all that is free.
#[derive(Debug, Clone)]
pub(crate) struct Sum {
    held: Arc<Mutex<Held>>,
    most: usize,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    /// The bytes of each company that has some now; no entry is 0.
    companies: HashMap<CompanyId, usize>,
}

impl Sum {
    /// Nothing yet, and at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// What a request of a company has of it: nothing yet. Without a company it is an operator's.
    pub(crate) fn part(&self, company: Option<CompanyId>) -> Part {
        Part { sum: self.clone(), company, bytes: AtomicUsize::new(0) }
    }
}

/// What one request has of a sum. Dropping it gives that back.
#[derive(Debug)]
pub(crate) struct Part {
    sum: Sum,
    company: Option<CompanyId>,
    bytes: AtomicUsize,
}

impl Part {
    /// How many bytes the whole sum may be.
    pub(crate) fn most(&self) -> usize {
        self.sum.most
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds bytes, unless that is too much. Answers whether it did.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        let mut held = self.sum.held.lock();
        let is_fine = match &self.company {
            None => held.all + bytes <= self.sum.most,
            Some(company) => {
                let mine = held.companies.get(company).copied().unwrap_or(0);
                mine + bytes <= self.sum.most.saturating_sub(held.all + bytes)
            }
        };
        if is_fine || bytes == 0 {
            self.put(&mut held, bytes);
        }
        is_fine || bytes == 0
    }

    /// Adds bytes that are there anyway, also where they are too many.
    pub(crate) fn count(&self, bytes: usize) {
        self.put(&mut self.sum.held.lock(), bytes);
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

impl Drop for Part {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        let mut held = self.sum.held.lock();
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

    fn of(sum: &Sum, company: &str) -> Part {
        sum.part(Some(company.parse().unwrap()))
    }

    /// Takes single bytes until one is refused.
    fn takes_all_it_can(part: &Part) -> usize {
        while part.add(1) {}
        part.bytes()
    }

    #[test]
    fn each_company_has_half_of_what_the_others_leave() {
        let sum = Sum::new(1_000);
        let parts: Vec<Part> =
            ["a", "b", "c", "d", "e"].iter().map(|company| of(&sum, company)).collect();
        let had: Vec<usize> = parts.iter().map(takes_all_it_can).collect();
        assert_eq!(had, [500, 250, 125, 62, 31]);
        assert!(of(&sum, "f").add(10), "something is left for the next one");
        assert!(!of(&sum, "a").add(1), "a company has its share once, not for each request");
    }

    #[test]
    fn operators_have_all_that_is_free() {
        let sum = Sum::new(100);
        let (mine, operators) = (of(&sum, "a"), sum.part(None));
        assert!(mine.add(20) && operators.add(80) && !operators.add(1) && operators.add(0));
        assert!(!mine.add(1) && mine.add(0), "nothing is free");
    }

    #[test]
    fn what_is_dropped_is_free_and_what_is_there_anyway_counts() {
        let sum = Sum::new(100);
        let (mine, other) = (of(&sum, "a"), of(&sum, "b"));
        mine.count(300);
        assert!(!other.add(1) && !mine.add(1));
        drop(mine);
        assert!(other.add(50));
        drop(other);
        let held = sum.held.lock();
        assert!(held.companies.is_empty() && held.all == 0);
    }
}
