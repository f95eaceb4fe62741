//! Many events at once: each has its own result, as if it had come alone, and they share the
//! flushes of the store.

use async_recursion::async_recursion as boxed;
use std::collections::HashMap;
use std::sync::Arc;

use crate::Background;
use memhost_access::{Caller, Denied};
use memhost_queues::due_queue::Due;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Delivery, DeliveryId, FieldError, HookEvent, HookKind, NotTaken, OperationKind, limits,
};

/// Deliveries that are stored in one step at most, and about how many bytes of material.
const AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 8 * 1024 * 1024;

/// The result of one event of a batch.
#[derive(Debug)]
pub struct BatchReceipt {
    /// The event.
    pub hook_id: String,
    /// Whether it had been delivered before, in this batch or earlier.
    pub is_duplicate: bool,
    /// One for each binding that takes it, the one that the scope resolves to first.
    pub deliveries: Vec<DeliveryId>,
    /// Set where no binding takes it: the event is not kept.
    pub not_taken: Option<NotTaken>,
}

/// An event of a batch on its way.
enum Accepting {
    Ended(Result<BatchReceipt, ServiceError>),
    /// Its deliveries are these of all that the batch makes; each is new or not.
    Begun {
        hook_id: String,
        deliveries: Vec<usize>,
    },
}

/// The deliveries that a batch makes, and for each the one that has its place, once that is known.
#[derive(Default)]
struct Made {
    deliveries: Vec<Delivery>,
    known: Vec<Option<DeliveryId>>,
    marks: HashMap<Vec<u8>, usize>,
}

impl Background {
    /// Accepts events, at most 1,000. Each is accepted, known already, taken by nobody, or refused,
    /// as if it had come alone; one that is refused does not stop the others. What was accepted is
    /// on disk when this returns, and is begun in the order of the events.
    ///
    /// # Errors
    /// Where the number of events is not allowed, or the store fails; then the same events can be
    /// sent again.
    #[boxed]
    pub async fn deliver_batch(
        self: Arc<Self>,
        caller: &Caller,
        events: Vec<HookEvent>,
    ) -> Result<Vec<Result<BatchReceipt, ServiceError>>, ServiceError> {
        if events.len() > limits::MAX_ITEMS {
            let message =
                format!("has {} items; at most {} are allowed", events.len(), limits::MAX_ITEMS);
            return Err(FieldError::new("events", message).into());
        }
        let (mut made, mut all) = (Made::default(), Vec::with_capacity(events.len()));
        for event in events {
            all.push(self.begin_one(caller, event, &mut made).await?);
        }
        self.accept_made(caller, &mut made).await?;
        self.wake.notify_one();
        let mut results = Vec::with_capacity(all.len());
        let mut told = std::collections::HashSet::new();
        for one in all {
            results.push(match one {
                Accepting::Ended(result) => result,
                Accepting::Begun { hook_id, deliveries } => {
                    // A delivery is new to the first event of the batch that names it.
                    let new = deliveries
                        .iter()
                        .filter(|at| made.known[**at].is_none() && told.insert(**at));
                    let is_new = new.count() > 0;
                    let ids = deliveries
                        .iter()
                        .map(|at| made.known[*at].unwrap_or(made.deliveries[*at].id));
                    Ok(BatchReceipt {
                        hook_id,
                        is_duplicate: !is_new,
                        deliveries: ids.collect(),
                        not_taken: None,
                    })
                }
            });
        }
        Ok(results)
    }

