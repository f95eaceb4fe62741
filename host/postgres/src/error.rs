//! Errors of the database, as those of the store.

use std::time::Duration;

use deadpool_postgres::PoolError;
use memhost_store::StoreError;
use tokio_postgres::error::SqlState;

/// Why a database cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OpenError {
    #[error(
        "the address of the database cannot be read: {0}; write \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=require, or sslmode=disable, and \
         percent-encode other characters than letters and digits"
    )]
    Address(String),
    #[error(
        "the certificates in {path} cannot be used: {message}; name a file of PEM certificates in \
         `sslrootcert`"
    )]
    Certificates { path: String, message: String },
    #[error(
        "the parameter `prepared` in the address of the database is `{0}`; write prepared=false \
         behind a pooler in transaction mode, and leave it out otherwise"
    )]
    Prepared(String),
    #[error(
        "the database {database} is behind a pooler in transaction mode, where prepared statements \
         are lost; add prepared=false to its address: postgres://…/DATABASE?prepared=false"
    )]
    Pooled { database: String },
    #[error(
        "the database {database} cannot be reached: {message}; check that it runs, and the address"
    )]
    Unreachable { database: String, message: String },
    #[error(
        "the server of the database {database} refuses this host: {message}; correct the user, the \
         password or the name of the database in its address"
    )]
    Refused { database: String, message: String },
    #[error("the database {database} cannot keep memory: {why}")]
    Unfit { database: String, why: String },
    #[error(
        "the schema of the database {database} cannot be brought up to date: {message}; check the \
         rights of the user in its address"
    )]
    Schema { database: String, message: String },
    #[error(
        "the {name} of this host is not that of the hosts on the database {database}; {advice}"
    )]
    Differs { database: String, name: &'static str, advice: &'static str },
    #[error(
        "another host, {other}, uses the database {database}, and the two cannot reach each other: \
         start each of them with --peer-listen and an address of its own, or stop that one"
    )]
    Alone { database: String, other: String },
    #[error(
        "the operator token of this host is not that of the host {other} on the database \
         {database}; give the same one, or stop the other hosts before you change it"
    )]
    OtherToken { database: String, other: String },
    #[error("the host {other} uses the database {database}; stop all hosts on it first")]
    InUse { database: String, other: String },
    #[error(
        "another host, {other}, on the database {database} has this data directory, or a copy of \
         it: give this one a directory of its own, which has no `host.id`"
    )]
    Twice { database: String, other: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How long a lane tries to write what it has, and how long a question may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Another host leads by now.
pub(crate) fn not_leading(action: &'static str) -> StoreError {
    let message = "another host has taken over".to_owned();
    StoreError::Unavailable { action, message }
}

/// The database said nothing within [`PATIENCE`].
pub(crate) fn no_answer(action: &'static str) -> StoreError {
    let message = format!("no answer came within {} s", PATIENCE.as_secs());
    StoreError::Unavailable { action, message }
}

/// A failed call, with what the server says of it and never with a password.
pub(crate) fn failed(action: &'static str) -> impl Fn(tokio_postgres::Error) -> StoreError {
    move |error| match passes(&error) {
        true => StoreError::Unavailable { action, message: said(&error) },
        false => StoreError::Refused { action, message: said(&error) },
    }
}

pub(crate) fn unavailable(action: &'static str) -> impl Fn(PoolError) -> StoreError {
    move |error| match error {
        PoolError::Backend(error) => failed(action)(error),
        error => StoreError::Unavailable { action, message: error.to_string() },
    }
}

/// What went wrong, with the server's own words where it has some.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    match (error.as_db_error(), source) {
        (Some(server), _) => {
            let advice = if is_other_session(error) { OTHER_SESSION } else { "" };
            format!("{} ({}){advice}", server.message(), server.code().code())
        }
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

const OTHER_SESSION: &str = "; behind a pooler in transaction mode, add prepared=false to the \
                             address of the database";

/// Whether a prepared statement is not there, or another one has its name: somebody else's session
/// was asked.
pub(crate) fn is_other_session(error: &tokio_postgres::Error) -> bool {
    let ours = [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| ours.contains(&code))
}

/// Whether the same call may succeed later: the connection broke, or the server starts, ends,
/// changes to a standby, is full or has no connection left, or somebody holds a lock (classes 08,
/// 53, 55 and 57 of its codes).
pub(crate) fn passes(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        let source = std::error::Error::source(error);
        // The connection is closed, or nothing was said in time.
        return source.is_none_or(|source| source.is::<std::io::Error>());
    };
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "53" | "55" | "57")
        || [
            &SqlState::READ_ONLY_SQL_TRANSACTION,
            &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            &SqlState::T_R_SERIALIZATION_FAILURE,
            &SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(&code)
}
