//! All bindings, in the store and cached in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bindings::BindingError;
use crate::bindings::activity;
use crate::bindings::activity::NewActivity;
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Expected, Store, Table, Transacted};
use memhost_types::{
    ActivityAction, AgentId, Binding, BindingId, BindingKey, BindingLimits, BindingPolicy, CompanyId, Grants,
    JsonObject, Permission, ProviderKey, Target, VersionChoice,
};

/// What is needed to make a binding.
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
    /// What the provider may reach.
    pub grants: Grants,
    /// What the provider asked for when the grants were decided.
    pub reviewed: Vec<Permission>,
    /// What the provider may use.
    pub limits: BindingLimits,
    /// How it treats requests and records.
    pub policy: BindingPolicy,
    /// Whether it becomes the company's default at once.
    pub make_default: bool,
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
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionStep {
    /// Which rule.
    pub rule: Why,
    /// What it names, if anything.
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
pub(crate) struct Company {
    pub(crate) bindings: BTreeMap<BindingKey, Arc<Binding>>,
    pub(crate) default: Option<BindingKey>,
    pub(crate) overrides: HashMap<AgentId, BindingKey>,
}

/// Every company's bindings.
pub struct Bindings {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) companies: RwLock<HashMap<CompanyId, Company>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredTarget {
    company_id: CompanyId,
    target: Target,
    binding_key: BindingKey,
}

impl Bindings {
    /// Reads all bindings.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn open(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, BindingError> {
        let companies = Self::read(&*store, b"").await?;
        Ok(Self { store, clock, companies: RwLock::new(companies) })
    }

    /// Reads a company's bindings again, after somebody else wrote them.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn reload(&self, company: &CompanyId) -> Result<(), BindingError> {
        let found = Self::read(&*self.store, &key(company, "")).await?;
        let mut companies = self.companies.write();
        companies.remove(company);
        companies.extend(found);
        Ok(())
    }

    async fn read(store: &dyn Store, prefix: &[u8]) -> Result<HashMap<CompanyId, Company>, BindingError> {
        let mut companies: HashMap<CompanyId, Company> = HashMap::new();
        let mut rows = store::scan_all(store, Table::Bindings, prefix);
        while let Some((_, binding)) = rows.next_row::<Binding>("binding").await? {
            let company = companies.entry(binding.company_id.clone()).or_default();
            company.bindings.insert(binding.key.clone(), Arc::new(binding));
        }
        let mut rows = store::scan_all(store, Table::Targets, prefix);
        while let Some((_, stored)) = rows.next_row::<StoredTarget>("binding target").await? {
            let company = companies.entry(stored.company_id).or_default();
            match stored.target {
                Target::Company => company.default = Some(stored.binding_key),
                Target::Agent(agent) => drop(company.overrides.insert(agent, stored.binding_key)),
            }
        }
        Ok(companies)
    }

    /// Makes a binding; it is on disk when this returns.
    ///
    /// # Errors
    /// Where the key is taken or the store fails.
    pub async fn create(
        &self,
        principal: &str,
        company_id: &CompanyId,
        new: NewBinding,
    ) -> Result<Arc<Binding>, BindingError> {
        let now = self.clock.now();
        let binding = Arc::new(Binding {
            id: BindingId(new_id(&*self.clock)),
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
            revision: 1,
            created_at: now,
            updated_at: now,
        });
        let mut changes = vec![Change {
            table: Table::Bindings,
            key: key(company_id, binding.key.as_str()),
            expected: Expected::Absent,
            new: Some(store::encode("binding", &*binding)?),
        }];
        if new.make_default {
            changes.push(target_change(company_id, &Target::Company, Some(&binding.key))?);
        }
        let entry = NewActivity::new(principal, ActivityAction::BindingCreated, binding.key.as_str());
        changes.push(activity::change(&*self.clock, company_id, entry.with(None::<&Binding>, Some(&*binding)))?);
        match self.store.transact(&changes).await? {
            Transacted::Done(commit) => commit.await?,
            Transacted::Conflict(_) => {
                return Err(BindingError::Exists { company: company_id.clone(), key: binding.key.clone() });
            }
        }
        let mut companies = self.companies.write();
        let company = companies.entry(company_id.clone()).or_default();
        company.bindings.insert(binding.key.clone(), Arc::clone(&binding));
        if new.make_default {
            company.default = Some(binding.key.clone());
        }
        Ok(binding)
    }

    /// One binding.
    ///
    /// # Errors
    /// Where there is none of this key.
    pub fn get(&self, company_id: &CompanyId, binding_key: &BindingKey) -> Result<Arc<Binding>, BindingError> {
        let companies = self.companies.read();
        companies
            .get(company_id)
            .and_then(|company| company.bindings.get(binding_key))
            .cloned()
            .ok_or_else(|| BindingError::NotFound { company: company_id.clone(), key: binding_key.clone() })
    }

    /// The company's bindings, by key.
    pub fn list(&self, company_id: &CompanyId) -> Vec<Arc<Binding>> {
        let companies = self.companies.read();
        companies.get(company_id).map(|company| company.bindings.values().cloned().collect()).unwrap_or_default()
    }

    /// The bindings that the company and its agents are assigned to.
    pub fn targets(&self, company_id: &CompanyId) -> Vec<(Target, BindingKey)> {
        let companies = self.companies.read();
        let Some(company) = companies.get(company_id) else { return Vec::new() };
        let mut targets: Vec<_> =
            company.overrides.iter().map(|(agent, key)| (Target::Agent(agent.clone()), key.clone())).collect();
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

    /// The binding that answers: the one named, else the agent's override, else the company's default.
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
        let company = companies.get(company_id);
        let find = |key: &BindingKey| {
            company
                .and_then(|company| company.bindings.get(key))
                .cloned()
                .ok_or_else(|| BindingError::NotFound { company: company_id.clone(), key: key.clone() })
        };
        if let Some(key) = named {
            return Ok(Resolution { binding: find(key)?, why: Why::ExplicitKey });
        }
        let overridden = agent.and_then(|agent| company.and_then(|company| company.overrides.get(agent)));
        if let Some(key) = overridden {
            return Ok(Resolution { binding: find(key)?, why: Why::AgentOverride });
        }
        match company.and_then(|company| company.default.as_ref()) {
            Some(key) => Ok(Resolution { binding: find(key)?, why: Why::CompanyDefault }),
            None => Err(BindingError::NoDefault { company: company_id.clone(), agent: agent.cloned() }),
        }
    }
}

