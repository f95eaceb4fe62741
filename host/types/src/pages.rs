//! Going through a list that answers page by page.

/// The pages of a list, from the first to the last.
///
/// ```
/// # use memhost_types::Pages;
/// # fn list(cursor: Option<String>) -> (Vec<u8>, Option<String>) {
/// #     (vec![1], cursor.is_none().then(|| "2".to_owned()))
/// # }
/// let (mut pages, mut all) = (Pages::default(), Vec::new());
/// while let Some(cursor) = pages.next() {
///     let (items, next) = list(cursor);
///     all.extend(items);
///     pages.go_on(next);
/// }
/// assert_eq!(all.len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Pages {
    next: Next,
}

#[derive(Debug, Clone, Default)]
enum Next {
    #[default]
    First,
    At(String),
    End,
}

impl Pages {
    /// The cursor of the next page: none for the first one, and nothing at all after the last one.
    #[allow(clippy::should_implement_trait, reason = "the caller says where the list goes on")]
    pub fn next(&mut self) -> Option<Option<String>> {
        match std::mem::replace(&mut self.next, Next::End) {
            Next::First => Some(None),
            Next::At(cursor) => Some(Some(cursor)),
            Next::End => None,
        }
    }

    /// Continues at the cursor that a page came with; none ends the list.
    pub fn go_on(&mut self, cursor: Option<String>) {
        self.next = cursor.map_or(Next::End, Next::At);
    }
}
