//! The facts of one user or drive of PageSpace, and who may do what with them. The routes and the
//! explorer use it, so both show, add and remove the same facts under the same rules.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::options::PageSpaceOptions;
use super::owned::{COMPANY, CREATED_BY, OwnerRecords, id, invalid, owner_of, text};
use memhost_core::{Act, Caller, Service};
use memhost_http::{Problem, ProblemCode};
use memhost_types::{
    ForgetEffect, ForgetRequest, OperationKind, RecordWrite, Role, Scope, Snippet, SourceKind,
    SourceRef,
};

/// The most records that one call forgets.
const MAX_HANDLES: usize = 1_000;
/// The longest fact, in characters.
pub const MAX_FACT_CHARS: usize = 200;
/// The metadata field that names the user of a fact.
pub(super) const USER: &str = "userId";
/// The same of its drive.
pub(super) const DRIVE: &str = "driveId";

/// Who made a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactSource {
    /// A model, in a chat.
    Ai,
    /// A person, by hand.
    User,
}

/// Whose facts they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FactOwner {
    /// A user's, by the user's id. They follow the user everywhere.
    User(String),
    /// A drive's, by the drive's id. Its members share them.
    Drive(String),
    /// Nobody's: everybody in the company has them in every context.
    Company,
}

/// A row of `user_memories` or of `drive_memories`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// The record's id: the same in tools and on the record's page.
    pub id: String,
    /// The user that the fact is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The drive that the fact belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_id: Option<String>,
    /// One sentence.
    pub fact: String,
    /// When it was added, where it is known.
    pub created_at: Option<Timestamp>,
    /// Who added it, if it is known. A user's fact has no such member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Option<String>>,
    /// `ai` or `user`.
    pub source: Option<String>,
}

/// The user that a caller is or acts for: with an agent's token its agent. `None`: the caller names
/// the user.
pub fn own_user(caller: &Caller) -> Option<String> {
    caller.person().map(str::to_owned).or_else(|| caller.agent().map(ToString::to_string))
}

/// The facts of one owner, for one caller.
pub struct Facts(pub(super) OwnerRecords);

impl Facts {
    /// The facts of an owner, in the company and the binding of the options.
    ///
    /// # Errors
    /// If the owner's id is none, or the caller is another user.
    pub fn of(
        service: &Arc<Service>,
        caller: &Caller,
        options: &PageSpaceOptions,
        owner: FactOwner,
    ) -> Result<Self, Problem> {
        let (name, owner, field) = match owner {
            FactOwner::User(user) => (USER, user, options.user),
            FactOwner::Drive(drive) => (DRIVE, drive, options.drive),
            FactOwner::Company => (COMPANY, options.company.to_string(), options.drive),
        };
        let owner = id(name, &owner)?;
        if let Some(own) = own_user(caller).filter(|own| name == USER && *own != owner) {
            let detail = format!("the token is for {own}; it cannot be used for another user");
            return Err(Problem::new(ProblemCode::Forbidden, detail));
        }
        let mut scope = Scope::company(options.company.clone());
        if name != COMPANY {
            field.set(&mut scope, &owner);
        }
        let (service, binding) = (Arc::clone(service), options.binding.clone());
        Ok(Self(OwnerRecords {
            service,
            caller: caller.clone(),
            binding,
            scope,
            owner: (name, owner),
            field,
            facts: Some(options.clone()),
        }))
    }

    /// The drive of a fact that is named by its id alone; `None`: it is no drive's.
    ///
    /// # Errors
    /// If the caller may not remove a drive's facts, or the fact cannot be read.
    pub(super) async fn drive_of(
        service: &Arc<Service>,
        caller: &Caller,
        options: &PageSpaceOptions,
        fact: &str,
    ) -> Result<Option<Self>, Problem> {
        let any = Self(OwnerRecords {
            service: Arc::clone(service),
            caller: caller.clone(),
            binding: options.binding.clone(),
            scope: Scope::company(options.company.clone()),
            owner: (DRIVE, String::new()),
            field: options.drive,
            facts: Some(options.clone()),
        });
        any.check_manage("remove a drive's fact")?;
        let found = any.0.get(fact).await?;
        let drive = found.and_then(|found| owner_of(&found, DRIVE, options.drive));
        drive.map(|drive| Self::of(service, caller, options, FactOwner::Drive(drive))).transpose()
    }

    /// Whether they are one user's. Those of a drive and of the company are shared.
    fn is_users(&self) -> bool {
        self.0.owner.0 == USER
    }

    /// Whether the caller may do this with the owner's facts by hand. To hide buttons; each call
    /// checks again.
    pub fn allows(&self, kind: OperationKind) -> bool {
        self.0.caller.may(Act::Operate(kind), Some(&self.0.scope.company_id)).is_ok()
            && self.check_manage("").is_ok()
    }

    /// Refuses who may not manage shared facts by hand. A user's own facts are the user's, whatever
    /// the role.
    fn check_manage(&self, what: &str) -> Result<(), Problem> {
        // Moving records is what only an operator, a company's administrator, or whom an
        // integration acts for as one, may.
        let act = Act::Operate(OperationKind::Export);
        if self.is_users() || self.0.caller.may(act, Some(&self.0.scope.company_id)).is_ok() {
            return Ok(());
        }
        let detail = format!(
            "only an administrator, or the owner of a drive, may {what}; an integration says so \
             with \
             x-memhost-act-as-role: company_administrator"
        );
        Err(Problem::new(ProblemCode::Forbidden, detail))
    }

