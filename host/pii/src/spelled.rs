//! Mail addresses in words: `jane dot doe at example dot com`, `jane [at] example.org`.
//!
//! A pattern finds the sign, and behind a plain "at" also a spelled dot. The check reads a bounded
//! stretch before and behind it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::check::Check;
use super::text::{ahead, behind, is_one_of};
use super::{Finding, PiiKind};

/// How far an address reaches on either side of its sign, in bytes.
const REACH: usize = 80;

pub(super) const SPECS: &[(&str, Check)] = &[
    // Brackets around the sign, or a word that stands for nothing else, say enough.
    (
        concat!(
            r"(?i) ?[(\[{<] ?(?:at|ät|@|arobase|bei) ?[)\]}>] ?",
            r"| (?:arobase|klammeraffe|chiocciola|arroba) | ?(?:アットマーク|アット) ?",
        ),
        address,
    ),
    (r"(?i) (?:at|ät|bei) [a-z0-9-]{1,40} (?:dot|punkt|点) ", plain),
];

/// What is on either side of the sign, each with its spelled dots.
struct Sides {
    local: Regex,
    domain: Regex,
}

static SIDES: LazyLock<Option<Sides>> = LazyLock::new(|| {
    let dot = r"(?:\.| ?[(\[{] ?(?:dot|punkt|point|punto|\.) ?[)\]}] ?| (?:dot|punkt|point|punto) | ?(?:ドット|点) ?)";
    let local =
        Regex::new(&format!(r"(?i)[0-9A-Za-zÀ-ɏ぀-鿿_+'-]+(?:{dot}[0-9A-Za-zÀ-ɏ぀-鿿_+'-]+)*$"))
            .ok()?;
    let domain =
        Regex::new(&format!(r"(?i)^[0-9A-Za-zÀ-ɏ぀-鿿-]+(?:{dot}[0-9A-Za-zÀ-ɏ぀-鿿-]+)+")).ok()?;
    Some(Sides { local, domain })
});

fn plain(text: &str, at: Range<usize>) -> Option<Finding> {
    let sign = text[at.start + 1..].find(' ').map(|len| at.start..at.start + len + 2)?;
    address(text, sign)
}

/// Whether both sides are there, and the last word is a top-level domain that people have addresses
/// in.
fn address(text: &str, sign: Range<usize>) -> Option<Finding> {
    const ENDINGS: &str = "com org net edu gov info biz me io dev app ai co uk us ca au nz ie de \
                           at ch li fr be \
        lu nl it es pt eu dk se no fi pl cz hu ro gr ru ua tr cn hk tw jp kr in br mx ar za sg \
        example test \
        invalid";
    const WORDS: &str = "the a an this that your our their my his her der die das le la";
    let sides = SIDES.as_ref()?;
    let domain = sides.domain.find(ahead(text, sign.end, REACH))?;
    let words = || {
        domain
            .as_str()
            .split(|c: char| !c.is_alphanumeric() && c != '-')
            .filter(|word| !word.is_empty())
    };
    let is_domain = words().next_back().is_some_and(|word| is_one_of(word, ENDINGS));
    let is_prose = words().next().is_some_and(|word| is_one_of(word, WORDS));
    let local =
        sides.local.find(behind(text, sign.start, REACH)).filter(|_| is_domain && !is_prose)?;
    Some(Finding::high(PiiKind::Email, sign.start - local.len()..sign.end + domain.len()))
}
