//! How URLs and JSON strings are read, one byte or escape at a time.

/// The longest token: a character beyond the first 65,536 in JSON.
pub(super) const LONGEST_TOKEN: usize = 12;

/// How a text may be escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Not at all.
    Plain,
    /// As in a JSON string.
    Json,
    /// As in a URL or a form. A space and `+` mean the same there.
    Percent,
}

/// The character or escape at a place of a text.
pub(super) struct Token {
    /// How many bytes of the text it takes.
    pub(super) length: usize,
    bytes: [u8; 4],
    count: usize,
}

impl Token {
    fn one(length: usize, byte: u8) -> Self {
        Self { length, bytes: [byte, 0, 0, 0], count: 1 }
    }

    /// Its meaning.
    pub(super) fn read(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

impl Form {
    /// The bytes of which an escaped text has one.
    pub(super) fn escapes(self) -> &'static [u8] {
        match self {
            Self::Plain => b"",
            Self::Json => b"\\",
            Self::Percent => b"%+",
        }
    }

    /// What stands at `at`, which is within the text. `None` if nothing is read on, as no value
    /// has such an escape.
    pub(super) fn token(self, text: &[u8], at: usize) -> Option<Token> {
        let byte = text[at];
        match (self, byte) {
            (Self::Percent, b'%') => Some(hex_byte(text, at + 1).map_or_else(
                || Token::one(1, byte),
                |byte| Token::one(3, if byte == b'+' { b' ' } else { byte }),
            )),
            (Self::Percent, b'+') => Some(Token::one(1, b' ')),
            (Self::Json, b'\\') => json_escape(text, at),
            _ => Some(Token::one(1, byte)),
        }
    }

    /// The text as it is read from its first byte on.
    pub(super) fn read_all(self, text: &[u8]) -> Vec<u8> {
        let (mut read, mut at) = (Vec::with_capacity(text.len()), 0);
        while at < text.len() {
            match self.token(text, at) {
                Some(token) => {
                    read.extend_from_slice(token.read());
                    at += token.length;
                }
                None => at += 1,
            }
        }
        read
    }

    /// A text that is not escaped, where this form does not tell some bytes apart.
    pub(super) fn folded(self, mut text: Vec<u8>) -> Vec<u8> {
        if self == Self::Percent {
            text.iter_mut().filter(|byte| **byte == b'+').for_each(|byte| *byte = b' ');
        }
        text
    }
}

// A value has no control characters, so that `\n` and its like end it.
fn json_escape(text: &[u8], at: usize) -> Option<Token> {
    match text.get(at + 1)? {
        meant @ (b'"' | b'\\' | b'/') => Some(Token::one(2, *meant)),
        b'u' => {
            let first = unit(text, at)?;
            let (read, length) = match char::decode_utf16([first]).next()? {
                Ok(read) => (read, 6),
                Err(_) => {
                    (char::decode_utf16([first, unit(text, at + 6)?]).next()?.ok()?, LONGEST_TOKEN)
                }
            };
            let mut bytes = [0; 4];
            let count = read.encode_utf8(&mut bytes).len();
            Some(Token { length, bytes, count })
        }
        _ => None,
    }
}

/// The number of an escape such as `\u0041`.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let is_escape = text.get(at..at + 2)? == b"\\u";
    is_escape.then_some(u16::from_be_bytes([hex_byte(text, at + 2)?, hex_byte(text, at + 4)?]))
}

/// The byte of two hexadecimal digits at `at`.
pub(super) fn hex_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}
