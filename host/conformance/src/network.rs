//! The network of a build under test.

use ipnet::IpNet;
use memhost_core::{Caller, Service, ServiceError, SetSecret};
use memhost_types::{CompanyId, Grants, PermissionRequest, SecretUse};

/// The requested origins and secrets that a build may reach.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Names and values of secrets, and where in a request each may be.
    pub secrets: Vec<(String, String, SecretUse)>,
    /// Private addresses that it may connect to.
    pub private_ranges: Vec<IpNet>,
}

impl Network {
    /// Everything that is requested, with the private addresses.
    pub fn grants(&self, asked: &[PermissionRequest]) -> Grants {
        let mut grants = Grants::all_of(asked);
        for grant in &mut grants.http {
            grant.private_ranges.clone_from(&self.private_ranges);
        }
        grants
    }

    /// Sets the secrets of a company, for all origins that are requested.
    ///
    /// # Errors
    /// As [`Control::set_secret`](memhost_core::Control::set_secret).
    pub async fn set_secrets(
        &self,
        service: &Service,
        company: &CompanyId,
        asked: &[PermissionRequest],
    ) -> Result<(), ServiceError> {
        let origins: Vec<_> =
            Grants::all_of(asked).http.into_iter().map(|grant| grant.origin).collect();
        for (name, value, used_as) in &self.secrets {
            let request = SetSecret {
                value: value.clone(),
                origins: origins.clone(),
                used_as: used_as.clone(),
            };
            service.control().set_secret(&Caller::operator(), company, name, request).await?;
        }
        Ok(())
    }
}
