//! What is found in a text: kind, place and risk.

use std::ops::Range;

/// Looks at the surroundings of an anchor in a text.
pub(crate) type Check = fn(&str, Range<usize>) -> Option<Finding>;

/// How much personal data a text appears to hold. The order of the variants is the order of the
/// risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PiiRisk {
    /// Level 0: nothing was detected.
    #[default]
    None = 0,
    /// Level 1: data that was redacted or masked already, or a weak hint such as "date of birth".
    Possible = 1,
    /// Level 2: raw personal data or a credential.
    High = 2,
}

impl PiiRisk {
    /// The level as a number from 0 to 2.
    #[must_use]
    pub const fn level(self) -> u8 {
        self as u8
    }
}

/// What a [`Finding`] is. The limits named here are deliberate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PiiKind {
    /// An e-mail address as in RFC 5321, without quoted local parts. Latin, Greek and Cyrillic
    /// letters are accepted, other scripts are not. The length limits of the RFC are not enforced.
    /// `git@` remotes, asset names such as `icon@2x.png` and package versions such as `name@1.2.3`
    /// are not addresses.
    Email,
    /// A phone number: international with `+` or `00` (ITU-T E.164, 8 to 15 digits), North American
    /// with separators (NANP, fictional 555 numbers included), with a trunk zero and separators, a
    /// mobile number of Germany, France, the United Kingdom, Japan or mainland China, or 7 to 15
    /// digits after a word such as "phone", "tel" or "fax". A number behind a word such as "order"
    /// is none.
    Phone,
    /// A payment card number of 13 to 19 digits with a known issuer prefix and a valid Luhn digit
    /// (ISO/IEC 7812-1). One in ten random numbers with such a prefix passes, so long numeric ids
    /// can be false hits.
    Card,
    /// An IBAN of the length its country uses and with a valid mod 97 check (ISO 13616, ISO 7064).
    Iban,
    /// A US social security number with dashes, without the ranges that the SSA never assigns.
    /// Numbers that became known as samples are not exempt.
    Ssn,
    /// A public IPv4 or IPv6 address. Special ranges of the IANA registries (RFC 6890) and whole
    /// networks such as `8.8.8.0/24` are not personal data. Four numbers behind a word such as
    /// "version" are read as a version.
    IpAddress,
    /// A credential: well-known token shapes, JSON web tokens (RFC 7519), PEM private keys (RFC
    /// 7468) and literal values of 8 or more characters assigned to a name such as `password` or
    /// `api_key`. A value of letters only is no more than [`PiiRisk::Possible`], because most of
    /// them are words or type names. Behind a word for a password 4 characters with a digit are
    /// enough, and in `my password is swordfish` letters.
    Secret,
    /// A passport number (6 to 12 letters and digits, at least five of them digits), only right
    /// behind the word "passport".
    Passport,
    /// A number that a state gives to a person, such as an AHV number, a tax number or a driving
    /// licence: by its check digits or letters, or right behind a word that announces it.
    NationalId,
    /// The number of a bank account that is no IBAN, behind a word that announces it, or an Indian
    /// payment address.
    BankAccount,
    /// Data that was redacted or masked before, such as `[EMAIL]` or `****1234`. Always
    /// [`PiiRisk::Possible`].
    Redacted,
    /// Words that announce personal data, such as "my phone number is". Always
    /// [`PiiRisk::Possible`].
    Hint,
}

impl PiiKind {
    /// The text that [`redact`](crate::redact) puts in place of a finding. No placeholder is itself a
    /// [`PiiRisk::High`] finding.
    #[must_use]
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Email => "[EMAIL]",
            Self::Phone => "[PHONE]",
            Self::Card => "[CARD]",
            Self::Iban => "[IBAN]",
            Self::Ssn => "[SSN]",
            Self::IpAddress => "[IP_ADDRESS]",
            Self::Secret => "[SECRET]",
            Self::Passport => "[PASSPORT]",
            Self::NationalId => "[NATIONAL_ID]",
            Self::BankAccount => "[ACCOUNT]",
            Self::Redacted | Self::Hint => "[redacted]",
        }
    }
}

/// One place in a text that holds, or may hold, personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub kind: PiiKind,
    /// Where it is, in bytes. Both ends are character boundaries.
    pub range: Range<usize>,
    /// How sure it is that this is raw data.
    pub risk: PiiRisk,
}

impl Finding {
    pub(crate) const fn high(kind: PiiKind, range: Range<usize>) -> Self {
        Self { kind, range, risk: PiiRisk::High }
    }

    pub(crate) const fn possible(kind: PiiKind, range: Range<usize>) -> Self {
        Self { kind, range, risk: PiiRisk::Possible }
    }
}
