//! Tokens that have ended. They are kept for a while, so that requests that still use them are
//! attributed, and then removed: otherwise a company's list grows for as long as somebody makes
//! tokens.

use jiff::SignedDuration;

use super::{Tokens, ended_at, key};
use crate::AccessError;
use memhost_store::{self as store, Change, Table};
use memhost_types::{CompanyId, Token};

/// An ended token is kept so long.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A company has at most so many tokens that have ended; those that ended first are removed first.
const MAX_ENDED: usize = 1_000;
/// One call removes at most so many.
const AT_ONCE: usize = 500;

impl Tokens {
    /// Removes tokens that ended long ago, and the first of too many that have ended: at most 500.
    /// If more are left, the next call removes them. `only`: the tokens of this company. `None`:
    /// those of all companies and of the operators. A token that is changed at the same time goes
    /// at the next call.
    ///
    /// # Errors
    /// Where a row cannot be read or removed.
    pub async fn drop_ended(&self, only: Option<&CompanyId>) -> Result<(), AccessError> {
        for change in self.outdated(only).await? {
            self.write(&change).await?;
        }
        Ok(())
    }

    async fn outdated(&self, only: Option<&CompanyId>) -> Result<Vec<Change>, AccessError> {
        let now = self.clock.now();
        // Those of operators are removed at one host only.
        let is_ours = |token: &Token| token.company_id.is_some() || self.store.is_hosts_home();
        let is_asked = |token: &Token| {
            only.is_none_or(|only| token.company_id.as_ref() == Some(only)) && is_ours(token)
        };
        let all: Vec<_> = self
            .all
            .read()
            .by_id
            .values()
            .filter(|stored| is_asked(&stored.token))
            .cloned()
            .collect();
        let ended =
            all.into_iter().filter_map(|stored| Some((ended_at(&stored.token, now)?, stored)));
        let mut ended: Vec<_> = ended.collect();
        // By company, the last to end first.
        ended.sort_by(|(at, one), (other_at, other)| {
            (&one.token.company_id, *other_at).cmp(&(&other.token.company_id, *at))
        });
        let mut changes = Vec::new();
        for of_company in
            ended.chunk_by(|(_, one), (_, other)| one.token.company_id == other.token.company_id)
        {
            for (place, (at, stored)) in of_company.iter().enumerate() {
                let is_old = now.duration_since(*at) >= KEPT;
                if (!is_old && place < MAX_ENDED) || changes.len() >= AT_ONCE {
                    continue;
                }
                let key = key(&stored.token);
                let expected =
                    store::unchanged(&*self.store, Table::Tokens, &key, "token", &**stored).await?;
                changes.push(Change { table: Table::Tokens, key, expected, new: None });
            }
        }
        Ok(changes)
    }
}
