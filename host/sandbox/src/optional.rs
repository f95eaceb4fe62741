//! The calls of the optional interfaces. Each file has one interface: its answers, its calls and
//! their checks.

/// The table of the optional interfaces: for each its value of
/// [`OptionalInterface`](crate::OptionalInterface), its module here and in the generated contract,
/// its name in `wit/`, the world that exports it, and what its module exports.
macro_rules! table {
    ($with:ident) => {
        $with! {
            Correction, correction, "correction", "correction-provider", { Correction };
            Profile, profile, "profile", "profile-provider", { ProfileAnswer };
            Extraction, extraction, "extraction", "extraction-provider", { JobAnswer };
            Explain, explain, "explain", "explain-provider", { ExplainAnswer };
            Browse, browse, "browse", "browse-provider", { BrowseAnswer };
            Review, review, "review", "review-provider", {};
            Transfer, transfer, "transfer", "transfer-provider", { ChunkAnswer, ImportAnswer };
            Migration, migration, "migration", "migration-provider", {};
            Health, health, "health", "health-provider", {};
            Erasure, erasure, "erasure", "erasure-provider", { ErasureAnswer };
        }
    };
}

pub(crate) use table;

macro_rules! modules {
    ($($variant:ident, $module:ident, $name:literal, $world:literal, { $($answer:ident),* };)+) => {
        $(mod $module; $(pub use $module::$answer;)*)+
    };
}

table!(modules);