    async fn begin_one(
        self: &Arc<Self>,
        caller: &Caller,
        mut event: HookEvent,
        made: &mut Made,
    ) -> Result<Accepting, ServiceError> {
        let refused = |field: &str, message: &str| {
            Ok(Accepting::Ended(Err(FieldError::new(field, message).into())))
        };
        if event.hook_kind == HookKind::PreRunHydrate {
            return refused(
                "hookKind",
                "is `pre_run_hydrate`, which is answered at once; send it alone, to `hooks`",
            );
        }
        if event.wait_ms.is_some_and(|ms| ms > 0) {
            return refused(
                "waitMs",
                "is set, and a batch does not wait; leave it out, or send the event to `hooks`",
            );
        }
        let bindings = match self.takers(caller, &mut event).await {
            Ok(bindings) => bindings,
            // Where the store fails, it fails for all.
            Err(error @ ServiceError::Store(_)) => return Err(error),
            Err(error) => return Ok(Accepting::Ended(Err(error))),
        };
        if bindings.is_empty() {
            let receipt = self.not_taken(caller, event).await.map(|receipt| BatchReceipt {
                hook_id: receipt.hook_id,
                is_duplicate: false,
                deliveries: Vec::new(),
                not_taken: receipt.not_taken,
            });
            return Ok(Accepting::Ended(receipt));
        }
        let mut deliveries = Vec::with_capacity(bindings.len());
        for binding in bindings {
            let delivery = self.operations.delivery(caller, &event, &binding);
            let (_, mark) = delivery.mark();
            if let Some(at) = made.marks.get(&mark) {
                // The same event a second time in this batch.
                deliveries.push(*at);
                continue;
            }
            let known = self.deliveries.known(&delivery).await?;
            if let Some(known) = &known
                && !may_answer(caller, known, &delivery)
            {
                let denied = Denied::of_another_run();
                let company = Some(&delivery.company_id);
                let refusal =
                    self.tenancy.deny(caller, OperationKind::Control, company, &denied).await;
                return Ok(Accepting::Ended(Err(refusal)));
            }
            let at = made.deliveries.len();
            made.deliveries.push(delivery);
            made.known.push(known.map(|known| known.id));
            made.marks.insert(mark, at);
            deliveries.push(at);
        }
        Ok(Accepting::Begun { hook_id: event.hook_id, deliveries })
    }

    /// Stores the deliveries that are new, with as few flushes as their size allows.
    async fn accept_made(&self, caller: &Caller, made: &mut Made) -> Result<(), ServiceError> {
        let new: Vec<usize> =
            (0..made.deliveries.len()).filter(|at| made.known[*at].is_none()).collect();
        let Some(company) = new.first().map(|at| made.deliveries[*at].company_id.clone()) else {
            return Ok(());
        };
        let times = self.batch_order.times(&company, self.clock.now(), new.len());
        for (at, due) in new.iter().zip(times) {
            made.deliveries[*at].due_at = Some(due);
        }
        let mut rest = &new[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |at: &&usize| {
                bytes += size_of_material(&made.deliveries[**at]);
                bytes <= BYTES_AT_ONCE
            };
            let count = rest.iter().take(AT_ONCE).take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            let batch = now.iter().map(|at| made.deliveries[*at].clone()).collect();
            let is_own = |known: &Delivery| {
                caller.run().is_none_or(|run| known.scope.run_id.as_deref() == Some(run))
            };
            // Nothing was stored: another run has sent one of these events since they were looked
            // for.
            let Some(accepted) = self.deliveries.accept_if(batch, is_own).await? else {
                let denied = Denied::of_another_run();
                return Err(self
                    .tenancy
                    .deny(caller, OperationKind::Control, Some(&company), &denied)
                    .await);
            };
            for (at, (delivery, is_new)) in now.iter().zip(accepted) {
                made.known[*at] = (!is_new).then_some(delivery.id);
            }
            rest = later;
        }
        Ok(())
    }
}

/// The bearer of a run's token does not get what became of another run's event.
fn may_answer(caller: &Caller, known: &Delivery, asked: &Delivery) -> bool {
    caller.run().is_none() || known.scope.run_id == asked.scope.run_id
}

/// About how many bytes a delivery is.
pub(crate) fn size_of_material(delivery: &Delivery) -> usize {
    delivery.payload.as_ref().map_or(0, |payload| payload.text_bytes()) + 2_048
}
