//! Permissions as marker types, for [`Authorized`](crate::Authorized).

use memhost_core::Act;
use memhost_types::OperationKind;

/// A permission that a handler needs.
pub trait Permission: Send + Sync {
    /// The permission in the rules of the roles.
    const ACT: Act;
}

macro_rules! permissions {
    ($($(#[$doc:meta])* $name:ident = $act:expr),+ $(,)?) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Permission for $name {
            const ACT: Act = $act;
        }
    )+};
}

permissions! {
    /// Capture.
    Capture = Act::Operate(OperationKind::Capture),
    /// List records.
    List = Act::Operate(OperationKind::List),
    /// Read one record.
    Get = Act::Operate(OperationKind::Get),
    /// Query records.
    Query = Act::Operate(OperationKind::Query),
    /// Explain how a query is answered.
    Explain = Act::Operate(OperationKind::Explain),
    /// Browse a provider's own tree.
    Browse = Act::Operate(OperationKind::Browse),
    /// Write records.
    Upsert = Act::Operate(OperationKind::RecordUpsert),
    /// Correct a record.
    Correct = Act::Operate(OperationKind::Correct),
    /// Forget records.
    Forget = Act::Operate(OperationKind::Forget),
    /// Export records.
    Export = Act::Operate(OperationKind::Export),
    /// Import records.
    Import = Act::Operate(OperationKind::Import),
    /// Deliver a hook.
    Deliver = Act::Deliver,
    /// See anything of a company.
    View = Act::View,
    /// Change anything of a company.
    Administer = Act::Administer,
    /// Decide what a provider may reach and use.
    Grant = Act::Grant,
    /// Export or import a company as a whole.
    Move = Act::Move,
    /// Erase a company.
    Erase = Act::Erase,
    /// Resolve which binding answers.
    Resolve = Act::Resolve,
    /// Send events of sessions and tools.
    Emit = Act::Emit,
    /// Read the host's health and metrics.
    Monitor = Act::Monitor,
    /// Manage the host itself.
    Host = Act::Host,
}
