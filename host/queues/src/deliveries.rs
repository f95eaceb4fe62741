//! Deliveries as records: each is accepted once for its event and binding, is due when it is to be
//! tried, and ends as delivered, dead or discarded. A delivery's record changes in one step with
//! the operation that changed it.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::BackgroundError;
use crate::due_queue::{Due, DueQueue, key};
use memhost_store::{self as store, Change, DueKind, Old, StoreError, Table};
use memhost_types::{
    AgentId, BindingId, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus,
    HookContext,
};

/// Deliveries of one binding that this host tries at a time: a provider that hangs does not block
/// the others.
pub const MOST_OF_A_BINDING: usize = 8;

/// Every delivery of this host.
pub type Deliveries = DueQueue<Delivery>;

impl Due for Delivery {
    type Filter = DeliveryFilter;
    const KIND: DueKind = DueKind::Delivery;
    const TABLE: Table = Table::Deliveries;
    /// Marks are in the same table, under `k`.
    const PREFIX: &'static [u8] = b"d";
    const NAME: &'static str = "delivery";

    fn company_id(&self) -> &CompanyId {
        &self.company_id
    }

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn binding_id(&self) -> BindingId {
        self.binding_id
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.due_at
    }

    /// An event of a binding: its kind, its id and the agent of its scope. The agent is part of it
    /// so that an agent can neither read nor block another agent's event by its id. Ids contain no
    /// zero byte.
    fn mark(&self) -> (Table, Vec<u8>) {
        let agent = self.scope.agent_id.as_ref();
        (Table::Deliveries, mark_of(&self.company_id, &self.hook, agent, self.binding_id))
    }

    fn matches(&self, filter: &DeliveryFilter) -> bool {
        filter.matches(self)
    }

    fn not_found(id: Uuid) -> BackgroundError {
        BackgroundError::NoDelivery { id }
    }
}

fn mark_of(
    company: &CompanyId,
    hook: &HookContext,
    agent: Option<&AgentId>,
    binding: BindingId,
) -> Vec<u8> {
    let agent = agent.map_or("", |id| id.as_str());
    let parts = [hook.hook_kind.as_str(), "\0", &hook.hook_id, "\0", agent, "\0"]
        .map(str::as_bytes)
        .concat();
    let key = [b"k", &parts[..], binding.0.as_bytes()].concat();
    store::company_key(company, &key)
}

impl Deliveries {
    /// The delivery of a hook to a binding, as long as it is kept.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn of_hook(
        &self,
        company: &CompanyId,
        hook: &HookContext,
        agent: Option<&AgentId>,
        binding: BindingId,
    ) -> Result<Option<Delivery>, StoreError> {
        let mark = mark_of(company, hook, agent, binding);
        let Some(id) = self.store.get(Table::Deliveries, &mark).await? else { return Ok(None) };
        let Ok(id) = Uuid::from_slice(&id) else { return Ok(None) };
        self.read(&key::<Delivery>(company, id)).await
    }

    /// Waits until a delivery is no longer pending, for at most `most`; answers it as it is then.
    ///
    /// # Errors
    /// Where it cannot be read, or there is none of this id.
    pub async fn wait(
        &self,
        company: &CompanyId,
        id: DeliveryId,
        most: Duration,
    ) -> Result<Delivery, BackgroundError> {
        let until = tokio::time::Instant::now() + most;
        let mut moves = self.moves();
        loop {
            // A change from here on ends the wait below.
            moves.mark_unchanged();
            let delivery = self.get(company, id.0).await?;
            let is_over = delivery.status != DeliveryStatus::Pending;
            if is_over
                || !matches!(tokio::time::timeout_at(until, moves.changed()).await, Ok(Ok(())))
            {
                return Ok(delivery);
            }
        }
    }

    /// Removes a company's deliveries that ended and came before `cutoff`, with their marks: the
    /// same event would be a new one. What is left to do stays, however old it is. Answers how many
    /// went.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn sweep(&self, company: &CompanyId, cutoff: Timestamp) -> Result<u64, StoreError> {
        let old = |value: &[u8]| {
            let delivery: Delivery = store::decode("delivery", value)?;
            Ok(match delivery.status {
                DeliveryStatus::Pending | DeliveryStatus::Held => Old::Stays,
                DeliveryStatus::Delivered
                | DeliveryStatus::Degraded
                | DeliveryStatus::Dead
                | DeliveryStatus::Discarded => {
                    let (table, key) = delivery.mark();
                    Old::Removed(vec![Change::always(table, key, None)])
                }
            })
        };
        let rows = (Table::Deliveries, Delivery::PREFIX);
        store::sweep(&*self.store, rows, company, cutoff, old).await
    }
}
