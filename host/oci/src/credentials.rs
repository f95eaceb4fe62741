//! What a user has to show at a host: from the file that `docker login` writes, or from the
//! variable `DOCKER_AUTH_CONFIG` with its content. Every entry belongs to one host.

use std::path::PathBuf;

use docker_credential::{
    CredentialRetrievalError as Failure, DockerCredential, get_credential_from_reader,
};

use crate::error::OciError;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The credentials for a host. `None`: there are none.
pub(crate) fn of(host: &str) -> Result<Option<DockerCredential>, OciError> {
    let wrong = |why: String| OciError::Credentials { host: host.to_owned(), why };
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(json) = set("DOCKER_AUTH_CONFIG") {
        return in_config(json.as_encoded_bytes(), host)
            .map_err(|why| wrong(format!("DOCKER_AUTH_CONFIG: {why}")));
    }
    let docker = set("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".docker")));
    let files = [
        set("REGISTRY_AUTH_FILE").map(PathBuf::from),
        docker.map(|directory| directory.join("config.json")),
    ];
    for file in files.into_iter().flatten() {
        let size = std::fs::metadata(&file).map_or(0, |found| found.len());
        let read = match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            _ if size > MAX_FILE => Err(format!("it is larger than {MAX_FILE} bytes")),
            read => read.map_err(|error| error.to_string()),
        };
        let found = read.and_then(|json| in_config(&json, host));
        let found = found.map_err(|why| wrong(format!("{}: {why}", file.display())))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn in_config(json: &[u8], host: &str) -> Result<Option<DockerCredential>, String> {
    match get_credential_from_reader(json, host) {
        Ok(found) => Ok(Some(found)),
        Err(Failure::NoCredentialConfigured | Failure::ConfigNotFound) => Ok(None),
        // A helper that has nothing for this host.
        Err(Failure::HelperFailure { stdout, stderr, .. })
            if format!("{stdout}{stderr}").contains("credentials not found") =>
        {
            Ok(None)
        }
        Err(Failure::HelperFailure { helper, .. }) => {
            Err(format!("the helper `{helper}` has failed"))
        }
        Err(Failure::ConfigReadError) => Err("it is not the JSON of `docker login`".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_belong_to_one_host() {
        // `ada:secret`
        let json = br#"{"auths": {"one.example": {"auth": "YWRhOnNlY3JldA=="}}}"#;
        let found = in_config(json, "one.example").unwrap();
        let ada = DockerCredential::UsernamePassword("ada".to_owned(), "secret".to_owned());
        assert_eq!(found, Some(ada));
        for other in ["two.example", "one.example:5000", "a.one.example", "example"] {
            assert_eq!(in_config(json, other).unwrap(), None, "{other}");
        }
        assert!(in_config(b"{", "one.example").unwrap_err().contains("docker login"));
    }
}
