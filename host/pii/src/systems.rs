//! What opens or names a system: network addresses, tokens, keys and passwords.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{MASKS, before, byte, is_one_of, is_word, words_before};

pub(crate) const SPECS: &[(&str, Check)] = &[
    (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", ip_v4),
    (r"[0-9A-Fa-f:]+:[0-9A-Fa-f:.]*", ip_v6),
    (r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)", token),
    (r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}", token),
    (
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}",
        token,
    ),
    // The host's own tokens come first: whoever reads one acts as its bearer.
    (r"(?-u:\b)mh_[A-Za-z0-9_-]{40,}", token),
    (
        r"(?-u:\b)(?:hf_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        token,
    ),
    (r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,}", token),
    (r#"(?i)authorization["']?[ \t]*[:=][ \t]*["']?basic[ \t]+[a-z0-9+/=]{8,}"#, token),
    (r"(?-u:\b)(?:sk-[A-Za-z0-9_-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,})", token_with_digit),
    (r"(?i)(?-u:\b)bearer[ \t]+[a-z0-9._~+/=-]{20,}", token_with_digit),
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", token),
    (r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", private_key),
    (
        concat!(
            r"(?i)(?:password|passwd|passphrase|pwd|secret",
            r"|(?:api|access|private|secret)[ _-]?key|(?:access|auth|api|bearer|refresh|bot)[ _-]?token)",
            r#"["'`*\\\]]{0,3}(?:[ \t]{0,3}(?:=>|:=|==?|:)|[ \t]is[ \t])"#,
            r"(?:[ \t]{0,3}(?:&(?:'static )?)?[a-z0-9_:<>]{1,40}[ \t]{1,3}=)?[ \t]{0,3}(?:\*\*[ \t]{0,3})?",
        ),
        assignment,
    ),
    (r"(?i)(?-u:\b)pin(?: code| number)?(?: is(?: now)?|[ ]?[:=])[ ]{1,2}", pin),
    (r#"(?i)[a-z][a-z0-9+.-]{1,20}://[^ \t\r\n/:@]{0,64}:[^ \t\r\n/"'`<>]{1,128}@"#, url_password),
];

/// Words that announce a version, an outline number or an object identifier rather than an address.
const VERSION_WORDS: &str = "version versions ver v release released releases build \
                                        bump bumps bumped upgrade upgraded \
    upgrades downgrade downgraded firmware section sections chapter clause appendix oid \
    objectidentifier rfc";

fn ip_v4(text: &str, at: Range<usize>) -> Option<Finding> {
    let ip: Ipv4Addr = text[at.clone()].parse().ok()?;
    let ahead = (before(text, at.start, 1), before(text, at.start, 2));
    let starts = match ahead {
        (Some(b'.' | b'^' | b'~'), _) => false,
        // `name-1.2.3.4` and `Product/1.2.3.4` are versions, `8.8.4.4-8.8.8.8` and `//8.8.8.8` are
        // not.
        (Some(b'-' | b'/'), Some(b)) => !b.is_ascii_alphabetic(),
        // `==1.2.3.4` and `>=1.2.3.4` pin a package.
        (Some(b'='), Some(b)) => !b"=<>~!^".contains(&b),
        (b, _) => !is_word(b),
    };
    let ends = match (byte(text, at.end), byte(text, at.end + 1)) {
        (Some(b'.'), Some(b)) => !b.is_ascii_digit() && !b.is_ascii_lowercase(),
        (Some(b'-' | b'+'), Some(b)) => !b.is_ascii_alphabetic(),
        (b, _) => !is_word(b),
    };
    let versioned =
        || words_before(text, at.start).take(4).any(|word| is_one_of(word, VERSION_WORDS));
    let network =
        || network_bits(text, at.end).is_some_and(|bits| bits < 32 && ip.to_bits() << bits == 0);
    (starts && ends && is_public_v4(ip) && !versioned() && !network())
        .then(|| Finding::high(PiiKind::IpAddress, at.clone()))
}

fn ip_v6(text: &str, at: Range<usize>) -> Option<Finding> {
    // Longer runs cannot be an address. `::` at an end belongs to the address, a single `:` or `.`
    // to the sentence.
    let run = text[at.clone()].trim_end_matches('.');
    let run = if run.ends_with("::") { run } else { run.trim_end_matches(':') };
    let address = if run.starts_with("::") { run } else { run.trim_start_matches(':') };
    let start = at.start + run.len() - address.len();
    let end = start + address.len();
    let ip: Ipv6Addr = if address.len() > 45 { None } else { address.parse().ok() }?;
    let network =
        network_bits(text, end).is_some_and(|bits| bits < 128 && ip.to_bits() << bits == 0);
    let clean = !is_word(before(text, start, 1)) && !is_word(byte(text, end));
    (clean && is_public_v6(ip) && !network).then(|| Finding::high(PiiKind::IpAddress, start..end))
}

/// The length behind an address in CIDR notation.
fn network_bits(text: &str, end: usize) -> Option<u32> {
    let rest = text.get(end..)?.strip_prefix('/')?;
    let len = rest.bytes().take(4).take_while(u8::is_ascii_digit).count();
    rest[..len].parse().ok()
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special =
        ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation();
    let shared = a == 100 && (64..128).contains(&b);
    let assigned = (a, b, c) == (192, 0, 0) || (a == 198 && (b == 18 || b == 19));
    // Zero is "this network", 224 and above are multicast, reserved and broadcast.
    !special && !shared && !assigned && a != 0 && a < 224
}

/// Only `2000::/3` is in public use. An embedded IPv4 address is found on its own.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    (0x2000..0x4000).contains(&a) && !documentation
}

// Credentials

#[allow(clippy::unnecessary_wraps, reason = "it is a `Check`")]
fn token(_: &str, at: Range<usize>) -> Option<Finding> {
    Some(Finding::high(PiiKind::Secret, at))
}

/// For prefixes that also start ordinary names, such as the class `sk-folding-cube-wrapper`.
fn token_with_digit(text: &str, at: Range<usize>) -> Option<Finding> {
    let matched = &text[at.clone()];
    let value = matched.rsplit([' ', '\t']).next().unwrap_or(matched);
    let random = |part: &str| part.len() > 11 && part.bytes().any(|b| b.is_ascii_digit());
    let found = value.split(|c: char| !c.is_ascii_alphanumeric()).any(random);
    found.then(|| Finding::high(PiiKind::Secret, at.end - value.len()..at.end))
}

/// A key block from its first to its last line. A block that was cut off ends where its Base64 text
/// ends.
fn private_key(text: &str, at: Range<usize>) -> Option<Finding> {
    const LONGEST: usize = 16 * 1024;
    let body = &text[at.end..];
    // Every later anchor starts with dashes, so this search ends there and no text is searched
    // twice.
    let closing =
        body.find("-----").filter(|&len| len < LONGEST && body[len..].starts_with("-----END "));
    let len = match closing {
        Some(len) => body[len + 9..]
            .find("-----")
            .filter(|&rest| rest < 64)
            .map_or(len, |rest| len + 9 + rest + 5),
        None => base64_lines(body),
    };
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    let material = body[..len].split(|c| !is_base64(c)).any(|part| part.len() > 15);
    material.then(|| Finding::high(PiiKind::Secret, at.start..at.end + len))
}

/// How much of the start of `body` is Base64 text in lines. Lines may be split by white space or a
/// literal `\n`.
fn base64_lines(body: &str) -> usize {
    let mut len = 0;
    loop {
        let gap =
            body[len..].find(|c: char| !c.is_whitespace() && !"\\nr".contains(c)).unwrap_or(0);
        let line = &body[len + gap..];
        let end = line
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c))
            .unwrap_or(line.len());
        if end < 16 {
            return len;
        }
        len += gap + end;
    }
}