impl Bindings {
    /// Every rule of resolution with what it says; the first one that names a binding decides, even where there is none
    /// of that key.
    pub fn explain(
        &self,
        company_id: &CompanyId,
        agent: Option<&AgentId>,
        named: Option<&BindingKey>,
    ) -> Vec<ResolutionStep> {
        let companies = self.companies.read();
        let company = companies.get(company_id);
        let overridden = agent.and_then(|agent| company?.overrides.get(agent));
        let default = company.and_then(|company| company.default.as_ref());
        let steps = [
            (
                Why::ExplicitKey,
                named,
                match named {
                    Some(key) => format!("the request names `{key}`"),
                    None => "the request names no binding".to_owned(),
                },
            ),
            (
                Why::AgentOverride,
                overridden,
                match (agent, overridden) {
                    (Some(agent), Some(key)) => format!("the agent {agent} is pointed at `{key}`"),
                    (Some(agent), None) => format!("the agent {agent} has no binding of its own"),
                    (None, _) => "there is no agent in the scope".to_owned(),
                },
            ),
            (
                Why::CompanyDefault,
                default,
                match default {
                    Some(key) => format!("the company is pointed at `{key}`"),
                    None => "the company has no default".to_owned(),
                },
            ),
        ];
        let deciding = steps.iter().position(|(_, key, _)| key.is_some());
        let step = |(number, (rule, key, says)): (usize, (Why, Option<&BindingKey>, String))| ResolutionStep {
            rule,
            binding_key: key.cloned(),
            decides: deciding == Some(number),
            says,
        };
        steps.into_iter().enumerate().map(step).collect()
    }
}

pub(crate) fn key(company: &CompanyId, rest: &str) -> Vec<u8> {
    store::company_key(company, rest.as_bytes())
}

pub(crate) fn target_change(
    company: &CompanyId,
    target: &Target,
    binding: Option<&BindingKey>,
) -> Result<Change, BindingError> {
    let name = match target {
        Target::Company => "company".to_owned(),
        Target::Agent(agent) => format!("agent\0{agent}"),
    };
    let stored = binding.map(|binding| StoredTarget {
        company_id: company.clone(),
        target: target.clone(),
        binding_key: binding.clone(),
    });
    Ok(Change {
        table: Table::Targets,
        key: key(company, &name),
        expected: Expected::Anything,
        new: stored.map(|stored| store::encode("binding target", &stored)).transpose()?,
    })
}
