//! Descriptions of TLS errors of a server.

use std::error::Error;
use std::io;

use rustls::{CertificateError, Error as TlsError};

/// The reason why a server's identity is not trusted, or why it does not speak TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub message: String,
    pub hint: &'static str,
}

const CLOCK: &str = "check the server's certificate and this machine's clock";
const AUTHORITY: &str = "if the authority is your own, name its certificate in flowstone.edn: {:http {:ca-file \"ca.pem\"}}";
const NAME: &str = "ask for the name that the certificate is for";
const PLAIN: &str = "if the server speaks plain HTTP, write http:// in the address";
const VERSIONS: &str = "the server must speak TLS 1.2 or 1.3";

/// Finds a TLS error among the causes of an error.
pub(crate) fn fault(error: &(dyn Error + 'static)) -> Option<Fault> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref::<TlsError>() {
            return Some(describe(tls));
        }
        // The error inside an `io::Error` is not among its causes.
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if let Some(fault) = inner.and_then(|inner| fault(inner)) {
            return Some(fault);
        }
        cause = error.source();
    }
    None
}

fn describe(error: &TlsError) -> Fault {
    let (message, hint) = match error {
        TlsError::InvalidCertificate(error) => certificate(error),
        TlsError::InvalidMessage(_) | TlsError::InappropriateMessage { .. } => {
            ("it does not speak TLS on this port".to_owned(), PLAIN)
        }
        TlsError::NoCertificatesPresented => ("it shows no certificate".to_owned(), CLOCK),
        TlsError::PeerIncompatible(_) => (
            "it speaks no version or cipher of TLS that is safe".to_owned(),
            VERSIONS,
        ),
        TlsError::AlertReceived(alert) => {
            (format!("it refused the connection ({alert:?})"), VERSIONS)
        }
        other => (other.to_string(), CLOCK),
    };
    Fault { message, hint }
}

fn certificate(error: &CertificateError) -> (String, &'static str) {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("its certificate has expired".to_owned(), CLOCK)
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("its certificate is not valid yet".to_owned(), CLOCK)
        }
        CertificateError::Revoked => ("its certificate was revoked".to_owned(), CLOCK),
        CertificateError::UnknownIssuer => (
            "its certificate is not signed by an authority that this machine trusts".to_owned(),
            AUTHORITY,
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ("its certificate is for another name".to_owned(), NAME)
        }
        other => (format!("its certificate is not good: {other}"), CLOCK),
    }
}
