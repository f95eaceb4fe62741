//! What sections of the configuration attach to bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use memhost_types::{BindingKey, CompanyId};

/// A section of the configuration, and the binding that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name in the configuration file.
    pub name: &'static str,
    /// The company.
    pub company: CompanyId,
    /// The binding; `None`: every binding of the company.
    pub binding: Option<BindingKey>,
}

/// What sections attach to bindings. It is written while the host is configured; to read it
/// excludes nobody.
#[allow(clippy::type_complexity, reason = "it is named here only")]
pub struct Attached<T: ?Sized>(RwLock<BTreeMap<CompanyId, Vec<(Section, Arc<T>)>>>);

impl<T: ?Sized> Default for Attached<T> {
    fn default() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }
}

impl<T: ?Sized> Attached<T> {
    /// Attaches a part. It takes the place of what a section of the same name has attached to the
    /// company before.
    pub fn attach(&self, section: Section, part: Arc<T>) {
        let mut all = self.0.write();
        let parts = all.entry(section.company.clone()).or_default();
        parts.retain(|(before, _)| before.name != section.name);
        parts.push((section, part));
    }

    /// What is attached to a binding of a company.
    pub fn at(&self, company: &CompanyId, binding: Option<&BindingKey>) -> Vec<Arc<T>> {
        let all = self.0.read();
        let parts = all.get(company).map(Vec::as_slice).unwrap_or_default();
        let is_meant =
            |section: &Section| section.binding.is_none() || section.binding.as_ref() == binding;
        let parts = parts.iter().filter(|(section, _)| is_meant(section));
        parts.map(|(_, part)| Arc::clone(part)).collect()
    }

    /// All sections with what they attach.
    pub fn all(&self) -> Vec<(Section, Arc<T>)> {
        self.0.read().values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &'static str, company: &str, binding: Option<&str>) -> Section {
        let binding = binding.map(|key| key.parse().unwrap());
        Section { name, company: company.parse().unwrap(), binding }
    }

    #[test]
    fn a_part_is_found_at_its_company_and_its_binding() {
        let attached = Attached::<str>::default();
        attached.attach(section("one", "acme", None), "whole".into());
        attached.attach(section("two", "acme", Some("b")), "b".into());
        attached.attach(section("one", "zeta", Some("b")), "zeta".into());
        let at = |company: &str, binding: Option<&str>| {
            let binding = binding.map(|key| key.parse().unwrap());
            attached.at(&company.parse().unwrap(), binding.as_ref()).join(",")
        };
        assert_eq!(at("acme", Some("b")), "whole,b");
        assert_eq!((at("acme", Some("c")), at("acme", None)), ("whole".into(), "whole".into()));
        assert_eq!((at("zeta", Some("b")), at("zeta", None)), ("zeta".into(), String::new()));
        assert_eq!(at("other", Some("b")), "");
        attached.attach(section("one", "acme", Some("c")), "narrower".into());
        assert_eq!((at("acme", Some("b")), at("acme", Some("c"))), ("b".into(), "narrower".into()));
        assert_eq!(attached.all().len(), 3);
    }
}
