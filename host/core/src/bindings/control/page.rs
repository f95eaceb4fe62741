//! Pages of a company's bindings.

use async_recursion::async_recursion as boxed;

use super::BindingView;
use crate::Service;
use crate::error::ServiceError;
use crate::paging::Page;
use memhost_executor::to_json;
use memhost_types::{CompanyId, limits};

impl Service {
    /// One page of the company's bindings, by key; without a limit 1,000. It ends with the binding
    /// that makes it larger than 4 MiB: a configuration may have 256 KiB.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn bindings_page(
        &self,
        company: &CompanyId,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<BindingView>, ServiceError> {
        let page = self.page_of(
            "bindings",
            company,
            &(),
            cursor,
            Some(limit.unwrap_or(limits::MAX_PAGE)),
        )?;
        let (mut views, mut bytes, mut next) = (Vec::new(), 0, None);
        for binding in self.bindings.list(company) {
            let key = binding.key.as_str().as_bytes();
            if page.from().is_some_and(|from| key < from) {
                continue;
            }
            if views.len() == page.limit || bytes >= limits::MAX_PAGE_BYTES {
                next = Some(key.to_vec());
                break;
            }
            let view = self.binding(company, &binding.key).await?;
            bytes += to_json(&view).map_or(0, |json| json.len());
            views.push(view);
        }
        Ok(self.sealed(&page, (views, next)))
    }
}
