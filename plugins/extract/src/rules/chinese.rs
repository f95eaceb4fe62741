//! The rules for text in Chinese. Patterns see lower case and half-width punctuation.

mod person;
mod remarks;
mod work;

use crate::Rule;
use crate::kind::Kind;
use person::{CONSTRAINT, GOAL, PREFERENCE, PROFILE};
use remarks::{HYPOTHESIS, KEYWORD_SET, NOTE, TODO};
use work::{DECISION, FACT, PROJECT};

of_every_kind!();
