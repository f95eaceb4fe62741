//! The vault's key: given in the environment, or kept in a file that only the host's user may use.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::secrets::vault::VaultError;

const KEY: usize = 32;
/// The most of a key file that is read, in bytes.
const MAX_KEY_TEXT: u64 = 1024;
/// With or without the `=` at the end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The key in `env_value` if there is one, else in the file at `path`, which is made with a random
/// key and mode 0600 where it is missing. Either is 64 hex digits, or the base64 of 32 bytes. An
/// empty `env_value` is an error, not a reason to use the file.
///
/// # Errors
/// Where the text is not a key of 32 bytes, the group or others may use the file, or it cannot be
/// read or made.
pub fn key_from_env_or_file(env_value: Option<&str>, path: &Path) -> Result<[u8; KEY], VaultError> {
    if let Some(text) = env_value {
        return parse(text)
            .ok_or_else(|| VaultError::KeyText { place: "the environment".to_owned() });
    }
    match fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(path)?,
        _ => {}
    }
    read(path)
}

fn read(path: &Path) -> Result<[u8; KEY], VaultError> {
    let failed = |source| io("reading", path, source);
    let file = fs::File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(VaultError::Exposed { path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    file.take(MAX_KEY_TEXT).read_to_end(&mut bytes).map_err(failed)?;
    let key = std::str::from_utf8(&bytes).ok().and_then(parse);
    key.ok_or_else(|| VaultError::KeyText { place: path.display().to_string() })
}

/// Makes the file completely or not at all, and never replaces another: with a lost key all secrets
/// are lost.
fn make(path: &Path) -> Result<(), VaultError> {
    let mut key = [0; KEY];
    getrandom::fill(&mut key).map_err(VaultError::Random)?;
    let text: String =
        key.iter().map(|byte| format!("{byte:02x}")).chain(["\n".to_owned()]).collect();
    let made = memhost_files::durable::write_new(path, text.as_bytes(), 0o600);
    match made {
        // Another process made it first; its key is used.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|source| io("making", path, source)),
    }
}

fn parse(text: &str) -> Option<[u8; KEY]> {
    let text = text.trim();
    if text.len() != 2 * KEY {
        return BASE64.decode(text).ok()?.try_into().ok();
    }
    let mut key = [0; KEY];
    for (byte, pair) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        for &digit in pair {
            let digit = char::from(digit).to_digit(16)?;
            *byte = *byte << 4 | u8::try_from(digit).ok()?;
        }
    }
    Some(key)
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> VaultError {
    VaultError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
    const B64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn the_environment_wins_and_is_never_quoted() {
        let missing = Path::new("/nowhere/vault.key");
        let expected: [u8; 32] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        for text in [HEX, B64, &B64[..43], &format!(" {HEX}\n")] {
            assert_eq!(key_from_env_or_file(Some(text), missing).unwrap(), expected);
        }
        for text in
            ["", "hunter2", &HEX[..62], &format!("{HEX}00"), &B64[..40], &HEX.replace("00", "+0")]
        {
            let error = key_from_env_or_file(Some(text), missing).unwrap_err();
            assert!(matches!(&error, VaultError::KeyText { place } if place == "the environment"));
            assert!(text.is_empty() || !format!("{error} {error:?}").contains(text));
        }
    }

    #[test]
    fn a_missing_key_file_is_made_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vault.key");
        let key = key_from_env_or_file(None, &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(key_from_env_or_file(None, &path).unwrap(), key);
        make(&path).unwrap();
        assert_eq!(read(&path).unwrap(), key);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let other = key_from_env_or_file(None, &directory.path().join("other.key")).unwrap();
        assert_ne!(key, other);
        let nowhere = key_from_env_or_file(None, &directory.path().join("none/vault.key"));
        assert!(matches!(nowhere, Err(VaultError::Io { action: "making", .. })));
    }

    #[test]
    fn a_key_file_that_others_may_use_or_that_is_no_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("vault.key");
        fs::write(&path, HEX).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = key_from_env_or_file(None, &path).unwrap_err();
            assert!(matches!(error, VaultError::Exposed { mode: found, .. } if found == mode));
            assert!(error.to_string().contains(&format!("chmod 600 '{}'", path.display())));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for bytes in [&b""[..], &[7; 32], &[0xff; 64], &[b'a'; 63], &[b'a'; 5000]] {
            fs::write(&path, bytes).unwrap();
            let error = key_from_env_or_file(None, &path).unwrap_err();
            let shown = path.display().to_string();
            assert!(matches!(&error, VaultError::KeyText { place } if *place == shown));
        }
    }
}
