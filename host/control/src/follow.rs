//! Following the feed: from now on, after an earlier notice, or from the log after a longer
//! absence.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast::error::RecvError;

use crate::Control;
use memhost_access::Caller;
use memhost_oplog::feed::{Follower, HostEvent, MAX_FOLLOWERS_OF_CALLER, Notice, Place};
use memhost_tenancy::ServiceError;
use memhost_types::{CompanyId, FieldError, Operation, OperationFilter};

/// The most operations that are read from the log for a follower that was away too long.
const CAUGHT_UP: usize = 1_000;
/// The longest call: an operation that ended after a moment began at most this long before it.
const LONGEST_CALL: SignedDuration = SignedDuration::from_mins(15);

impl Control {
    /// Follows the events of a company, or of all, from now on or after an earlier notice. A notice
    /// may come twice after a restart; an operation's id identifies it.
    ///
    /// # Errors
    /// Where `after` is not the id of a notice, the caller follows too often at a time, or the log
    /// cannot be read.
    #[boxed]
    pub async fn follow(
        &self,
        caller: &Caller,
        company: Option<&CompanyId>,
        after: Option<&str>,
    ) -> Result<Follower, ServiceError> {
        let feed = &self.oplog.feed;
        let place = after.map(|id| {
            let advice =
                "is no id of a notice; leave it out to begin with what happens from now on";
            feed.place(id).ok_or_else(|| FieldError::new("Last-Event-ID", advice))
        });
        let place = place.transpose()?;
        let seat = feed
            .seat(caller.key())
            .ok_or(ServiceError::TooManyStreams { most: MAX_FOLLOWERS_OF_CALLER })?;
        let (mut follower, is_complete) = feed.follower(seat, company, place);
        // Another host may have served the company in between.
        let is_whole = is_complete && place.is_none_or(|place| place.at >= self.began_at);
        if let (Some(company), Some(place), false) = (company, place, is_whole) {
            follower.catch_up(self.ended_since(company, place.at).await?);
        }
        Ok(follower)
    }

    /// The operations that ended at or after a moment, oldest first.
    async fn ended_since(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<Vec<Arc<Notice>>, ServiceError> {
        let since = moment.checked_sub(LONGEST_CALL).unwrap_or(Timestamp::UNIX_EPOCH);
        let filter = OperationFilter { since: Some(since), ..OperationFilter::default() };
        let found = self.store.operations(company, &filter, None, CAUGHT_UP).await?.operations;
        let mut ended: Vec<(Timestamp, Operation)> = found
            .into_iter()
            .filter_map(|operation| {
                Some((operation.finished_at.filter(|at| *at >= moment)?, operation))
            })
            .collect();
        ended.sort_by_key(|(at, operation)| (*at, operation.id.sequence()));
        let notice = |(at, operation): (Timestamp, Operation)| {
            let place = Place::in_the_log(at);
            let operation = Operation { log: Vec::new(), payload: None, ..operation };
            let happened = HostEvent::Operation(Arc::new(operation));
            Arc::new(Notice { place, company_id: Some(company.clone()), happened })
        };
        Ok(ended.into_iter().map(notice).collect())
    }

    /// Publishes changes of the plugins directory, until the host is dropped.
    pub fn publish_plugin_changes(&self) {
        let (mut changes, feed) = (self.plugins.changes(), Arc::clone(&self.oplog.feed));
        memhost_executor::spawn(async move {
            loop {
                match changes.recv().await {
                    Ok(change) => feed.publish(None, HostEvent::Plugin(change)),
                    Err(RecvError::Lagged(_)) => feed.publish(None, HostEvent::Reset),
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }

    /// Ends all followers: the host is about to stop, and open connections would delay it.
    pub fn stop_following(&self) {
        self.oplog.feed.close();
    }
}
