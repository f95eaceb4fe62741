//! The eleven kinds of the taxonomy, and what follows from a kind alone.

use serde::{Deserialize, Serialize};

/// What a memory is. The names are the document's, in three groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Who the user is: name, role, affiliation, background.
    Profile,
    /// How the user likes things to be: style, format, interaction.
    Preference,
    /// What the user wants to reach in the long run.
    Goal,
    /// A hard rule that must be followed.
    Constraint,
    /// Background of a project.
    Project,
    /// Something specific that was said, which ages.
    Fact,
    /// What was decided.
    Decision,
    /// A tentative assumption.
    Hypothesis,
    /// Something to be done. It expires.
    Todo,
    /// Words that name a field or focus.
    KeywordSet,
    /// An annotation or observation in free form.
    Note,
}

/// The three groups of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Stable, across sessions.
    User,
    /// From sessions, ageing.
    Episodic,
    /// Of a project or track.
    Workspace,
}

impl Kind {
    /// All kinds, in the document's order.
    pub const ALL: [Self; 11] = [
        Self::Profile,
        Self::Preference,
        Self::Goal,
        Self::Constraint,
        Self::Project,
        Self::Fact,
        Self::Decision,
        Self::Hypothesis,
        Self::Todo,
        Self::KeywordSet,
        Self::Note,
    ];

    /// The name in metadata, configuration and filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Preference => "preference",
            Self::Goal => "goal",
            Self::Constraint => "constraint",
            Self::Project => "project",
            Self::Fact => "fact",
            Self::Decision => "decision",
            Self::Hypothesis => "hypothesis",
            Self::Todo => "todo",
            Self::KeywordSet => "keyword_set",
            Self::Note => "note",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The names of all kinds, for a message.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The group.
    pub const fn group(self) -> Group {
        match self {
            Self::Profile | Self::Preference | Self::Goal | Self::Constraint | Self::Project => {
                Group::User
            }
            Self::Fact | Self::Decision | Self::Hypothesis | Self::Todo => Group::Episodic,
            Self::KeywordSet | Self::Note => Group::Workspace,
        }
    }

    /// The confidence from which an item is approved without review, from the document's table, 0
    /// to 1.
    pub const fn threshold(self) -> f64 {
        match self {
            Self::Profile => 0.85,
            Self::Preference => 0.72,
            Self::Goal => 0.68,
            Self::Constraint => 0.62,
            Self::Project | Self::Decision => 0.70,
            Self::Fact => 0.65,
            Self::Hypothesis => 0.50,
            Self::Todo => 0.58,
            Self::KeywordSet => 0.75,
            Self::Note => 0.60,
        }
    }

    /// Whether the document calls its persistence project-scoped: an item of one project is then
    /// not shown in another.
    pub const fn is_project_scoped(self) -> bool {
        matches!(self, Self::Project | Self::Decision | Self::KeywordSet | Self::Note)
    }

    /// The weight in ranking, 0 to 1. A constraint must not rank below a remark that shares one
    /// word more. A hypothesis has low priority, as the document says.
    pub const fn priority(self) -> f64 {
        match self {
            Self::Constraint => 1.0,
            Self::Profile | Self::Preference => 0.95,
            Self::Goal | Self::Project | Self::Decision => 0.9,
            Self::Fact | Self::Todo => 0.85,
            Self::KeywordSet | Self::Note => 0.8,
            Self::Hypothesis => 0.4,
        }
    }

    /// The place in a preamble, smallest first: rules, then how, then who, then what for.
    pub const fn preamble_place(self) -> u8 {
        match self {
            Self::Constraint => 0,
            Self::Preference => 1,
            Self::Profile => 2,
            Self::Goal => 3,
            Self::Project => 4,
            Self::Decision => 5,
            Self::Todo => 6,
            Self::Fact => 7,
            Self::KeywordSet => 8,
            Self::Note => 9,
            Self::Hypothesis => 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_document_and_are_parsed() {
        assert_eq!(Kind::ALL.len(), 11);
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert_eq!(Kind::parse("Profile"), None);
    }

    #[test]
    fn a_hypothesis_has_the_lowest_priority() {
        let least = Kind::ALL.into_iter().min_by(|a, b| a.priority().total_cmp(&b.priority()));
        assert_eq!(least, Some(Kind::Hypothesis));
    }
}
