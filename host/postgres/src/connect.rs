//! Connections: the address, TLS, the pool for reading, and what a database must be.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::ask::{self, Way};
use crate::error::{OpenError, is_other_session, said};
use crate::lease::HostLease;

mod migrations {
    refinery::embed_migrations!("migrations");
}

/// The oldest server, as it numbers itself.
const OLDEST: u32 = 14_00_00;
/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection may give no sign of life.
const SILENT_FOR: Duration = Duration::from_secs(10);
/// When the other end of a connection that is silent is asked for one.
const ASKED_AFTER: Duration = Duration::from_secs(5);
/// How often the schema is brought up to date where that fails, and the pause in between.
const MIGRATION_TRIES: usize = 8;
const MIGRATED_BY_ANOTHER: Duration = Duration::from_millis(250);
/// How long the answer to one short question may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// The parameter of an address that names a file with certificates. `tokio-postgres` does not know
/// it, libpq does.
const ROOTS: &str = "sslrootcert";
/// The parameter that says whether statements are prepared.
const PREPARED: &str = "prepared";

/// Where the database is, and how its certificate is checked.
#[derive(Clone)]
pub(crate) struct Address {
    /// What is said of all servers.
    first: Config,
    /// Each server: the primary and its standbys.
    servers: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    pub(crate) way: Way,
    /// The tasks of connections live here, whoever asks for one.
    tasks: Handle,
}

impl Address {
    /// Reads `postgres://USER:PASSWORD@HOST/DATABASE?sslmode=…&sslrootcert=FILE&prepared=false`.
    /// Without TLS only a socket, or what says `sslmode=disable`; otherwise the server's
    /// certificate is verified, against the public authorities or those of the file. Where there
    /// are several hosts, the one that takes writes is used.
    pub(crate) fn parse(text: &str) -> Result<Self, OpenError> {
        let (text, roots) = without_parameter(text, ROOTS);
        let (text, prepared) = without_parameter(&text, PREPARED);
        let way = match prepared.as_deref() {
            None | Some("true") => Way::Prepared,
            Some("false") => Way::Unnamed,
            Some(other) => return Err(OpenError::Prepared(other.to_owned())),
        };
        let wrong = |error: tokio_postgres::Error| OpenError::Address(said(&error));
        let first: Config = text.parse().map_err(wrong)?;
        let is_local = first.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        let needs_tls = !is_local && first.get_ssl_mode() != SslMode::Disable;
        let mut servers = Vec::new();
        for text in each_host(&text) {
            let mut server: Config = text.parse().map_err(wrong)?;
            server
                .connect_timeout(CONNECT_WITHIN)
                .tcp_user_timeout(SILENT_FOR)
                .keepalives_idle(ASKED_AFTER)
                .keepalives_interval(ASKED_AFTER)
                .application_name("memhost");
            if first.get_hosts().len() > 1 {
                server.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
            if needs_tls {
                server.ssl_mode(SslMode::Require);
            }
            servers.push(server);
        }
        let tls = needs_tls.then(|| tls(roots.as_deref())).transpose()?;
        Ok(Self { first, servers, tls, way, tasks: Handle::current() })
    }

    /// The host and the database, for messages.
    pub(crate) fn shown(&self) -> String {
        let hosts: Vec<_> = self
            .first
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            })
            .collect();
        format!("{} at {}", self.first.get_dbname().unwrap_or("postgres"), hosts.join(","))
    }

    /// A connection of its own, and the task that drives it until its client is dropped.
    pub(crate) async fn connect(&self) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        // All servers are asked at a time: one that is gone may say nothing for long.
        let mut asked = JoinSet::<Result<_, tokio_postgres::Error>>::new();
        for server in &self.servers {
            let (config, tls, tasks) = (server.clone(), self.tls.clone(), self.tasks.clone());
            let connecting = async move {
                match tls {
                    Some(tls) => {
                        let (client, connection) = config.connect(tls).await?;
                        Ok((client, tasks.spawn(drive(connection))))
                    }
                    None => {
                        let (client, connection) = config.connect(NoTls).await?;
                        Ok((client, tasks.spawn(drive(connection))))
                    }
                }
            };
            // A server that has accepted a connection may say nothing on it.
            let within = async {
                let connected = timeout(CONNECT_WITHIN, connecting).await;
                connected.unwrap_or_else(|_| Err(tokio_postgres::Error::__private_api_timeout()))
            };
            asked.spawn_on(within, &self.tasks);
        }
        let mut refused = None;
        while let Some(answered) = asked.join_next().await {
            match answered {
                Ok(Ok(connection)) => return Ok(connection),
                // What a server says of itself tells more than that it takes no writes.
                Ok(Err(error)) => match &refused {
                    Some(_) if error.as_db_error().is_none() => {}
                    _ => refused = Some(error),
                },
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            }
        }
        match refused {
            Some(error) => Err(error),
            // The runtime ends, and whoever asks with it.
            None => std::future::pending().await,
        }
    }

    /// Connections for reading, at most so many. One that was made on another timeline is not used
    /// again: its server may be silent, or not know what was written since.
    pub(crate) fn pool(&self, most: usize, lease: Arc<HostLease>) -> Result<Pool, OpenError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.first.clone(), Connecting(self.clone()), config);
        Pool::builder(manager)
            .max_size(most)
            .pre_recycle(Hook::sync_fn(move |_, metrics| match lease.timeline_changed() {
                Some(changed) if metrics.created < changed => Err(HookError::message("it is old")),
                _ => Ok(()),
            }))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| OpenError::Address(error.to_string()))
    }
}

