//! Permissions as marker types, for [`Authorized`](crate::Authorized).

use memhost_core::Act;
use memhost_types::OperationKind;

/// A permission that a handler needs.
pub trait Permission: Send + Sync {
    /// The permission in the rules of the roles.
    const ACT: Act;
    /// Whether the request may be the first one for a company: what it makes makes the company
    /// known.
    const MAY_BE_FIRST: bool = false;
    /// Whether it is about what everybody has, which an agent's token does not reach. `core`
    /// refuses it.
    const IS_FOR_ALL: bool = false;
    /// Whether programs ask to find out whether they may. To be refused is no event of a company.
    const IS_PROBED: bool = false;
}

/// To list the companies of the host. A command line asks it before it makes a company.
pub struct Companies;

impl Permission for Companies {
    const ACT: Act = Act::Host;
    const IS_PROBED: bool = true;
}

macro_rules! permissions {
    (
        $(
            $(#[$doc:meta])* $name:ident = $act:expr
                $(, may_be_first: $first:expr)? $(, is_for_all: $all:literal)?;
        )+
    ) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Permission for $name {
            const ACT: Act = $act;
            $(const MAY_BE_FIRST: bool = $first;)?
            $(const IS_FOR_ALL: bool = $all;)?
        }
    )+};
}

/// The permission for each kind of operation has the kind's name. A company begins with what is
/// captured for it.
macro_rules! permissions_of_kinds {
    (
        $(
            $(#[$doc:meta])* $kind:ident = $name:literal, $effect:ident, [
                $($route:tt)*
            ], $did:literal, $wanted:literal;
        )+
    ) => {
        permissions! {
            $(
                #[doc = concat!("To ", $wanted, ".")]
                $kind = Act::Operate(OperationKind::$kind),
                    may_be_first: matches!(OperationKind::$kind, OperationKind::Capture);
            )+
        }
    };
}

memhost_types::operation_kinds!(permissions_of_kinds);

permissions! {
    /// Forget what came from sources, whoever may read it.
    ForgetSources = Act::Operate(OperationKind::Forget), is_for_all: true;
    /// Deliver a hook.
    Deliver = Act::Deliver;
    /// See anything of a company.
    View = Act::View;
    /// Change anything of a company.
    Administer = Act::Administer;
    /// Make the first thing of a company, or another one.
    Establish = Act::Administer, may_be_first: true;
    /// Decide what a provider may reach and use.
    Grant = Act::Grant;
    /// Export a company as a whole.
    Move = Act::Move;
    /// Import a company as a whole.
    Bring = Act::Move, may_be_first: true;
    /// Erase a company.
    Erase = Act::Erase;
    /// Resolve which binding answers.
    Resolve = Act::Resolve;
    /// Send events of sessions and tools.
    Emit = Act::Emit;
    /// Read the host's health and metrics.
    Monitor = Act::Monitor;
    /// Manage the host itself.
    Host = Act::Host;
}
