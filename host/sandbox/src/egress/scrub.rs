//! Finds secret values in what goes back to a guest or into a log, however they are escaped there,
//! and masks them, in a time that grows with the text and not with the values.
//!
//! Encoders differ in what they escape, so each byte of a value may be escaped or not. An escape
//! may also be read in two ways: `%41b` is `Ab`, and from its second byte on `41b`. But at each
//! byte there is one way to read on, and one place where that leads. So the text is read backwards:
//! the state of an automaton of the reversed values at a byte follows from the state at the place
//! where reading on leads. Where it is a match, a value begins at this byte.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::escape::{Form, LONGEST_TOKEN};
use memhost_executor::expect_off_executor;

/// Shorter values are only looked for as they are: too much innocent text would match one of their
/// other forms.
const MIN_ESCAPED_BYTES: usize = 4;

/// All forms of all secret values. It shows nothing in `Debug`, for it has no `Debug`. Cheap to
/// clone.
#[derive(Clone, Default)]
pub(crate) struct Scrubber(Option<Arc<Needles>>);

struct Needles {
    masks: Vec<String>,
    plain: Automata,
    /// As JSON strings escape them.
    json: Automata,
    /// As URLs and forms escape them.
    percent: Automata,
}

/// The patterns of one form.
struct Automata {
    /// The automaton of the reversed texts. `None`: there is nothing to look for.
    nfa: Option<(NFA, StateID)>,
    /// The number of the mask and the length in bytes, by the number of the pattern.
    patterns: Vec<(usize, usize)>,
}

/// A part of a text that is a value.
struct Found {
    range: Range<usize>,
    /// The length in bytes, as it was before it was escaped, of the longest value in it.
    longest: usize,
    mask: usize,
}

impl Scrubber {
    /// A scrubber for these pairs of a name and a value. `None` if they are too long for an
    /// automaton.
    pub(crate) fn new<'s>(secrets: impl Iterator<Item = (&'s str, &'s str)>) -> Option<Self> {
        let (mut masks, mut plain, mut escaped) = (Vec::new(), Vec::new(), Vec::new());
        for (mask, (name, value)) in secrets.enumerate() {
            masks.push(format!("[secret {name}]"));
            plain.push((mask, value.as_bytes().to_vec()));
            if value.len() >= MIN_ESCAPED_BYTES {
                let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
                let encoded =
                    engines.iter().map(|engine| (mask, engine.encode(value).into_bytes()));
                escaped.extend(encoded.chain([(mask, value.as_bytes().to_vec())]));
            }
        }
        if masks.is_empty() {
            return Some(Self::default());
        }
        plain.extend(escaped.iter().cloned());
        let percent = escaped.iter().flat_map(|(mask, text)| {
            // Encoders that leave `%` alone make what reads like an escape of what is behind it.
            let read = Form::Percent.read_all(text);
            [text.clone(), read].map(|text| (*mask, Form::Percent.folded(text)))
        });
        let percent = percent.filter(|(_, text)| text.len() >= MIN_ESCAPED_BYTES).collect();
        let needles = Needles {
            masks,
            plain: Automata::new(plain)?,
            json: Automata::new(escaped)?,
            percent: Automata::new(percent)?,
        };
        Some(Self(Some(Arc::new(needles))))
    }

    /// The bytes with every occurrence masked. Occurrences that overlap become one mask, so that no
    /// end of one is left.
    pub(crate) fn scrub<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(needles) = &self.0 else { return Cow::Borrowed(bytes) };
        expect_off_executor("masking secrets", bytes.len());
        let found = needles.find(bytes);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for Found { range, mask, .. } in found {
            out.extend_from_slice(&bytes[done..range.start]);
            out.extend_from_slice(needles.masks[mask].as_bytes());
            done = range.end;
        }
        out.extend_from_slice(&bytes[done..]);
        Cow::Owned(out)
    }
}