struct Connecting(Address);

impl Connect for Connecting {
    fn connect(
        &self,
        _config: &Config,
    ) -> std::pin::Pin<
        Box<
            dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>>
                + Send
                + '_,
        >,
    > {
        Box::pin(self.0.connect())
    }
}

/// Whoever uses the connection is told where it breaks.
async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    let _ = connection.await;
}

/// An address for each host that an address names: `postgres://USER@A,B/DATABASE`.
fn each_host(text: &str) -> Vec<String> {
    let alone = || vec![text.to_owned()];
    let Some((scheme, rest)) = text.split_once("://") else { return alone() };
    let (place, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, hosts) = place.rsplit_once('@').map_or(("", place), |(user, hosts)| (user, hosts));
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{rest}")).collect()
}

/// An address without one of its parameters, and that parameter's value.
fn without_parameter(text: &str, name: &str) -> (String, Option<String>) {
    let Some((address, query)) = text.split_once('?') else { return (text.to_owned(), None) };
    let (own, rest): (Vec<_>, Vec<_>) =
        query.split('&').partition(|part| part.split('=').next() == Some(name));
    let value = own.first().map(|part| part.split_once('=').map_or("", |(_, value)| value));
    let value = value.map(str::to_owned);
    match rest.is_empty() {
        true => (address.to_owned(), value),
        false => (format!("{address}?{}", rest.join("&")), value),
    }
}

