//! Which group a request is about: that of the company of its token, or else of the company that it
//! names.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Uri};
use parking_lot::RwLock;
use percent_encoding::percent_decode_str;

use memhost_core::{Database, Group, ServiceError, is_made_here};
use memhost_http::AdminToken;
use memhost_integrations::IntegrationOptions;
use memhost_types::CompanyId;

/// The most tokens whose company is remembered. Beyond it all are forgotten.
const MOST: usize = 50_000;

/// What precedes a company in a path.
const BEFORE_COMPANY: [&str; 4] =
    ["/runtime/v1/companies/", "/control/v1/companies/", "/control/v1/tombstones/", "/c/"];
/// The headers of `/mcp` that name a company.
const COMPANY_HEADERS: [&str; 2] = ["memhost-company-id", "x-paperclip-company-id"];

/// Which group a request is about.
pub(super) struct Whose {
    database: Arc<Database>,
    /// The digest of the operator's token.
    operator: [u8; 32],
    /// The companies of the routes of other systems.
    integrations: IntegrationOptions,
    /// The groups of tokens, by the digests of their values; those of operators have none.
    tokens: RwLock<HashMap<[u8; 32], Option<Group>>>,
}

impl Whose {
    pub(super) fn new(
        database: Arc<Database>,
        operator: &AdminToken,
        integrations: IntegrationOptions,
    ) -> Self {
        Self { database, operator: *operator.digest(), integrations, tokens: RwLock::default() }
    }

    /// The group that a request is about.
    ///
    /// # Errors
    /// Where it names no company, and that of its token is not known because the database does not
    /// answer.
    pub(super) async fn group(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Group, ServiceError> {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given.and_then(|value| value.split_once(' ')).map(|(_, token)| token.trim());
        let of_token = match token.filter(|token| is_made_here(token)) {
            Some(token) => self.of_token(token).await,
            None => Ok(None),
        };
        match (of_token, self.named(uri, headers)) {
            (Ok(Some(group)), _) | (_, Some(group)) => Ok(group),
            (Ok(None), None) => Ok(Group::HOST),
            (Err(error), None) => Err(error),
        }
    }

    async fn of_token(&self, token: &str) -> Result<Option<Group>, ServiceError> {
        let digest = blake3::hash(token.as_bytes());
        if digest == self.operator {
            return Ok(None);
        }
        if let Some(known) = self.tokens.read().get(digest.as_bytes()) {
            return Ok(*known);
        }
        let found = self.database.company_of_token(&digest.to_hex()).await?;
        let Some(company) = found else { return Ok(None) };
        let group = company.as_ref().map(Group::of);
        let mut tokens = self.tokens.write();
        if tokens.len() >= MOST {
            tokens.clear();
        }
        tokens.insert(*digest.as_bytes(), group);
        Ok(group)
    }

    /// The group of the company that a request names.
    fn named(&self, uri: &Uri, headers: &HeaderMap) -> Option<Group> {
        let path = uri.path();
        let company = |text: &str| text.parse::<CompanyId>().ok();
        if let Some(rest) = BEFORE_COMPANY.iter().find_map(|before| path.strip_prefix(before)) {
            let name = rest.split('/').next().unwrap_or_default();
            return company(&decoded(name)?).as_ref().map(Group::of);
        }
        if path.starts_with("/mcp") {
            let mut named = COMPANY_HEADERS.iter().filter_map(|name| headers.get(*name));
            let name = named.find_map(|value| decoded(value.to_str().ok()?));
            return company(&name?).as_ref().map(Group::of);
        }
        self.integrations.company_of(path).map(Group::of)
    }
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}
