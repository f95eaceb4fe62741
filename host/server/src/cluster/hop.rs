//! What a host adds to a request that it passes on, so that the other one knows that a host has
//! sent it, and to whom.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::routes::Surfaces;
use memhost_core::Group;

/// The surfaces that the client asked, the group of companies, the host that passes the request on,
/// the one that it is for, and a digest.
pub(super) static HOP: HeaderName = HeaderName::from_static("memhost-hop");
/// In each answer: the address for other hosts of the one that serves the group. A balancer that
/// sends the next request there spares the way over another host.
pub(super) static HOME: HeaderName = HeaderName::from_static("memhost-home");
/// In the answer of a host that is not the home and has done nothing.
pub(super) static NOT_HOME: HeaderName = HeaderName::from_static("memhost-not-home");

/// The key by which hosts know each other, and which host this is.
pub(super) struct Key {
    key: [u8; 32],
    own: Uuid,
}

/// A request that another host has passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// What the client asked.
    pub(super) surfaces: Surfaces,
    /// The group that it is about.
    pub(super) group: Group,
    /// Whether it is for this process, and not for one that was at its address before.
    pub(super) is_for_us: bool,
}

fn name(surfaces: Surfaces) -> &'static str {
    match surfaces {
        Surfaces::All => "all",
        Surfaces::Runtime => "runtime",
        Surfaces::Control => "control",
    }
}

impl Key {
    pub(super) fn new(key: [u8; 32], own: Uuid) -> Self {
        Self { key, own }
    }

    fn sealed(&self, surfaces: Surfaces, group: Group, (from, to): (Uuid, Uuid)) -> String {
        let text = format!("{}.{}.{from}.{to}", name(surfaces), group.number());
        let digest = blake3::keyed_hash(&self.key, text.as_bytes());
        format!("{text}.{digest}")
    }

    /// The header of a request to another host.
    pub(super) fn header(&self, surfaces: Surfaces, group: Group, to: Uuid) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.sealed(surfaces, group, (self.own, to))).ok()
    }

    /// What a request from another host is. None: no host has sent it.
    pub(super) fn read(&self, headers: &HeaderMap) -> Option<Hop> {
        let mut parts = headers.get(&HOP)?.to_str().ok()?.split('.');
        let mut next = || parts.next();
        let (surfaces, group, from, to) = (next()?, next()?, next()?, next()?);
        let all = [Surfaces::All, Surfaces::Runtime, Surfaces::Control];
        let surfaces = all.into_iter().find(|one| name(*one) == surfaces)?;
        let group = Group::numbered(group.parse().ok()?)?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        let given = blake3::Hash::from_hex(next()?).ok()?;
        let sealed = self.sealed(surfaces, group, (from, to));
        let digest = blake3::Hash::from_hex(sealed.rsplit('.').next()?).ok()?;
        // It compares in constant time.
        (given == digest).then_some(Hop { surfaces, group, is_for_us: to == self.own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_is_known_by_its_key_its_sender_and_its_receiver() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let sent = Key::new([7; 32], one).header(Surfaces::Runtime, Group::HOST, other).unwrap();
        let read = |key: [u8; 32], own, value: &HeaderValue| {
            let headers = HeaderMap::from_iter([(HOP.clone(), value.clone())]);
            Key::new(key, own).read(&headers)
        };
        let hop =
            |is_for_us| Some(Hop { surfaces: Surfaces::Runtime, group: Group::HOST, is_for_us });
        assert_eq!(read([7; 32], other, &sent), hop(true));
        assert_eq!(read([7; 32], one, &sent), hop(false), "for another host");
        assert_eq!(read([8; 32], other, &sent), None, "another key");
        for (from, to) in [("runtime", "control"), (".0.", ".1.")] {
            let forged = sent.to_str().unwrap().replacen(from, to, 1);
            assert_eq!(read([7; 32], other, &HeaderValue::from_str(&forged).unwrap()), None);
        }
        assert_eq!(read([7; 32], other, &HeaderValue::from_static("all")), None);
        assert_eq!(Key::new([7; 32], other).read(&HeaderMap::new()), None);
    }
}
