//! The texts of a check: short and harmless, so that a provider with narrow limits accepts them.

/// Plain sentences without names, numbers or addresses, and without common content words.
pub(super) const TEXTS: [&str; 12] = [
    "The harbour lantern turns green at dusk",
    "Copper kettles are polished before the winter fair",
    "Our glacier expedition prefers woollen mittens",
    "Pumpkin soup is served whenever the orchestra rehearses",
    "A marble staircase leads to the observatory",
    "The lighthouse keeper collects antique barometers",
    "Velvet curtains stay closed during thunderstorms",
    "The bakery decided to use rye flour only",
    "Bicycles are parked behind the greenhouse",
    "The archive keeps its maps in cedar drawers",
    "Tulip bulbs are planted along the canal",
    "The ferry captain likes peppermint tea",
];

/// A text by its number, all of them different.
pub(super) fn text(n: usize) -> String {
    let text = TEXTS[n % TEXTS.len()];
    match n / TEXTS.len() {
        0 => text.to_owned(),
        round => format!("{text}, as in round {round}"),
    }
}

/// The start of a text, for messages.
pub(super) fn clip(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}
