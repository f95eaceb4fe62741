//! The contract's calls.

use std::collections::{BTreeMap, HashSet};

use memhost_sdk::types::{
    CaptureRequest, CaptureResponse, ConfigError, ContextBundle, Continuation, CorrectRequest,
    CorrectResponse, Description, Error, ForgetEffect, ForgetOutcome, ForgetRequest,
    ForgetResponse, GetResponse, Intent, ListPage, ListRequest, Permission, ProfileResponse,
    QueryRequest, RecordId, Scope, Score, Snippet, UpsertRequest, UpsertResponse,
};
use memhost_sdk::words::{is_function_word, pieces, terms};
use memhost_sdk::{Correction, Profile, Provider};
use serde_json::{Map, Value};

use crate::config::{Config, schema};
use crate::fact::Fact;
use crate::list::{List, below, holder, release, update};
use crate::place::{LISTS, Owner, Place};
use crate::preamble::{Preamble, assemble};
use crate::request::{matches, object};

/// How many instances may serve a binding. They cannot overwrite each other's changes, because a
/// list is replaced only if it is still what was read.
const INSTANCES: u32 = 8;

/// The provider.
#[derive(Debug)]
pub struct Facts {
    pub(crate) config: Config,
}

impl Provider for Facts {
    type Config = Config;

    fn describe() -> Description {
        let mut description = Description::new(
            "facts",
            env!("CARGO_PKG_VERSION"),
            "Short facts about a user and of a workspace, all of them in every preamble",
        );
        "Facts".clone_into(&mut description.name);
        description.config_schema = Some(schema());
        description.max_concurrency = INSTANCES;
        description.require(Permission::Storage(256 << 20), "Facts are stored in it").prefer(
            Permission::Clock,
            "Facts are dated exactly; the oldest are left out of a preamble first",
        )
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        config.check()
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { config })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        self.write_capture(request)
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.write_all(request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let company = &request.scope.company_id;
        if matches!(request.intent, Intent::AgentPreamble) {
            let Preamble { text, facts, .. } = self.preamble(&request.scope, &filter)?;
            let facts = facts.into_iter().take(request.top_k as usize);
            let snippets = facts.map(|fact| fact.into_snippet(company)).collect();
            return Ok(ContextBundle { snippets, profile_summary: text, usage: Vec::new() });
        }
        let mut found: Vec<(f64, Fact)> = Vec::new();
        for (_, list) in Self::lists(&request.scope)? {
            let facts =
                list.facts.into_iter().filter(|fact| matches(fact.metadata.as_deref(), &filter));
            found.extend(facts.filter_map(|fact| Some((share(&request.query, &fact.text)?, fact))));
        }
        found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(other.created.cmp(&one.created)));
        found.truncate(request.top_k as usize);
        let snippet = |(score, fact): (f64, Fact)| Snippet {
            score: Score::Rank(score),
            ..fact.into_snippet(company)
        };
        Ok(found.into_iter().map(snippet).collect::<Vec<_>>().into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let after = request.cursor.as_deref().map(read_cursor).transpose()?;
        let mut items = Vec::new();
        let mut last = None;
        for (key, list) in Self::lists(&request.scope)? {
            for fact in list.facts {
                let place = (key.clone(), fact.number);
                if after.as_ref().is_some_and(|after| place <= *after)
                    || !matches(fact.metadata.as_deref(), &filter)
                {
                    continue;
                }
                if items.len() == request.limit as usize {
                    let continuation =
                        last.map_or(Continuation::End, |place| Continuation::Next(cursor(&place)));
                    return Ok(ListPage { items, continuation, usage: Vec::new() });
                }
                last = Some(place);
                items.push(fact.into_snippet(&request.scope.company_id));
            }
        }
        Ok(ListPage { items, ..ListPage::default() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        let found = Self::find(&id, &scope)?.and_then(|(_, list)| {
            let fact = list.facts.into_iter().find(|fact| fact.id == id)?;
            Some(Fact { place: Some(list.place), ..fact })
        });
        Ok(found.map(|fact| fact.into_snippet(&scope.company_id)).into())
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        let ForgetRequest { ids, scope, .. } = request;
        let mut asked: BTreeMap<Vec<u8>, (Place, HashSet<&str>)> = BTreeMap::new();
        for id in &ids {
            if let Some((key, list)) = Self::find(id, &scope)? {
                asked.entry(key).or_insert_with(|| (list.place, HashSet::new())).1.insert(id);
            }
        }
        let mut gone = HashSet::new();
        for (key, (place, wanted)) in &asked {
            gone.extend(update(key, place, |list| {
                let (out, kept): (Vec<Fact>, Vec<Fact>) =
                    list.facts.drain(..).partition(|fact| wanted.contains(fact.id.as_str()));
                list.facts = kept;
                Ok(out.into_iter().map(|fact| fact.id).collect::<Vec<_>>())
            })?);
        }
        release(gone.iter().map(String::as_str))?;
        let outcome = |id: RecordId| {
            let effect = if gone.remove(&id) { ForgetEffect::Hard } else { ForgetEffect::NotFound };
            ForgetOutcome { id, effect }
        };
        Ok(ForgetResponse { outcomes: ids.into_iter().map(outcome).collect(), usage: Vec::new() })
    }
}

impl Correction for Facts {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.change(request)
    }
}

impl Profile for Facts {
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
        let summary = self.preamble(&scope, &Map::new())?.text;
        Ok(ProfileResponse { summary, usage: Vec::new() })
    }
}

