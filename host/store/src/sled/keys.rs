//! Keys. Every key begins with the company and a zero byte, which no id contains.

use memhost_types::{CompanyId, Operation, OperationFilter};

const RECORD: u8 = b'o';
const INTENT: u8 = b'i';

pub(super) use crate::posting::BLOCK;

fn with(company: &CompanyId, rest: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(
        company.as_str().len() + 1 + rest.iter().map(|part| part.len()).sum::<usize>(),
    );
    key.extend_from_slice(company.as_str().as_bytes());
    key.push(0);
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The key of an operation's record.
pub(super) fn record(company: &CompanyId, sequence: u64) -> Vec<u8> {
    with(company, &[&[RECORD], &sequence.to_be_bytes()])
}

/// The key of the mark of an operation in progress.
pub(super) fn intent(company: &CompanyId, sequence: u64) -> Vec<u8> {
    with(company, &[&[INTENT], &sequence.to_be_bytes()])
}

/// The prefix of a company's intents.
pub(super) fn intents(company: &CompanyId) -> Vec<u8> {
    with(company, &[&[INTENT]])
}

/// The prefix of a company's keys.
pub(super) fn all(company: &CompanyId) -> Vec<u8> {
    with(company, &[])
}

/// The first key behind everything of a company.
pub(super) fn behind(company: &CompanyId) -> Vec<u8> {
    let mut key = company.as_str().as_bytes().to_vec();
    key.push(1);
    key
}

/// The sequence number that a key ends with.
pub(super) fn sequence(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(key.len().checked_sub(8)?..)?.try_into().ok()?))
}

/// The key of the number up to which a company's operations are indexed. The second letter is the
/// form of the index: one of another form is made again from the log.
pub(super) fn watermark(company: &CompanyId) -> Vec<u8> {
    with(company, &[b"wc"])
}

/// The key of the number up to which a company's log and index fitted when the store was closed.
pub(super) fn compared(company: &CompanyId) -> Vec<u8> {
    with(company, &[b"x"])
}

/// The prefix of a company's posting chunks.
pub(super) fn postings(company: &CompanyId) -> Vec<u8> {
    with(company, &[b"p"])
}

/// The prefix of the chunks of one facet value. The length separates a value from a longer one.
pub(super) fn facet(company: &CompanyId, facet: u8, value: &str) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes();
    with(company, &[b"p", &[facet], &length, value.as_bytes()])
}

/// One chunk.
pub(super) fn chunk(facet_key: &[u8], block: u64) -> Vec<u8> {
    [facet_key, &block.to_be_bytes()].concat()
}

/// The prefix of what says which operations name a record.
pub(super) fn named(company: &CompanyId) -> Vec<u8> {
    with(company, &[b"n"])
}

/// The same of one block.
pub(super) fn named_in(company: &CompanyId, block: u64) -> Vec<u8> {
    with(company, &[b"n", &block.to_be_bytes()])
}

/// The prefix of the rows of a block that are not sorted yet.
pub(super) fn named_rows(company: &CompanyId, block: u64) -> Vec<u8> {
    with(company, &[b"n", &block.to_be_bytes(), b"r"])
}

/// One of these rows, by the place of its first operation.
pub(super) fn named_row(company: &CompanyId, block: u64, place: u16) -> Vec<u8> {
    with(company, &[b"n", &block.to_be_bytes(), b"r", &place.to_be_bytes()])
}

/// The prefix of the sorted parts of a block.
pub(super) fn named_parts(company: &CompanyId, block: u64) -> Vec<u8> {
    with(company, &[b"n", &block.to_be_bytes(), b"p"])
}

/// One of these parts.
pub(super) fn named_part(company: &CompanyId, block: u64, part: u8) -> Vec<u8> {
    with(company, &[b"n", &block.to_be_bytes(), b"p", &[part]])
}

/// The block that a key below [`named`] belongs to.
pub(super) fn named_block(company: &CompanyId, key: &[u8]) -> Option<u64> {
    let (block, _) = key.strip_prefix(named(company).as_slice())?.split_first_chunk::<8>()?;
    Some(u64::from_be_bytes(*block))
}

/// The facets by which an operation is found, the most selective first.
pub(super) fn facets_of(operation: &Operation) -> Vec<Vec<u8>> {
    let (about, scope) = (operation.about(), &operation.scope);
    let binding = operation.binding_id.map(|id| id.to_string());
    let values = [
        (b'a', about.agent().map(|id| id.as_str())),
        (b'p', about.project()),
        (b'b', operation.binding_key.as_ref().map(|key| key.as_str())),
        (b'd', binding.as_deref()),
        (b'v', operation.provider_key.as_ref().map(|key| key.as_str())),
        (b's', operation.source.as_ref().map(|source| source.kind.as_str())),
        (b'e', scope.session_key.as_deref()),
        (b'h', operation.hook.as_ref().map(|hook| hook.hook_kind.as_str())),
        (b'k', Some(operation.kind.as_str())),
        (b'o', Some(operation.outcome.as_str())),
        (b't', operation.keeps_text().then_some("")),
    ];
    let runs = about.runs().map(|id| (b'r', Some(id)));
    let issues = about.issues().map(|id| (b'i', Some(id)));
    let values: Vec<_> = runs.chain(issues).chain(values).collect();
    keys(&operation.company_id, &values)
}

/// The facets that a filter asks for, in the same order.
pub(super) fn facets_wanted(company: &CompanyId, filter: &OperationFilter) -> Vec<Vec<u8>> {
    // Beside a record it is the record's provider, and not the one that was called.
    let provider = filter.provider_key.as_ref().filter(|_| filter.provider_record_id.is_none());
    let binding = filter.binding_id.map(|id| id.to_string());
    let values = [
        (b'r', filter.run_id.as_deref()),
        (b'i', filter.issue_id.as_deref()),
        (b'a', filter.agent_id.as_deref()),
        (b'p', filter.project_id.as_deref()),
        (b'b', filter.binding_key.as_ref().map(|key| key.as_str())),
        (b'd', binding.as_deref()),
        (b'v', provider.map(|key| key.as_str())),
        (b's', filter.source_kind.map(|kind| kind.as_str())),
        (b'e', filter.session_key.as_deref()),
        (b'h', filter.hook_kind.as_ref().map(|kind| kind.as_str())),
        (b'k', filter.kind.map(|kind| kind.as_str())),
        (b'o', filter.outcome.map(|outcome| outcome.as_str())),
        (b't', filter.keeps_text.then_some("")),
    ];
    keys(company, &values)
}

fn keys(company: &CompanyId, values: &[(u8, Option<&str>)]) -> Vec<Vec<u8>> {
    values.iter().filter_map(|(name, value)| Some(facet(company, *name, (*value)?))).collect()
}

/// Whether a key belongs to a company.
pub(super) fn is_of(key: &[u8], company: &CompanyId) -> bool {
    key.strip_prefix(company.as_str().as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}
