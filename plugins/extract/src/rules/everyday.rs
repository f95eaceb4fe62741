//! Further rules for English: how people speak of themselves and of their work in passing, with
//! half sentences, and labels before lists and remarks.

mod aims;
mod person;
mod remarks;
mod work;

use crate::Rule;
use crate::kind::Kind;
use aims::{CONSTRAINT, GOAL};
use person::{PREFERENCE, PROFILE};
use remarks::{HYPOTHESIS, KEYWORD_SET, NOTE, TODO};
use work::{DECISION, FACT, PROJECT};

of_every_kind!();