impl Facts {
    /// The lists that a scope sees, in the order of their keys.
    fn lists(scope: &Scope) -> Result<Vec<(Vec<u8>, List)>, Error> {
        let named = Owner::named(scope);
        let company = Owner::Company;
        let prefixes = match named.is_empty() {
            true => vec![LISTS.to_vec()],
            false => named.iter().chain([&company]).map(Owner::prefix).collect(),
        };
        let mut found = Vec::new();
        for prefix in prefixes {
            for entry in below(prefix) {
                let (key, mut list) = entry?;
                if list.place.is_seen_by(scope) {
                    list.facts.iter_mut().for_each(|fact| fact.place = Some(list.place.clone()));
                    found.push((key, list));
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// All facts of the owners that the scope names, as far as they fit; of a scope that names no
    /// owner, those of the whole company, because all facts would mix those of all users and
    /// workspaces.
    fn preamble(&self, scope: &Scope, filter: &Map<String, Value>) -> Result<Preamble, Error> {
        let is_open = Owner::named(scope).is_empty();
        let mut facts = Vec::new();
        for (_, list) in Self::lists(scope)? {
            if is_open && list.place.owner != Owner::Company {
                continue;
            }
            let kind = list.place.kind();
            let own =
                list.facts.into_iter().filter(|fact| matches(fact.metadata.as_deref(), filter));
            facts.extend(own.map(|fact| (kind, fact)));
        }
        let (all, budget) = (facts.len(), self.config.token_budget);
        let preamble = assemble(facts, budget as usize);
        if preamble.left_out > 0 {
            log::warn!(
                "{} of {all} facts are left out of the preamble: `tokenBudget` is {budget}; remove \
                 facts or raise it",
                preamble.left_out
            );
        }
        Ok(preamble)
    }

    /// The list of a fact that a scope reaches by its id.
    pub(crate) fn find(id: &str, scope: &Scope) -> Result<Option<(Vec<u8>, List)>, Error> {
        Ok(holder(id)?.filter(|(_, list)| list.place.is_reached_by(scope)))
    }
}

/// The share of a query's words that a text contains; none if it contains none of them. Words that
/// every sentence has do not count. A query without any word matches every text.
fn share(query: &str, text: &str) -> Option<f64> {
    if terms(query).next().is_none() {
        return Some(0.0);
    }
    let telling = pieces(query).filter(|word| !is_function_word(word));
    let asked: HashSet<String> = telling.flat_map(terms).collect();
    let there: HashSet<String> = terms(text).collect();
    let found = asked.intersection(&there).count();
    #[allow(clippy::cast_precision_loss, reason = "a handful of words")]
    (found > 0).then(|| found as f64 / asked.len() as f64)
}

/// The end of a page: the key of a list in hexadecimal, and the number of a fact in it.
fn cursor((key, number): &(Vec<u8>, u64)) -> String {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{key}.{number}")
}

fn read_cursor(text: &str) -> Result<(Vec<u8>, u64), Error> {
    let read = || {
        let (key, number) = text.split_once('.')?;
        let pair = |at: usize| u8::from_str_radix(key.get(at..at + 2)?, 16).ok();
        let place = (
            (0..key.len()).step_by(2).map(pair).collect::<Option<Vec<u8>>>()?,
            number.parse().ok()?,
        );
        (cursor(&place) == text).then_some(place)
    };
    read().ok_or_else(|| {
        Error::invalid(
            "cursor",
            format!("`{text}` is not a cursor of facts; start again without one"),
        )
    })
}
