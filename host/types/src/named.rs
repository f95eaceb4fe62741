//! Enumerations whose values have one name everywhere: in JSON, on the command line, in indexes and
//! in messages.

macro_rules! named {
    (
        $(#[$doc:meta])* $name:ident, $json:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize,
            serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The name in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
        impl std::str::FromStr for $name {
            type Err = $crate::IdError;
            fn from_str(text: &str) -> Result<Self, $crate::IdError> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    let all: Vec<_> = Self::ALL.iter().map(|value| value.as_str()).collect();
                    let near = $crate::nearest(text, all.iter().copied());
                    let near =
                        near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    $crate::IdError {
                        what: $json, problem: format!("is none of {}{near}", all.join(", "))
                    }
                })
            }
        }
    };
}

pub(super) use named;
