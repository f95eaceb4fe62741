//! All bindings and targets, in the store and cached in memory: the tables `Bindings` and
//! `Targets`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::activity::{ActivityLog, NewActivity};
use crate::error::BindingError;
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Lease, LockKind, Store, StoreError, Table};
use memhost_types::{
    ActivityAction, AgentId, Binding, BindingId, BindingKey, BindingLimits, BindingPolicy,
    CompanyId, FieldError, Grants, JsonObject, Permission, Principal, ProviderKey, Target,
    VersionChoice,
};

/// A company has at most so many bindings: all are in memory, and in one answer.
const MAX_BINDINGS: usize = 1_000;
/// A company has at most so many assignments.
const MAX_TARGETS: usize = 10_000;

/// The parts of a new binding.
#[derive(Debug, Clone)]
pub struct NewBinding {
    /// Unique in the company.
    pub key: BindingKey,
    /// Which provider answers.
    pub provider_key: ProviderKey,
    /// Accepted by the provider before it comes here.
    pub config: JsonObject,
    /// Which of its versions.
    pub version: VersionChoice,
    /// The provider's grants.
    pub grants: Grants,
    /// The provider's requests when the grants were decided.
    pub reviewed: Vec<Permission>,
    /// The provider's limits.
    pub limits: BindingLimits,
    /// How it treats requests and records.
    pub policy: BindingPolicy,
    /// Whether it becomes the company's default at once.
    pub make_default: bool,
    /// `None`: a new one.
    pub id: Option<BindingId>,
}

/// Why a binding was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The request names it.
    ExplicitKey,
    /// The agent has it as its override.
    AgentOverride,
    /// It is the company's default.
    CompanyDefault,
}

/// One rule of resolution, in the order in which they are asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionStep {
    /// Which rule.
    pub rule: Why,
    /// The binding that it names, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Whether it is the one that decides.
    pub decides: bool,
    /// In words.
    pub says: String,
}

/// A chosen binding and why.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// The binding.
    pub binding: Arc<Binding>,
    /// Why this one.
    pub why: Why,
}

#[derive(Default)]
pub(super) struct Company {
    pub(super) bindings: BTreeMap<BindingKey, Arc<Binding>>,
    pub(super) default: Option<BindingKey>,
    /// Somebody has decided which binding is the default, or that none is.
    pub(super) is_decided: bool,
    pub(super) overrides: HashMap<AgentId, BindingKey>,
}

/// Every company's bindings.
pub struct Bindings {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) activity: Arc<ActivityLog>,
    companies: RwLock<HashMap<CompanyId, Company>>,
}

/// A target as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredTarget {
    /// Its company.
    pub company_id: CompanyId,
    target: Target,
    /// The binding that is assigned to it. `None`, only for a company: it is to have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
}

impl StoredTarget {
    /// The key of its row.
    pub fn key(&self) -> Vec<u8> {
        target_key(&self.company_id, &self.target)
    }
}

/// The key of a binding's row.
pub fn binding_key(binding: &Binding) -> Vec<u8> {
    store::company_key(&binding.company_id, binding.key.as_str().as_bytes())
}

fn target_key(company: &CompanyId, target: &Target) -> Vec<u8> {
    let name = match target {
        Target::Company => "company".to_owned(),
        Target::Agent(agent) => format!("agent\0{agent}"),
    };
    store::company_key(company, name.as_bytes())
}

