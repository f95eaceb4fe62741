//! Lists of words in the rules for a workspace.

/// Each with its name in patterns.
pub(super) const FRAGMENTS: &[(&str, &str)] = &[
    (
        "{keyword_owners}",
        concat!(
            r"(?:main|current|core|key|primary|project|my|our|the|search|research|relevant|important|paper|",
            r"track|team|related|suggested|domain|index)",
        ),
    ),
    (
        "{literature}",
        concat!(
            r"(?:papers?|topics?|keywords?|news|articles|work|literature|publications|posts|terms|anything|",
            r"everything|releases|developments)",
        ),
    ),
    (
        "{note_kinds}",
        concat!(
            r"(?:very |quick |side |design |personal |general |field |lab |reviewer |meeting |random |one |",
            r"small |an |a |pro |margin )",
        ),
    ),
    (
        "{perhaps_verbs}",
        concat!(
            r"(?:use|try|add|switch|move|split|replace|look|start|include|make|cache|store|drop|merge|rename|",
            r"keep|put|run|write|ask|let us)",
        ),
    ),
    (
        "{worth_noting}",
        concat!(
            r"(?:paper|article|observation|approach|trick|resource|point|idea|detail|pattern|parallel|example|",
            r"quote|reference|technique|finding|result|alternative|blog post|talk|contrast|side effect|",
            r"coincidence)",
        ),
    ),
];
