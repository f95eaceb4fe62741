//! Certificate authorities of one's own, for hosts whose certificate no well-known one has signed.

use std::path::Path;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// TLS that trusts the certificates of a PEM file, and no others.
///
/// # Errors
/// Says what is wrong with the file, with its name.
pub fn trusting(file: &Path) -> Result<TlsConfig, String> {
    let wrong = |why: &dyn std::fmt::Display| {
        format!("the certificate authorities in {} cannot be read: {why}", file.display())
    };
    let pem = std::fs::read(file).map_err(|error| wrong(&error))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(&error))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(wrong(
            &"it has no certificate in PEM form, which begins with `-----BEGIN CERTIFICATE-----`",
        ));
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&certificates)).build())
}
