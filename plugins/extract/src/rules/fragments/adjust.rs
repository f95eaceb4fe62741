//! Lists of words in the patterns of circumstances.

/// Each with its name in patterns.
pub(super) const FRAGMENTS: &[(&str, &str)] = &[
    (
        "{parts_of_answer}",
        concat!(
            r"(?:one|answer|reply|response|email|message|paragraph|sentence|function|file|text|article|",
            r"question|page|section|code|line|document|part)",
        ),
    ),
    (
        "{parts_of_text}",
        concat!(
            r"(?:one|sentence|paragraph|line|file|question|part|section|answer|example|word|step|page|table|",
            r"item|message|column|row|chapter)",
        ),
    ),
    (
        "{request_verbs}",
        concat!(
            r"(?:fix|add|write|delete|remove|replace|rename|convert|compare|find|choose|pick a|fill|read|",
            r"check|close|open|cancel the|restart|show|try|move|copy|merge|split|debug|explain|create|install|",
            r"test|run|print|format|sort|translate|undo|repeat|draw|plot|count|improve|proofread|rewrite|",
            r"extract|describe|define|generate|calculate|compute|solve|insert|select|press|click|scroll|turn|",
            r"refresh|load|save|summari[sz]e|search|list|name|make|put|change|reformat)",
        ),
    ),
];