/// The code behind "my PIN is": four to eight digits.
fn pin(text: &str, at: Range<usize>) -> Option<Finding> {
    let len = text.bytes().skip(at.end).take(9).take_while(u8::is_ascii_digit).count();
    let end = at.end + len;
    ((4..=8).contains(&len) && !is_word(byte(text, end)))
        .then(|| Finding::high(PiiKind::Secret, at.end..end))
}

/// The password in `scheme://user:password@host`.
fn url_password(text: &str, at: Range<usize>) -> Option<Finding> {
    // A password may have colons and at signs: it begins after the first colon of what is before
    // the host.
    let user = at.start + text[at.clone()].find("://")? + 3;
    let start = user + text[user..at.end].find(':')? + 1;
    let value = start..at.end - 1;
    match judge("password:", &text[value.clone()], true)? {
        PiiKind::Secret => Some(Finding::high(PiiKind::Secret, value)),
        weak => Some(Finding::possible(weak, value)),
    }
}

/// `name = value` with a name that promises a credential. The finding is the value alone.
fn assignment(text: &str, at: Range<usize>) -> Option<Finding> {
    // A rejected value may be read again by the next anchor, so only this much of it decides.
    const JUDGED: usize = 256;
    // `[SECRET]` is what redaction wrote, not the name of the next value.
    if text[..at.start].ends_with('[') && text[at.start..].starts_with("SECRET]") {
        return None;
    }
    let rest = &text[at.end..];
    // A quote may have a backslash in nested JSON, or a prefix such as `b` or `r#` in code.
    let opening = rest.char_indices().take(4).find(|(_, c)| matches!(c, '"' | '\'' | '`'));
    let (lead, quote) = opening
        .filter(|&(lead, _)| rest[..lead].chars().all(|c| "\\bBrRfFuU@$#".contains(c)))
        .unzip();
    let escaped = lead.is_none_or(|lead| rest[..lead].ends_with('\\'));
    let body = lead.map_or(rest, |lead| &rest[lead + 1..]);
    let ends = |c: char| {
        c.is_whitespace() || (escaped && c == '\\') || quote.map_or(c == '&', |quote| c == quote)
    };
    let judged = body
        .char_indices()
        .find(|&(at, c)| ends(c) || at > JUDGED)
        .map_or(body.len(), |(at, _)| at);
    let start = text.len() - body.len();
    let value = trim_code(&body[..judged], quote);
    match judge(&text[at], value, quote.is_some())? {
        PiiKind::Secret => {
            let len = body[judged..].find(ends).map_or(body.len(), |len| judged + len);
            Some(Finding::high(
                PiiKind::Secret,
                start..start + trim_code(&body[..len], quote).len(),
            ))
        }
        weak => Some(Finding::possible(weak, start..start + value.len())),
    }
}

