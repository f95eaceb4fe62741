//! For whom a record is.

use super::named::named;

named!(
    /// The readers of a record.
    #[derive(Default)]
    Visibility, "visibility" {
        /// Everybody who reads in the company.
        #[default]
        Company = "company",
        /// The agent of the scope that it was written in.
        Agent = "agent",
        /// The person of the scope that it was written in: its `subjectId`.
        Person = "person",
    }
);

impl Visibility {
    /// Whether everybody in the company may read it.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub fn is_company(&self) -> bool {
        *self == Self::Company
    }
}
