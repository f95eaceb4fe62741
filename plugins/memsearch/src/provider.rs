//! The provider: what the SDK makes of reading and writing journals, as if they were a service.

use memhost_journal::{New, anchor, entries};
use memhost_sdk::remote::{Listing, Record, Search, Service, Tag, now, utc};
use memhost_sdk::words::rank;
use memhost_sdk::{NoConfig, http, types::*};

use crate::days::{Days, note};

/// The journals of a company: the provider of a binding.
#[derive(Debug)]
pub struct Memsearch {
    days: Days,
    company: String,
}

impl Memsearch {
    /// Changes the file of a record, as it is now, and answers whether there was such a record.
    fn change(&self, id: &str, entry: impl FnOnce(&str) -> String) -> Result<bool, http::Error> {
        let changed = {
            let all = self.days.all(&self.company)?;
            let Some(found) = all.iter().find(|found| found.record.id == id) else {
                return Ok(false);
            };
            let Some(mut content) = self.days.content(&found.day)? else { return Ok(false) };
            let Some(range) = found.range_in(&content, &self.company) else { return Ok(false) };
            let new = entry(&content[range.clone()]);
            content.replace_range(range, &new);
            (found.day.clone(), content)
        };
        self.days.write(&changed.0, &changed.1)?;
        Ok(true)
    }

    /// Removes the entries that have expired, from where memsearch would still find them.
    fn expire(&self) -> Result<(), http::Error> {
        let all = self.days.all(&self.company)?;
        let expired: Vec<_> = all
            .iter()
            .filter(|found| found.record.tag.has_expired())
            .map(|found| found.record.id.clone())
            .collect();
        drop(all);
        expired.iter().try_for_each(|id| self.delete(id))
    }

    fn pick(&self, fits: impl Fn(&Record) -> bool) -> Result<Option<Record>, http::Error> {
        let all = self.days.all(&self.company)?;
        Ok(all.iter().map(|found| &found.record).find(|record| fits(record)).cloned())
    }
}

impl Service for Memsearch {
    type Config = NoConfig;

    const MOST_HITS: usize = usize::MAX;

    fn describe() -> Description {
        let summary = "Writes Markdown journals that memsearch indexes";
        Description::new("memsearch", env!("CARGO_PKG_VERSION"), summary)
            // Each record is a file written anew.
            .at_most(100, 100)
            .without([Exception::AllOrNoneUpserts])
            .require(
                Permission::Directory(32 << 20),
                "The journals are in it: memsearch indexes this directory",
            )
            .require(
                Permission::Storage(64 << 20),
                "Notes what was written, so that nothing is written twice",
            )
            .prefer(Permission::Clock, "The times in the journals are exact")
    }

    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self { days: Days::new(memhost_sdk::directory()), company: String::new() })
    }

    fn serve(&mut self, company: &str) {
        company.clone_into(&mut self.company);
    }

    fn is_id(&self, id: &str) -> bool {
        !id.is_empty()
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, http::Error> {
        let mut tag = tag.clone();
        let at = tag.created_at.as_deref().and_then(utc).unwrap_or_else(now);
        tag.created_at.get_or_insert_with(|| at.clone());
        let (day, time) = (&at[..10], &at[11..16]);
        let anchor = anchor(&[(
            "session",
            tag.scope.as_ref().and_then(|scope| scope.session_key.as_deref()),
        )]);
        self.expire()?;
        let mut content = self.days.content(day)?.unwrap_or_default();
        New { time, anchor: &anchor, note: &note(key, &tag, None), text }.add_to(&mut content, day);
        self.days.write(day, &content)?;
        Ok(key.to_owned())
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, http::Error> {
        Ok(self.pick(|record| record.key.as_deref() == Some(key))?.into_iter().collect())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, http::Error> {
        self.pick(|record| record.id == id && !record.tag.has_expired())
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), http::Error> {
        let at = old.tag.created_at.clone().unwrap_or_else(now);
        let (time, note) = (at.get(11..16).unwrap_or("00:00"), note(&old.id, tag, Some(now())));
        let is_there = self.change(&old.id, |before| {
            let anchor = entries(before).first().and_then(|entry| entry.anchor).unwrap_or_default();
            New { time, anchor, note: &note, text }.encode()
        })?;
        if is_there {
            return Ok(());
        }
        let gone =
            format!("the entry of `{}` is gone; list the records to see which there are", old.id);
        Err(http::Error::Other(Error::NotFound(gone)))
    }

    fn delete(&self, id: &str) -> Result<(), http::Error> {
        // Copies of the entry, too.
        while self.change(id, |_| String::new())? {}
        Ok(())
    }

    fn left_of(&self, _: &Record) -> Result<ForgetEffect, http::Error> {
        Ok(ForgetEffect::Hard)
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, http::Error> {
        let all = self.days.all(&self.company)?;
        let mut hits = rank(&all, |found| &found.words, search.query);
        hits.retain(|(at, _)| !all[*at].record.tag.has_expired());
        // The later of two equal ones comes first.
        let updated_at = |at: usize| &all[at].record.updated_at;
        hits.sort_by(|(a, one), (b, other)| {
            other.total_cmp(one).then_with(|| updated_at(*b).cmp(updated_at(*a)))
        });
        let hit = |(at, score): (usize, f64)| Record {
            score: Some(Score::Rank(score)),
            ..all[at].record.clone()
        };
        Ok(hits.into_iter().take(search.most).map(hit).collect())
    }

    fn list(&self, _: u32) -> Result<(Vec<Record>, bool), http::Error> {
        let all = self.days.all(&self.company)?;
        Ok((
            all.iter()
                .map(|found| found.record.clone())
                .filter(|record| !record.tag.has_expired())
                .collect(),
            false,
        ))
    }

    fn listing(&self) -> Listing {
        Listing::Whole(usize::MAX)
    }
}