/// Removes what code or prose puts behind a bare value.
fn trim_code(value: &str, quote: Option<char>) -> &str {
    if quote.is_some() {
        value
    } else {
        value.trim_end_matches([',', ';', ')', ']', '}', '"', '\'', '`', '.', '>'])
    }
}

/// What a value is, if it is anything: a credential, the place of one that was removed, or a word
/// that may be one. `name` is the text in front of the value, up to and with the `=` or `:`.
fn judge(name: &str, value: &str, quoted: bool) -> Option<PiiKind> {
    let name = name.to_ascii_lowercase();
    let lower = value.to_ascii_lowercase();
    let is_password = name.starts_with("pass") || name.starts_with("pwd");
    // "the password is generated" says nothing, but `password: generated` might be one.
    let hint = name.contains([':', '=']).then_some(PiiKind::Hint);
    let only = |extra: &str| value.chars().all(|c| c.is_alphabetic() || extra.contains(c));
    let constant =
        value.contains('_') && value.bytes().all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    let crossed = value.chars().count() > 2 && value.chars().all(|c| MASKS.contains(&c));
    if crossed {
        Some(PiiKind::Redacted)
    } else if value.chars().count() < 8 {
        None
    } else if is_placeholder(value)
        || ["***", "•••", "xxxx", "redacted", "placeholder"].iter().any(|part| lower.contains(part))
        || ["your-", "your_", "changeme", "change-", "change_"]
            .iter()
            .any(|start| lower.starts_with(start))
    {
        Some(PiiKind::Redacted)
    } else if is_reference(value, quoted)
        || (!is_password && value.bytes().all(|b| b.is_ascii_digit()))
    {
        None
    } else if only("") {
        let type_name = !quoted && value.chars().skip(1).any(char::is_uppercase);
        hint.filter(|_| !type_name)
    } else if only("_.:") || (!is_password && (constant || only("-_.:/"))) {
        hint.filter(|_| quoted || only("-"))
    } else {
        Some(PiiKind::Secret)
    }
}