    /// All facts, oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list(&self) -> Result<Vec<Fact>, Problem> {
        let found = self.0.all(None).await?.items;
        let mut facts: Vec<Fact> = found.into_iter().map(|record| self.fact(record)).collect();
        facts.sort_by_key(|fact| fact.created_at);
        Ok(facts)
    }

    /// Adds a fact. `source` absent: `ai` with an agent's token, else `user`. `by` is who adds it.
    ///
    /// # Errors
    /// If the fact is empty or has more than 200 characters, or a drive's fact is added by hand by
    /// who may not.
    pub async fn add(
        &self,
        fact: &str,
        source: Option<FactSource>,
        by: Option<String>,
    ) -> Result<Fact, Problem> {
        let records = &self.0;
        let is_agent = records.caller.role() == Role::Agent;
        let source = source.unwrap_or(if is_agent { FactSource::Ai } else { FactSource::User });
        // A model saves what it learns in a chat of any member; what a person adds by hand is for
        // administrators. A fact of the company is in everybody's context, so no chat adds one.
        if source == FactSource::User || records.owner.0 == COMPANY {
            self.check_manage("add a shared fact by hand")?;
        }
        let (sentence, length) = (fact.trim(), fact.trim().chars().count());
        if !(1..=MAX_FACT_CHARS).contains(&length) {
            return Err(invalid(
                "fact",
                format!("has {length} characters; 1 to {MAX_FACT_CHARS} are allowed"),
            ));
        }
        // The provider may keep no times.
        let mut metadata = records.filter();
        metadata.insert("source".to_owned(), json!(source));
        // As `save_memory` writes it: a user's fact is bound to no drive, and a drive's to no user.
        match records.owner.0 {
            USER => drop(metadata.insert("scope".to_owned(), "user".into())),
            DRIVE => drop(metadata.insert("scope".to_owned(), "drive".into())),
            _ => {}
        }
        metadata.insert("createdAt".to_owned(), json!(Timestamp::now()));
        if let Some(by) = by.filter(|_| !self.is_users()) {
            metadata.insert(CREATED_BY.to_owned(), by.into());
        }
        let record = RecordWrite {
            text: sentence.to_owned(),
            metadata: Some(metadata.clone()),
            ..RecordWrite::default()
        };
        let origin = SourceRef::new(SourceKind::ManualNote, records.scope.company_id.clone());
        let handle = records.write_one(Some(origin), record).await?;
        Ok(self.fact(Snippet {
            handle,
            text: sentence.to_owned(),
            score: None,
            score_kind: None,
            summary: None,
            source: None,
            metadata: Some(metadata),
            created_at: None,
            updated_at: None,
            expires_at: None,
            scope: None,
            claimed_source: None,
            written_by: None,
            happened_at: None,
            corrected: None,
        }))
    }

    /// Removes one fact.
    ///
    /// # Errors
    /// If the owner has no such fact, or the caller may not remove it.
    pub async fn remove(&self, fact: &str) -> Result<(), Problem> {
        self.check_manage("remove a shared fact")?;
        let not_found = || Problem::new(ProblemCode::NotFound, "there is no such fact here");
        let found =
            self.0.get(fact).await?.filter(|record| self.0.owns(record)).ok_or_else(not_found)?;
        self.0.forget(found.handle).await
    }

    /// Removes all present facts, and answers how many there were.
    ///
    /// # Errors
    /// If the caller may not remove them.
    pub async fn clear(&self) -> Result<usize, Problem> {
        self.check_manage("remove shared facts")?;
        let records = &self.0;
        let found = records.all(None).await?.items;
        let mut removed = 0;
        for some in found.chunks(MAX_HANDLES) {
            let handles = some.iter().map(|record| record.handle.clone()).collect();
            let request = ForgetRequest {
                binding_key: records.binding.clone(),
                scope: records.scope.clone(),
                handles,
            };
            let done = records.service.operations().forget(&records.caller, request).await?;
            removed += done
                .outcomes
                .iter()
                .filter(|outcome| outcome.effect != ForgetEffect::NotFound)
                .count();
        }
        Ok(removed)
    }

    fn fact(&self, record: Snippet) -> Fact {
        let (kind, metadata) = (self.0.owner.0, record.metadata.as_ref());
        let owner = Some(self.0.owner.1.clone());
        let kept = text(metadata, "createdAt").and_then(|at| at.parse().ok());
        Fact {
            id: record.handle.provider_record_id.to_string(),
            user_id: owner.clone().filter(|_| kind == USER),
            drive_id: owner.filter(|_| kind == DRIVE),
            fact: record.text,
            created_at: kept.or(record.created_at),
            // Without a row nobody knows who made the record.
            created_by: (kind != USER).then(|| text(metadata, CREATED_BY)),
            source: Some(text(metadata, "source").unwrap_or_else(|| "user".to_owned())),
        }
    }
}
