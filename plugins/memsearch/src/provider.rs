//! The provider: what the SDK makes of reading and writing journals.

use std::cell::OnceCell;
use std::time::SystemTime;

use memhost_journal::{New, anchor, entries};
use memhost_sdk::remote::{Adapter, Listing, Record, Records, Service, Tag, of_unix, to_unix_millis, utc};
use memhost_sdk::{NoConfig, http, types::*};

use crate::days::{Days, note};
use crate::rank::rank;

/// The provider of a binding.
#[derive(Debug)]
pub struct Memsearch {
    records: Records<Journals>,
}

/// The journals as what the SDK calls a service.
#[derive(Debug)]
pub struct Journals {
    days: Days,
    company: OnceCell<String>,
}

impl Adapter for Memsearch {
    type Config = NoConfig;
    type Service = Journals;

    fn describe() -> Description {
        let version = env!("CARGO_PKG_VERSION");
        let base = Description::new("memsearch", version, "Writes Markdown journals that memsearch indexes");
        Description {
            declarations: Declarations {
                // Each record is a file written anew.
                max_upsert: Some(100),
                max_forget: Some(100),
                exceptions: vec![Exception::AllOrNoneUpserts],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Directory(32 << 20), "The journals are in it: memsearch indexes this directory")
        .require(Permission::Storage(64 << 20), "Notes what was written, so that nothing is written twice")
        .prefer(Permission::Clock, "The times in the journals are exact")
    }

    fn open(_: NoConfig) -> Result<Self, Error> {
        let days = Days::new(memhost_sdk::directory());
        Ok(Self { records: Records::new(Journals { days, company: OnceCell::new() }) })
    }

    fn records(&self, scope: &Scope) -> &Records<Journals> {
        self.records.service.company.get_or_init(|| scope.company_id.clone());
        &self.records
    }

    fn learns(&self, _: CaptureMode) -> bool {
        false
    }

    fn learn(&self, _: &CaptureRequest, _: &str, _: &Tag) -> Result<CaptureResponse, Error> {
        Err(Error::unsupported("memsearch extracts nothing; every capture is an entry"))
    }
}

impl Journals {
    fn company(&self) -> &str {
        self.company.get().map_or("", String::as_str)
    }

    /// Changes the file of a record, as it is now, and answers whether there was such a record.
    fn change(&self, id: &str, entry: impl FnOnce(&str) -> String) -> Result<bool, http::Error> {
        let changed = {
            let all = self.days.all(self.company())?;
            let Some(found) = all.iter().find(|found| found.record.id == id) else { return Ok(false) };
            let Some(mut content) = self.days.content(&found.day)? else { return Ok(false) };
            let Some(range) = found.range_in(&content, self.company()) else { return Ok(false) };
            let new = entry(&content[range.clone()]);
            content.replace_range(range, &new);
            (found.day.clone(), content)
        };
        self.days.write(&changed.0, &changed.1)?;
        Ok(true)
    }

    /// Removes the entries that have expired, from where memsearch would still find them.
    fn expire(&self) -> Result<(), http::Error> {
        let all = self.days.all(self.company())?;
        let expired: Vec<_> =
            all.iter().filter(|found| is_over(&found.record)).map(|found| found.record.id.clone()).collect();
        drop(all);
        expired.iter().try_for_each(|id| self.delete(id))
    }

    fn pick(&self, fits: impl Fn(&Record) -> bool) -> Result<Option<Record>, http::Error> {
        let all = self.days.all(self.company())?;
        Ok(all.iter().map(|found| &found.record).find(|record| fits(record)).cloned())
    }
}

impl Service for Journals {
    fn is_id(&self, id: &str) -> bool {
        !id.is_empty()
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, http::Error> {
        let mut tag = tag.clone();
        let at = tag.created_at.as_deref().and_then(utc).unwrap_or_else(now);
        tag.created_at.get_or_insert_with(|| at.clone());
        let (day, time) = (&at[..10], &at[11..16]);
        let anchor = anchor(&[("session", tag.scope.as_ref().and_then(|scope| scope.session_key.as_deref()))]);
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
        self.pick(|record| record.id == id && !is_over(record))
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
        let gone = format!("the entry of `{}` is gone; list the records to see which there are", old.id);
        Err(http::Error::Other(Error::NotFound(gone)))
    }

    fn delete(&self, id: &str) -> Result<(), http::Error> {
        // Copies of the entry, too.
        while self.change(id, |_| String::new())? {}
        Ok(())
    }

    fn left_of(&self, _: &str) -> Result<ForgetEffect, http::Error> {
        Ok(ForgetEffect::Hard)
    }

    fn search(&self, query: &str, _: &[(String, String)], most: usize) -> Result<Vec<Record>, http::Error> {
        let mut hits = rank(&self.days.all(self.company())?, query, most);
        hits.retain(|record| !is_over(record));
        Ok(hits)
    }

    fn most_hits(&self) -> usize {
        usize::MAX
    }

    fn list(&self, _: u32) -> Result<(Vec<Record>, bool), http::Error> {
        let all = self.days.all(self.company())?;
        Ok((all.iter().map(|found| found.record.clone()).filter(|record| !is_over(record)).collect(), false))
    }

    fn listing(&self) -> Listing {
        Listing::Whole(usize::MAX)
    }
}

/// Whether a record has expired.
fn is_over(record: &Record) -> bool {
    let millis = |at: &str| to_unix_millis(at).unwrap_or(i64::MAX);
    record.tag.expires_at.as_deref().is_some_and(|at| millis(at) <= millis(&now()))
}

/// The time now, in UTC.
fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    of_unix(since.as_secs_f64()).unwrap_or_default()
}