impl Needles {
    fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let mut all = self.plain.find(Form::Plain, bytes);
        // Without these a text has no escapes, and is found as it is.
        for (form, automata) in [(Form::Json, &self.json), (Form::Percent, &self.percent)] {
            if form.escapes().iter().any(|escape| bytes.contains(escape)) {
                all.extend(automata.find(form, bytes));
            }
        }
        all.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
        let mut joined: Vec<Found> = Vec::new();
        for found in all {
            match joined.last_mut() {
                Some(last) if found.range.start < last.range.end => last.join(&found),
                _ => joined.push(found),
            }
        }
        joined
    }
}

impl Found {
    fn join(&mut self, other: &Self) {
        self.range.end = self.range.end.max(other.range.end);
        if other.longest > self.longest {
            (self.longest, self.mask) = (other.longest, other.mask);
        }
    }
}

impl Automata {
    fn new(texts: Vec<(usize, Vec<u8>)>) -> Option<Self> {
        let mut texts: Vec<(Vec<u8>, usize)> = texts
            .into_iter()
            .map(|(mask, text)| (text.into_iter().rev().collect(), mask))
            .collect();
        texts.sort();
        texts.dedup_by(|a, b| a.0 == b.0);
        let patterns = texts.iter().map(|(text, mask)| (*mask, text.len())).collect();
        if texts.is_empty() {
            return Some(Self { nfa: None, patterns });
        }
        let nfa = NFA::builder().build(texts.iter().map(|(text, _)| text)).ok()?;
        let start = nfa.start_state(Anchored::No).ok()?;
        Some(Self { nfa: Some((nfa, start)), patterns })
    }

    /// Where values begin, from the last to the first, with the number of the longest one's
    /// pattern.
    fn begins(&self, form: Form, bytes: &[u8]) -> Vec<(usize, usize)> {
        let Some((nfa, start)) = &self.nfa else { return Vec::new() };
        let mut begins = Vec::new();
        // The states at the places behind, of which reading on leads to one.
        let mut states = [*start; LONGEST_TOKEN + 1];
        for at in (0..bytes.len()).rev() {
            let state = match form.token(bytes, at) {
                None => *start,
                Some(token) => {
                    let before = if at + token.length >= bytes.len() {
                        *start
                    } else {
                        states[(at + token.length) % states.len()]
                    };
                    let read = token.read().iter().rev();
                    read.fold(before, |state, byte| nfa.next_state(Anchored::No, state, *byte))
                }
            };
            states[at % (LONGEST_TOKEN + 1)] = state;
            if nfa.is_match(state) {
                // The first one of a state is the longest: the others are ends of it.
                begins.push((at, nfa.match_pattern(state, 0).as_usize()));
            }
        }
        begins
    }

    fn find(&self, form: Form, bytes: &[u8]) -> Vec<Found> {
        let mut begins = self.begins(form, bytes);
        let mut all: Vec<Found> = Vec::new();
        // How many bytes of a value are still to come, at this place and at those that reading on
        // leads to.
        let mut open = [0_usize; LONGEST_TOKEN + 1];
        let mut at = begins.last().map_or(bytes.len(), |(at, _)| *at);
        while at < bytes.len() {
            let carried = std::mem::take(&mut open[at % (LONGEST_TOKEN + 1)]);
            let begun =
                begins.pop_if(|(begin, _)| *begin == at).map(|(_, pattern)| self.patterns[pattern]);
            let left = carried.max(begun.map_or(0, |(_, length)| length));
            if left > 0 {
                let (length, read) = form
                    .token(bytes, at)
                    .map_or((1, 1), |token| (token.length, token.read().len()));
                let end = (at + length).min(bytes.len());
                let (mask, longest) = begun.unwrap_or_default();
                let found = Found { range: at..end, longest, mask };
                match all.last_mut() {
                    // What was carried here goes on; what only begins where another one ends is a
                    // value of its own.
                    Some(last) if at < last.range.end || (carried > 0 && at == last.range.end) => {
                        last.join(&found);
                    }
                    _ => all.push(found),
                }
                let next = &mut open[(at + length) % (LONGEST_TOKEN + 1)];
                *next = (*next).max(left.saturating_sub(read));
            }
            at += 1;
            // Between values nothing is open.
            if all.last().is_none_or(|last| at >= last.range.end)
                && open[at % (LONGEST_TOKEN + 1)] == 0
            {
                at = begins.last().map_or(bytes.len(), |(begin, _)| *begin);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