/// `[secret]`, `<your-key>` and `{{password}}`: words in brackets.
pub(crate) fn is_placeholder(value: &str) -> bool {
    let inner = value.trim_start_matches(['[', '<', '{']);
    // The closing bracket may have been taken for the end of the code around the value.
    let end = inner.find([']', '>', '}']).unwrap_or(inner.len());
    let named = end > 0 && inner[..end].chars().all(|c| c.is_alphabetic() || "_-.".contains(c));
    inner.len() < value.len()
        && named
        && inner[end..].chars().filter(|c| c.is_alphanumeric()).count() < 4
}

/// Values that name the place where a credential is kept, or that are plain code: variables,
/// templates, calls, types, numbers, paths and links.
pub(crate) fn is_reference(value: &str, quoted: bool) -> bool {
    let starts = |list: &[&str]| list.iter().any(|start| value.starts_with(start));
    let named = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || "_.:".contains(c))
    };
    let variable = starts(&["${", "$("]) || value.strip_prefix('$').is_some_and(named);
    // "1.2.840.113549" is an object identifier or a version.
    let dotted = value.contains('.') && value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let path = value.contains("://")
        || starts(&["./", "../", "~/"])
        || value.strip_prefix('/').and_then(|rest| rest.split_once('/')).is_some_and(|(top, _)| {
            // Base64 can start with a slash too, but rarely goes on in small letters up to the next
            // one.
            !top.is_empty() && top.bytes().all(|b| b.is_ascii_lowercase())
        });
    // A quote in front of one of these was a closing quote.
    if quoted {
        return variable || dotted || path || starts(&[")", ",", ";", "]", "}"]);
    }
    let template = starts(&["{", "(", "%(", "#{"]);
    // `f(x)`, `map["x"]`, `s!("x")` and `Type<'_>`. A digit behind the bracket is more likely in a
    // password.
    let call = value.find(['(', '[', '{', '<']).is_some_and(|open| {
        let callee = value[..open].trim_end_matches('!');
        named(callee)
            && (callee.contains([':', '.'])
                || !value[open + 1..].starts_with(|c: char| c.is_ascii_digit()))
    });
    let item = value.starts_with(':')
        || (value.contains("::") && named(value))
        || value
            .strip_prefix(['*', '&'])
            .is_some_and(|place| place.chars().all(|c| c.is_alphabetic() || "_.".contains(c)));
    let number = value.strip_prefix('-').unwrap_or(value);
    let suffixed = ["i32", "u32", "i64", "u64"].iter().any(|suffix| {
        number
            .strip_suffix(suffix)
            .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
    });
    let hex = number
        .strip_prefix("0x")
        .is_some_and(|n| n.bytes().all(|b| b.is_ascii_hexdigit() || b"_ui".contains(&b)));
    variable || dotted || path || template || call || item || suffixed || hex
}
