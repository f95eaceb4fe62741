//! Pages for people, rendered by the host.

mod reference;

pub(crate) use reference::{STYLE as REFERENCE_STYLE, page as reference_page};