impl Bindings {
    /// Reads all bindings.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        activity: Arc<ActivityLog>,
    ) -> Result<Self, BindingError> {
        let companies = RwLock::new(Self::read(&*store, b"").await?);
        Ok(Self { store, clock, activity, companies })
    }

    /// A company's bindings, as a store has them.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn stored(
        store: &dyn Store,
        company: &CompanyId,
    ) -> Result<Vec<Arc<Binding>>, StoreError> {
        let mut all = Vec::new();
        let mut rows = store::scan_all(store, Table::Bindings, &store::company_key(company, b""));
        while let Some((_, binding)) = rows.next_row::<Binding>("binding").await? {
            all.push(Arc::new(binding));
        }
        Ok(all)
    }

    /// Reads a company's bindings again, after somebody else wrote them.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn reload(&self, company: &CompanyId) -> Result<(), BindingError> {
        let found = Self::read(&*self.store, &store::company_key(company, b"")).await?;
        let mut companies = self.companies.write();
        companies.remove(company);
        companies.extend(found);
        Ok(())
    }

    /// Adds a binding that an import has written to the cache. Reading all bindings again for each
    /// one would take quadratic time.
    pub fn add_imported(&self, binding: Binding) {
        self.cache(&binding.company_id.clone(), |company| {
            company.bindings.insert(binding.key.clone(), Arc::new(binding));
        });
    }

    async fn read(
        store: &dyn Store,
        prefix: &[u8],
    ) -> Result<HashMap<CompanyId, Company>, BindingError> {
        let mut companies: HashMap<CompanyId, Company> = HashMap::new();
        let mut rows = store::scan_all(store, Table::Bindings, prefix);
        while let Some((_, binding)) = rows.next_row::<Binding>("binding").await? {
            let company = companies.entry(binding.company_id.clone()).or_default();
            company.bindings.insert(binding.key.clone(), Arc::new(binding));
        }
        let mut rows = store::scan_all(store, Table::Targets, prefix);
        while let Some((_, stored)) = rows.next_row::<StoredTarget>("binding target").await? {
            let company = companies.entry(stored.company_id).or_default();
            match (stored.target, stored.binding_key) {
                (Target::Company, key) => (company.default, company.is_decided) = (key, true),
                (Target::Agent(agent), Some(key)) => drop(company.overrides.insert(agent, key)),
                (Target::Agent(_), None) => {}
            }
        }
        Ok(companies)
    }

    /// Whether nobody has decided who answers for a company: it has no binding, and had no default.
    pub fn is_undecided(&self, company: &CompanyId) -> bool {
        let companies = self.companies.read();
        companies.get(company).is_none_or(|of| of.bindings.is_empty() && !of.is_decided)
    }

    /// The id that everybody outside knows a binding by: the same, or that of the one whose place
    /// it has.
    pub fn known_as(&self, company: &CompanyId, id: BindingId) -> BindingId {
        let bindings = self.list(company);
        bindings.iter().find(|binding| binding.id == id).map_or(id, |binding| binding.known_as())
    }

    /// A binding that is not stored.
    pub fn implied(&self, company_id: &CompanyId, new: NewBinding) -> Binding {
        let now = self.clock.now();
        Binding {
            id: new.id.unwrap_or_else(|| BindingId(new_id(&*self.clock))),
            goes_on_as: None,
            company_id: company_id.clone(),
            key: new.key,
            provider_key: new.provider_key,
            config: new.config,
            enabled: true,
            version: new.version,
            grants: new.grants,
            reviewed: new.reviewed,
            limits: new.limits,
            policy: new.policy,
            requested: None,
            revision: Binding::IMPLIED,
            created_at: now,
            updated_at: now,
        }
    }

    /// Makes a binding; it is on disk when this returns.
    ///
    /// # Errors
    /// Where the key is taken or the store fails.
    pub async fn create(
        &self,
        principal: &Principal,
        company_id: &CompanyId,
        new: NewBinding,
    ) -> Result<Arc<Binding>, BindingError> {
        let make_default = new.make_default;
        let binding = Arc::new(Binding { revision: 1, ..self.implied(company_id, new) });
        let row = store::encode("binding", &*binding)?;
        let mut changes = vec![Change::insert(Table::Bindings, binding_key(&binding), row)];
        if make_default {
            changes.push(target_change(company_id, &Target::Company, Some(&binding.key))?);
        }
        let entry =
            NewActivity::new(principal, ActivityAction::BindingCreated, binding.key.as_str());
        let _lock = self.lock(company_id).await?;
        if make_default {
            // Who answers is a change of its own, as where it is assigned later.
            let before = self.target(company_id, &Target::Company);
            let entry =
                NewActivity::new(principal, ActivityAction::TargetChanged, named(&Target::Company));
            let entry = entry.with(before.as_ref(), Some(&binding.key));
            changes.push(self.activity.entry(company_id, entry)?);
        }
        let recorded = self
            .activity
            .record_with(company_id, entry.with(None::<&Binding>, Some(&*binding)), changes)
            .await;
        recorded.map_err(|error| match error {
            BindingError::Conflict { company } => {
                BindingError::Exists { company, key: binding.key.clone() }
            }
            error => error,
        })?;
        self.cache(company_id, |company| {
            company.bindings.insert(binding.key.clone(), Arc::clone(&binding));
            if make_default {
                (company.default, company.is_decided) = (Some(binding.key.clone()), true);
            }
        });
        Ok(binding)
    }

    /// One binding.
    ///
    /// # Errors
    /// Where there is none of this key.
    pub fn get(
        &self,
        company_id: &CompanyId,
        binding_key: &BindingKey,
    ) -> Result<Arc<Binding>, BindingError> {
        let companies = self.companies.read();
        let found = companies
            .get(company_id)
            .and_then(|company| company.bindings.get(binding_key))
            .cloned();
        found.ok_or_else(|| BindingError::NotFound {
            company: company_id.clone(),
            key: binding_key.clone(),
        })
    }

    /// The company's bindings, by key.
    pub fn list(&self, company_id: &CompanyId) -> Vec<Arc<Binding>> {
        let companies = self.companies.read();
        companies
            .get(company_id)
            .map(|company| company.bindings.values().cloned().collect())
            .unwrap_or_default()
    }

    /// The bindings that the company and its agents are assigned to.
    pub fn targets(&self, company_id: &CompanyId) -> Vec<(Target, BindingKey)> {
        let companies = self.companies.read();
        let Some(company) = companies.get(company_id) else { return Vec::new() };
        let mut targets: Vec<_> = company
            .overrides
            .iter()
            .map(|(agent, key)| (Target::Agent(agent.clone()), key.clone()))
            .collect();
        targets.sort_by(|(_, a), (_, b)| a.cmp(b));
        targets.splice(0..0, company.default.iter().map(|key| (Target::Company, key.clone())));
        targets
    }

    /// Whether a binding of another company has this id.
    pub fn has_id(&self, id: BindingId, not_of: &CompanyId) -> bool {
        let companies = self.companies.read();
        let others = companies.iter().filter(|(company, _)| *company != not_of);
        others.flat_map(|(_, company)| company.bindings.values()).any(|binding| binding.id == id)
    }

    /// The companies that have bindings.
    pub fn companies(&self) -> Vec<CompanyId> {
        let mut all: Vec<CompanyId> = self.companies.read().keys().cloned().collect();
        all.sort();
        all
    }

    pub(super) fn target(&self, company: &CompanyId, target: &Target) -> Option<BindingKey> {
        let companies = self.companies.read();
        let company = companies.get(company)?;
        match target {
            Target::Company => company.default.clone(),
            Target::Agent(agent) => company.overrides.get(agent).cloned(),
        }
    }

    /// Removes an erased company from the cache.
    pub fn forget(&self, company_id: &CompanyId) {
        self.companies.write().remove(company_id);
    }

    /// The change that replaces a binding, if it is unchanged.
    pub(super) async fn replace(
        &self,
        present: &Binding,
        new: Option<Vec<u8>>,
    ) -> Result<Change, BindingError> {
        let key = binding_key(present);
        let expected =
            store::unchanged(&*self.store, Table::Bindings, &key, "binding", present).await?;
        Ok(Change { table: Table::Bindings, key, expected, new })
    }

    /// Hold this while you write a change of a company's bindings and update the cache: a later
    /// change must not be overtaken in the cache by an earlier one.
    pub(super) async fn lock(&self, company: &CompanyId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Bindings, company.as_str().as_bytes()).await
    }

    /// Updates the cache after a change was written. The caller holds the lock.
    pub(super) fn cache(&self, company: &CompanyId, change: impl FnOnce(&mut Company)) {
        change(self.companies.write().entry(company.clone()).or_default());
    }

    /// Checks that a company may have one more binding. A key that exists already passes here and
    /// gets an error of its own.
    ///
    /// # Errors
    /// Where it has as many as it may have.
    pub fn check_room(&self, company: &CompanyId, key: &BindingKey) -> Result<(), FieldError> {
        if self.get(company, key).is_ok() {
            return Ok(());
        }
        room("key", "bindings", self.list(company).len(), MAX_BINDINGS, "delete KEY")
    }

    /// Checks that one more agent of a company may have a binding of its own. An agent that has one
    /// may get another one.
    ///
    /// # Errors
    /// Where as many agents have one as may.
    pub fn check_target_room(
        &self,
        company: &CompanyId,
        agent: &AgentId,
    ) -> Result<(), FieldError> {
        if self.target(company, &Target::Agent(agent.clone())).is_some() {
            return Ok(());
        }
        let what = "agents with a binding of their own";
        let command = "assign --none --agent ID";
        room("agentId", what, self.targets(company).len(), MAX_TARGETS, command)
    }

    /// The binding that answers: the one named, else the agent's override, else the company's
    /// default.
    ///
    /// # Errors
    /// Where there is none.
    pub fn resolve(
        &self,
        company_id: &CompanyId,
        agent: Option<&AgentId>,
        named: Option<&BindingKey>,
    ) -> Result<Resolution, BindingError> {
        let companies = self.companies.read();
        let rules = rules(companies.get(company_id), agent, named);
        let Some((why, key)) = rules.into_iter().find_map(|(rule, key)| Some((rule, key?))) else {
            return Err(BindingError::NoDefault {
                company: company_id.clone(),
                agent: agent.cloned(),
            });
        };
        let found =
            companies.get(company_id).and_then(|company| company.bindings.get(key)).cloned();
        match found {
            Some(binding) => Ok(Resolution { binding, why }),
            None => Err(BindingError::NotFound { company: company_id.clone(), key: key.clone() }),
        }
    }

    /// Every rule of resolution with what it says. The first one that names a binding decides, even
    /// where there is none of that key.
    pub fn explain(
        &self,
        company_id: &CompanyId,
        agent: Option<&AgentId>,
        named: Option<&BindingKey>,
    ) -> Vec<ResolutionStep> {
        let companies = self.companies.read();
        let rules = rules(companies.get(company_id), agent, named);
        let deciding = rules.iter().position(|(_, key)| key.is_some());
        let step = |(number, (rule, key)): (usize, (Why, Option<&BindingKey>))| ResolutionStep {
            rule,
            binding_key: key.cloned(),
            decides: deciding == Some(number),
            says: match (rule, key, agent) {
                (Why::ExplicitKey, Some(key), _) => format!("the request names `{key}`"),
                (Why::ExplicitKey, None, _) => "the request names no binding".to_owned(),
                (Why::AgentOverride, _, None) => "there is no agent in the scope".to_owned(),
                (Why::AgentOverride, Some(key), Some(agent)) => {
                    format!("the agent {agent} is assigned to `{key}`")
                }
                (Why::AgentOverride, None, Some(agent)) => {
                    format!("the agent {agent} has no binding of its own")
                }
                (Why::CompanyDefault, Some(key), _) => {
                    format!("the default of the company is `{key}`")
                }
                (Why::CompanyDefault, None, _) => "the company has no default".to_owned(),
            },
        };
        rules.into_iter().enumerate().map(step).collect()
    }
}