fn tls(roots: Option<&str>) -> Result<MakeRustlsConnect, OpenError> {
    let mut store = RootCertStore::empty();
    match roots {
        None => store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let wrong =
                |message: String| OpenError::Certificates { path: path.to_owned(), message };
            let all =
                CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            for certificate in all {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                store.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if store.is_empty() {
                return Err(wrong("it has no certificate".to_owned()));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OpenError::Address(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Refuses a database that could lose or change what is written, and brings its schema up to date.
pub(crate) async fn prepare(address: &Address) -> Result<(), OpenError> {
    let database = address.shown();
    let unreachable = |error: tokio_postgres::Error| {
        let (database, message) = (database.clone(), said(&error));
        // A wrong password, or no such database: waiting does not help.
        let class = error.code().and_then(|code| code.code().get(..2));
        match class {
            Some("28" | "3D") => OpenError::Refused { database, message },
            _ => OpenError::Unreachable { database, message },
        }
    };
    let (mut client, _) = address.connect().await.map_err(unreachable)?;
    let sql = "SELECT current_setting('server_version_num')::int, \
               current_setting('server_encoding'), pg_is_in_recovery(), current_setting('fsync')";
    let row = ask::the_row(&client, sql, &[]).await.map_err(unreachable)?;
    let (version, encoding, standby, fsync): (i32, String, bool, String) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    let unfit = |why: String| OpenError::Unfit { database: database.clone(), why };
    if u32::try_from(version).unwrap_or(0) < OLDEST {
        let (found, oldest) = (version / 10_000, OLDEST / 10_000);
        return Err(unfit(format!("it is PostgreSQL {found}; upgrade it to {oldest} or later")));
    }
    if encoding != "UTF8" {
        return Err(unfit(format!(
            "its encoding is {encoding}; make a database with the encoding UTF8"
        )));
    }
    if standby {
        return Err(unfit("it is a standby, which only reads; give the primary".to_owned()));
    }
    if fsync == "off" {
        return Err(unfit(
            "`fsync` is off, so a crash loses what was acknowledged; set it on".into(),
        ));
    }
    if address.way == Way::Prepared
        && !keeps_statements(address, &client).await.map_err(unreachable)?
    {
        return Err(OpenError::Pooled { database: database.clone() });
    }
    let mut tries = 0;
    loop {
        tries += 1;
        // A host of the next version may have been here: what it adds, this one does not need.
        let newest = newest_of(&client).await.map_err(unreachable)?;
        let known = known();
        if newest > known + 1 {
            return Err(unfit(format!(
                "its schema has the version {newest}, and this host knows {known}; upgrade this \
                 host"
            )));
        }
        if newest > known {
            return Ok(());
        }
        match migrations::migrations::runner().run_async(&mut client).await {
            Ok(_) => return Ok(()),
            // Another host may do the same at this moment. What it has done is not done again.
            Err(_) if tries < MIGRATION_TRIES => tokio::time::sleep(MIGRATED_BY_ANOTHER).await,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let message = format!("{error}: {}", source.unwrap_or_default());
                return Err(OpenError::Schema { database: database.clone(), message });
            }
        }
    }
}

/// Whether what a connection has prepared is there in its later transactions. Behind a pooler that
/// gives each of them any session of the server it is not: here another connection takes the
/// session in between.
async fn keeps_statements(
    address: &Address,
    client: &Client,
) -> Result<bool, tokio_postgres::Error> {
    let asking = async {
        let statement = client.prepare("SELECT 1").await?;
        let (mut other, _) = address.connect().await?;
        let _taken = other.transaction().await?;
        client.query(&statement, &[]).await
    };
    match timeout(ANSWERED_WITHIN, asking).await {
        Ok(Err(error)) if is_other_session(&error) => Ok(false),
        Ok(Err(error)) => Err(error),
        // A pooler with one session makes it wait, and a slow server says nothing about it.
        Ok(Ok(_)) | Err(_) => Ok(true),
    }
}

/// The newest version of the schema that this host knows.
fn known() -> i32 {
    let all = migrations::migrations::runner();
    let versions = all.get_migrations().iter().map(refinery::Migration::version);
    versions.max().unwrap_or(0)
}

/// The newest version that some host has made of the schema; 0: none.
async fn newest_of(client: &Client) -> Result<i32, tokio_postgres::Error> {
    let table = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    if !ask::the_row(client, table, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let newest = "SELECT coalesce(max(version), 0)::int FROM refinery_schema_history";
    Ok(ask::the_row(client, newest, &[]).await?.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_taken_out_of_an_address() {
        let taken = |text| without_parameter(text, ROOTS);
        assert_eq!(taken("postgres://a/b"), ("postgres://a/b".to_owned(), None));
        assert_eq!(
            taken("postgres://a/b?sslrootcert=/ca.pem&sslmode=require"),
            ("postgres://a/b?sslmode=require".to_owned(), Some("/ca.pem".to_owned()))
        );
        assert_eq!(
            taken("postgres://a/b?sslrootcert=x"),
            ("postgres://a/b".to_owned(), Some("x".to_owned()))
        );
        assert_eq!(taken("postgres://a/b?sslrootcert").1.as_deref(), Some(""));
    }

    #[tokio::test]
    async fn each_host_of_an_address_is_a_server_that_must_take_writes() {
        assert_eq!(
            each_host("postgres://u:a%2Cb@one:1,two:2/m?x=y,z"),
            ["postgres://u:a%2Cb@one:1/m?x=y,z", "postgres://u:a%2Cb@two:2/m?x=y,z"]
        );
        assert_eq!(each_host("postgres://one,two"), ["postgres://one", "postgres://two"]);
        assert_eq!(each_host("host=one"), ["host=one"]);
        let several = Address::parse("postgres://u@one:1,two/m?sslmode=disable").unwrap();
        let ports: Vec<_> = several.servers.iter().map(Config::get_ports).collect();
        assert_eq!(ports, [[1], [5432]]);
        let wanted = |one: &Config| one.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
        assert!(several.servers.iter().all(wanted));
        assert_eq!(several.shown(), "m at one,two");
        let one = Address::parse("postgres://u@one/m?sslmode=disable").unwrap();
        assert!(one.servers.len() == 1 && !wanted(&one.servers[0]));
    }

    #[tokio::test]
    async fn tls_is_left_out_only_where_nobody_listens_or_where_it_is_said() {
        let has_tls = |text: &str| Address::parse(text).unwrap().tls.is_some();
        assert!(
            has_tls("postgres://u@db.example/m")
                && has_tls("postgres://u@db.example/m?sslmode=prefer")
        );
        assert!(!has_tls("postgres://u@db.example/m?sslmode=disable"));
        assert!(!has_tls("postgres://u@%2Frun%2Fpostgresql/m"));
    }

    #[tokio::test]
    async fn statements_are_prepared_unless_the_address_says_otherwise() {
        let way = |text: &str| Address::parse(text).map(|address| address.way);
        let socket = "postgres://u@%2Frun%2Fpostgresql/m";
        assert_eq!(way(socket).unwrap(), Way::Prepared);
        assert_eq!(way(&format!("{socket}?prepared=true")).unwrap(), Way::Prepared);
        let both = format!("{socket}?sslmode=disable&prepared=false&connect_timeout=3");
        assert_eq!(way(&both).unwrap(), Way::Unnamed);
        for wrong in ["prepared=no", "prepared=", "prepared"] {
            let error = way(&format!("{socket}?{wrong}")).unwrap_err().to_string();
            assert!(error.contains("`prepared`") && error.contains("prepared=false"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_message_about_an_address_has_no_password() {
        let error = Address::parse("postgres://u:secret@db.example:port/m").err().unwrap();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(
            Address::parse("postgres://u:secret@db.example/m").unwrap().shown(),
            "m at db.example"
        );
    }
}
