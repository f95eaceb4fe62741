//! How statements are asked. One that is asked often is prepared and kept with its connection,
//! unless the address says `prepared=false`: a pooler may run each transaction of a connection in
//! another session of the server, which does not know it. All others are unnamed and take one round
//! trip, so their types come from their values.

use std::borrow::Cow;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};
use uuid::Uuid;

/// The statements that a connection of the pool keeps prepared. Filters of operations make many.
const MOST_PREPARED: usize = 200;

/// A value of a statement.
pub(crate) trait Value: ToSql + Sync {
    fn sql_type(&self) -> Type;
}

impl<T: Typed + ToSql + Sync> Value for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

/// A Rust type whose values have one SQL type.
pub(crate) trait Typed {
    const TYPE: Type;
}

/// The same for arrays: the SQL type of several values of a Rust type.
pub(crate) trait Element {
    const ARRAY: Type;
}

macro_rules! typed {
    ($($of:ty: $one:ident, $several:ident;)+) => {$(
        impl Typed for $of {
            const TYPE: Type = Type::$one;
        }
        impl Element for $of {
            const ARRAY: Type = Type::$several;
        }
    )+};
}

typed! {
    bool: BOOL, BOOL_ARRAY;
    i16: INT2, INT2_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    Uuid: UUID, UUID_ARRAY;
    [u8]: BYTEA, BYTEA_ARRAY;
    Vec<u8>: BYTEA, BYTEA_ARRAY;
}

impl<T: Typed + ?Sized> Typed for &T {
    const TYPE: Type = T::TYPE;
}

impl<T: Element + ?Sized> Element for &T {
    const ARRAY: Type = T::ARRAY;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
}

impl<T: Element> Element for Option<T> {
    const ARRAY: Type = T::ARRAY;
}

impl<T: Element> Typed for Vec<T> {
    const TYPE: Type = T::ARRAY;
}

impl<T: Element> Typed for [T] {
    const TYPE: Type = T::ARRAY;
}

type Parameter<'a> = &'a (dyn ToSql + Sync);

fn typed<'a>(values: &[&'a dyn Value]) -> Vec<(Parameter<'a>, Type)> {
    values.iter().map(|value| (*value as Parameter<'a>, value.sql_type())).collect()
}

fn untyped<'a>(values: &[&'a dyn Value]) -> Vec<Parameter<'a>> {
    values.iter().map(|value| *value as Parameter<'a>).collect()
}

/// The rows of a statement.
pub(crate) async fn rows(
    client: &Client,
    sql: &str,
    values: &[&dyn Value],
) -> Result<Vec<Row>, Error> {
    client.query_typed(sql, &typed(values)).await
}

/// The first row, if there is one.
pub(crate) async fn row(
    client: &Client,
    sql: &str,
    values: &[&dyn Value],
) -> Result<Option<Row>, Error> {
    Ok(rows(client, sql, values).await?.into_iter().next())
}

/// The row of a statement that always has one.
pub(crate) async fn the_row(
    client: &Client,
    sql: &str,
    values: &[&dyn Value],
) -> Result<Row, Error> {
    client.query_typed_one(sql, &typed(values)).await
}

/// How many rows a statement has changed.
pub(crate) async fn changed(
    client: &Client,
    sql: &str,
    values: &[&dyn Value],
) -> Result<u64, Error> {
    client.execute_typed(sql, &typed(values)).await
}

/// How a database is asked often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Prepared,
    /// Each statement is read and planned anew.
    Unnamed,
}

impl Way {
    /// A statement that is kept with its connection.
    pub(crate) async fn keep<'a>(
        self,
        client: &Client,
        sql: impl Into<Cow<'a, str>>,
    ) -> Result<Kept<'a>, Error> {
        let sql = sql.into();
        match self {
            Self::Prepared => Ok(Kept::Prepared(client.prepare(&sql).await?)),
            Self::Unnamed => Ok(Kept::Unnamed(sql)),
        }
    }

    /// The same of a connection of a pool, which keeps those that were asked lately.
    pub(crate) async fn keep_pooled<'a>(
        self,
        client: &ClientWrapper,
        sql: &'a str,
    ) -> Result<Kept<'a>, Error> {
        if self == Self::Unnamed {
            return Ok(Kept::Unnamed(sql.into()));
        }
        if client.statement_cache.size() > MOST_PREPARED {
            client.statement_cache.clear();
        }
        Ok(Kept::Prepared(client.prepare_cached(sql).await?))
    }
}

/// A statement that can be asked again. It is sent when the answer is first polled, so statements
/// that are polled in an order are done in this order.
pub(crate) enum Kept<'a> {
    Prepared(Statement),
    Unnamed(Cow<'a, str>),
}

impl Kept<'_> {
    pub(crate) async fn rows(
        &self,
        client: &Client,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, Error> {
        match self {
            Self::Prepared(statement) => client.query(statement, &untyped(values)).await,
            Self::Unnamed(sql) => rows(client, sql, values).await,
        }
    }

    pub(crate) async fn changed(
        &self,
        client: &Client,
        values: &[&dyn Value],
    ) -> Result<u64, Error> {
        match self {
            Self::Prepared(statement) => client.execute(statement, &untyped(values)).await,
            Self::Unnamed(sql) => changed(client, sql, values).await,
        }
    }
}
