//! Turns at what few may do at a time, fair by company: whoever waits comes after one turn of each
//! other company, however many turns the others wait for. One company has at most all turns but
//! one, so that another need not wait until the work of the first is done.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Some turns that companies share.
pub struct Turns(Mutex<Waiting>);

struct Waiting {
    free: usize,
    /// How many turns one company may have.
    most: usize,
    /// How many each company has. None has 0.
    held: HashMap<String, usize>,
    /// The waiting tasks of each company, in the order in which the companies come next. No queue
    /// is empty. While a turn is free, only companies that have all the turns they may have wait.
    queues: VecDeque<(String, VecDeque<oneshot::Sender<Turn>>)>,
}

impl Waiting {
    fn may_have_one(&self, company: &str) -> bool {
        self.held.get(company).is_none_or(|held| *held < self.most)
    }

    fn give(&mut self, company: &str) {
        *self.held.entry(company.to_owned()).or_default() += 1;
    }

    fn give_back(&mut self, company: &str) {
        if let Some(held) = self.held.get_mut(company) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(company);
            }
        }
    }
}

/// A turn of a company. It goes on to the next one when this is dropped.
pub struct Turn(Option<(Arc<Turns>, String)>);

impl Turns {
    /// So many at a time, at least one.
    pub fn new(count: usize) -> Arc<Self> {
        let (free, most) = (count.max(1), count.saturating_sub(1).max(1));
        Arc::new(Self(Mutex::new(Waiting {
            free,
            most,
            held: HashMap::new(),
            queues: VecDeque::new(),
        })))
    }

    /// Waits for a turn of this company. Who stops waiting loses nothing but their place.
    pub async fn take(self: &Arc<Self>, company: &str) -> Turn {
        loop {
            let receiver = {
                let mut waiting = self.lock();
                if waiting.free > 0 && waiting.may_have_one(company) {
                    waiting.free -= 1;
                    waiting.give(company);
                    return Turn(Some((Arc::clone(self), company.to_owned())));
                }
                let (sender, receiver) = oneshot::channel();
                match waiting.queues.iter_mut().find(|(known, _)| known == company) {
                    Some((_, queue)) => queue.push_back(sender),
                    None => {
                        waiting.queues.push_back((company.to_owned(), VecDeque::from([sender])));
                    }
                }
                receiver
            };
            // Every sender in a queue is used: a turn that is taken is given on.
            if let Ok(turn) = receiver.await {
                return turn;
            }
        }
    }

    /// Gives the turn that a company had to who comes next.
    fn pass(self: &Arc<Self>, mut from: String) {
        loop {
            let (company, sender) = {
                let mut waiting = self.lock();
                waiting.give_back(&from);
                let next =
                    waiting.queues.iter().position(|(company, _)| waiting.may_have_one(company));
                let Some((company, mut queue)) = next.and_then(|next| waiting.queues.remove(next))
                else {
                    waiting.free += 1;
                    return;
                };
                waiting.give(&company);
                let sender = queue.pop_front();
                if !queue.is_empty() {
                    waiting.queues.push_back((company.clone(), queue));
                }
                (company, sender)
            };
            if let Some(sender) = sender {
                match sender.send(Turn(Some((Arc::clone(self), company.clone())))) {
                    Ok(()) => return,
                    // Nobody waits there any more: the turn stays here.
                    Err(mut unwanted) => drop(unwanted.0.take()),
                }
            }
            from = company;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((turns, company)) = self.0.take() {
            turns.pass(company);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Who gets a turn when it is passed on, again and again.
    fn order(turns: &Arc<Turns>, waiting: &[&str]) -> Vec<String> {
        let Poll::Ready(mut turn) = poll(pin!(turns.take("first"))) else {
            panic!("a turn is free")
        };
        let mut waiting: Vec<_> =
            waiting.iter().map(|company| (*company, Box::pin(turns.take(company)))).collect();
        for (_, wait) in &mut waiting {
            assert!(poll(wait.as_mut()).is_pending());
        }
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(turn);
            let mut next = None;
            waiting.retain_mut(|(company, wait)| match poll(wait.as_mut()) {
                Poll::Ready(taken) => {
                    assert!(next.replace(taken).is_none(), "two have the one turn");
                    order.push((*company).to_owned());
                    false
                }
                Poll::Pending => true,
            });
            turn = next.expect("the turn is lost");
        }
        order
    }

    #[test]
    fn companies_take_turns_however_many_one_of_them_waits_for() {
        let turns = Turns::new(1);
        let waiting = ["a", "a", "a", "a", "b", "b", "c"];
        assert_eq!(order(&turns, &waiting), ["a", "b", "c", "a", "b", "a", "a"]);
        assert_eq!(order(&turns, &["a", "a"]), ["a", "a"]);
    }

    #[test]
    fn one_company_has_all_but_one_of_several_turns() {
        let turns = Turns::new(3);
        let taken = |company| match poll(pin!(turns.take(company))) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        };
        let (first, second) = (taken("a").unwrap(), taken("a").unwrap());
        let mut third = Box::pin(turns.take("a"));
        assert!(poll(third.as_mut()).is_pending(), "the last one is for others");
        let other = taken("b").expect("a turn is free for others");
        assert!(taken("c").is_none());
        // What another gives back stays free, and its own is passed on.
        drop(other);
        assert!(poll(third.as_mut()).is_pending());
        drop(first);
        let Poll::Ready(third) = poll(third.as_mut()) else { panic!("the turn is lost") };
        assert!(taken("a").is_none());
        drop((second, third));
        assert_eq!((0..9).map(|_| taken("c")).collect::<Vec<_>>().iter().flatten().count(), 2);
    }

    #[test]
    fn who_stops_waiting_loses_no_turn() {
        let turns = Turns::new(1);
        let Poll::Ready(turn) = poll(pin!(turns.take("a"))) else { panic!("a turn is free") };
        let mut gone = Box::pin(turns.take("b"));
        let mut late = Box::pin(turns.take("c"));
        assert!(poll(gone.as_mut()).is_pending() && poll(late.as_mut()).is_pending());
        let mut unread = Box::pin(turns.take("d"));
        assert!(poll(unread.as_mut()).is_pending());
        drop(gone);
        drop(turn);
        let Poll::Ready(turn) = poll(late.as_mut()) else { panic!("the turn is lost") };
        // A turn that was given and not fetched goes on, too.
        drop(turn);
        drop(unread);
        assert!(poll(pin!(turns.take("a"))).is_ready());
    }
}
