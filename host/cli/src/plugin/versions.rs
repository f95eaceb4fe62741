//! Tags that are versions.

use semver::Version;

/// The version that a tag is, such as `1.2.0` or `v1.2.0`.
pub(super) fn version_of(tag: &str) -> Option<Version> {
    // A tag has no `+`.
    Version::parse(&tag.strip_prefix('v').unwrap_or(tag).replacen('_', "+", 1)).ok()
}

/// The newest version among tags that is newer than `than`. A pre-release counts only for who has
/// one already.
pub(super) fn newest<'a>(tags: &'a [String], than: Option<&Version>) -> Option<(Version, &'a str)> {
    let takes_pre = than.is_some_and(|than| !than.pre.is_empty());
    tags.iter()
        .filter_map(|tag| Some((version_of(tag)?, tag.as_str())))
        .filter(|(version, _)| version.pre.is_empty() || takes_pre)
        .filter(|(version, _)| than.is_none_or(|than| version > than))
        .max_by(|(a, _), (b, _)| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_told_by_number_and_not_by_letter() {
        let tags = ["latest", "0.9.0", "v0.10.0", "1.0.0-rc.1", "0.2.0", "sha256-12.sig"];
        let tags = tags.map(str::to_owned);
        let of = |than: Option<&str>| {
            let than = than.map(|than| Version::parse(than).unwrap());
            newest(&tags, than.as_ref()).map(|(_, tag)| tag)
        };
        assert_eq!(of(None), Some("v0.10.0"));
        assert_eq!(of(Some("0.9.0")), Some("v0.10.0"));
        assert_eq!(of(Some("0.10.0")), None);
        assert_eq!(of(Some("1.0.0-rc.0")), Some("1.0.0-rc.1"));
        assert_eq!(newest(&tags[..1], None), None);
        assert_eq!(
            version_of("1.0.0_a").map(|found| found.to_string()).as_deref(),
            Some("1.0.0+a")
        );
    }
}
