//! Pages: a cursor is sealed with the list, the company and the filter that it belongs to.

use memhost_executor::to_json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Tenancy;
use memhost_types::{CompanyId, FieldError, QueryDigest, limits};

/// One page of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// At most as many as asked for. There may be fewer, or none, although more follow.
    pub items: Vec<T>,
    /// Pass it on to get the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Tenancy {
    /// A provider's own cursor out of the sealed one that a caller sent back.
    ///
    /// # Errors
    /// Where the cursor is not valid.
    pub fn provider_cursor(
        &self,
        of: &QueryDigest,
        sealed: Option<&str>,
    ) -> Result<Option<String>, FieldError> {
        let opened = sealed.map(|sealed| self.cursors.open(of, sealed)).transpose();
        let opened = opened.map_err(|error| FieldError::new("cursor", error.to_string()))?;
        // Only what was sealed comes out again, and that was text.
        Ok(opened.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Checks what a caller says of the page of a list that it wants.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    pub fn page_of(
        &self,
        list: &str,
        company: &CompanyId,
        filter: &impl Serialize,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<WantedPage, FieldError> {
        let limit = limit.unwrap_or(limits::DEFAULT_LIMIT);
        if limit == 0 || limit > limits::MAX_PAGE {
            return Err(FieldError::new(
                "limit",
                format!("is {limit}; 1 to {} are allowed", limits::MAX_PAGE),
            ));
        }
        let filter = to_json(filter).unwrap_or_default();
        let digest = QueryDigest::new([list.as_bytes(), company.as_str().as_bytes(), &filter]);
        let from = cursor
            .map(|cursor| self.cursors.open(&digest, cursor))
            .transpose()
            .map_err(|error| FieldError::new("cursor", error.to_string()))?;
        Ok(WantedPage { digest, from, limit: limit as usize })
    }

    /// The entries of a page, with the cursor of the next one.
    pub fn sealed<T>(&self, page: &WantedPage, (items, next): memhost_store::Found<T>) -> Page<T> {
        Page { items, next_cursor: next.map(|next| self.cursors.seal(&page.digest, &next)) }
    }
}

/// The page of a list that a caller wants.
pub struct WantedPage {
    digest: QueryDigest,
    from: Option<Vec<u8>>,
    /// Records that it has at most.
    pub limit: usize,
}

impl WantedPage {
    /// The key at which it begins.
    pub fn from(&self) -> Option<&[u8]> {
        self.from.as_deref()
    }
}