/// Whether there is room for one more of what there are so many of.
fn room(
    field: &str,
    what: &str,
    present: usize,
    most: usize,
    command: &str,
) -> Result<(), FieldError> {
    if present < most {
        return Ok(());
    }
    let message = format!(
        "would be one too many; a company has at most {most} {what}; make room with `memhost \
         binding {command}`"
    );
    Err(FieldError::new(field, message))
}

/// The rules of resolution, in their order, each with the binding that it names.
fn rules<'a>(
    company: Option<&'a Company>,
    agent: Option<&AgentId>,
    named: Option<&'a BindingKey>,
) -> [(Why, Option<&'a BindingKey>); 3] {
    let overridden = agent.and_then(|agent| company?.overrides.get(agent));
    let default = company.and_then(|company| company.default.as_ref());
    [(Why::ExplicitKey, named), (Why::AgentOverride, overridden), (Why::CompanyDefault, default)]
}

/// A target, as the activity log names it.
pub(super) fn named(target: &Target) -> String {
    match target {
        Target::Company => "the company".to_owned(),
        Target::Agent(agent) => format!("the agent {agent}"),
    }
}

pub(super) fn target_change(
    company: &CompanyId,
    target: &Target,
    binding: Option<&BindingKey>,
) -> Result<Change, BindingError> {
    // That a company is to have no default is a decision, too: nothing else may answer then.
    let is_kept = binding.is_some() || *target == Target::Company;
    let stored = is_kept.then(|| StoredTarget {
        company_id: company.clone(),
        target: target.clone(),
        binding_key: binding.cloned(),
    });
    let new = stored.map(|stored| store::encode("binding target", &stored)).transpose()?;
    Ok(Change::always(Table::Targets, target_key(company, target), new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_the_most_is_refused() {
        assert!(room("key", "bindings", 9, 10, "delete").is_ok());
        let full = room("key", "bindings", 10, 10, "delete").unwrap_err();
        assert_eq!(full.field, "key");
        assert!(
            full.message.contains("at most 10 bindings") && full.message.contains("binding delete"),
            "{full}"
        );
    }
}
