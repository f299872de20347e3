//! A connection to a server that does not speak HTTP: guarded, with TLS where it leaves the machine, and with a budget of bytes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::guard::{Guard, Refused, Zone, allowed, lookup, zone};
use crate::http::tls::Fault;
use crate::http::{sockets, tls};

/// The reason why a connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error(transparent)]
    Refused(Refused),
    #[error("{place} cannot be reached: {cause}")]
    Unreachable { place: String, cause: String },
    #[error("{place} closed the connection: {cause}")]
    Cut { place: String, cause: String },
    #[error("{place} cannot be trusted: {}", fault.message)]
    Untrusted { place: String, fault: Fault },
    #[error("the answer of {place} is larger than {limit} bytes")]
    TooLarge { place: String, limit: u64 },
    #[error("{message}")]
    Wrong { message: String, hint: &'static str },
}

impl SocketError {
    fn io(place: &str, error: &io::Error) -> SocketError {
        let cause = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ended in the middle of an answer".to_owned(),
            _ => error.to_string(),
        };
        SocketError::Cut {
            place: place.to_owned(),
            cause,
        }
    }
}

/// Where a server is, and how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub url: Url,
    pub host: String,
    pub port: u16,
    pub guard: Guard,
    /// Whether to speak TLS; `None`: unless the server is on this machine.
    pub tls: Option<bool>,
    /// A file of additional certificate authorities.
    pub ca_file: Option<PathBuf>,
    pub connect_timeout: Duration,
}

impl Address {
    /// Returns the host and port, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Anything that carries bytes both ways.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// An open connection.
pub(crate) struct Socket {
    stream: Option<BufReader<Box<dyn Duplex>>>,
    place: String,
    /// Whether the server is on this machine.
    is_local: bool,
    has_tls: bool,
    is_tls_wanted: bool,
    /// The number of bytes that may still be read.
    budget: u64,
    limit: u64,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The number of bytes that a server may send beside the values of its answer.
const OVERHEAD: u64 = 1 << 20;

impl Socket {
    /// Connects to a server. `limit` is the size of the answer's values.
    pub(crate) async fn open(address: &Address, limit: u64) -> Result<Socket, SocketError> {
        let permit = sockets::connection().await;
        let (stream, found) = connect(address).await?;
        let is_local = zone(found.ip()) == Zone::Loopback;
        Ok(Socket {
            stream: Some(BufReader::new(Box::new(stream))),
            place: address.place(),
            is_local,
            has_tls: false,
            is_tls_wanted: address.tls.unwrap_or(!is_local),
            budget: limit.saturating_mul(2).saturating_add(OVERHEAD),
            limit,
            _permit: permit,
        })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn wants_tls(&self) -> bool {
        self.is_tls_wanted && !self.has_tls
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// Tells whether nobody on the way can read what is sent.
    pub(crate) fn is_private(&self) -> bool {
        self.has_tls || self.is_local
    }

    /// Tells whether TLS may begin without a good certificate: nobody is on the way to a server on this machine.
    pub(crate) fn may_trust_anyone(&self, address: &Address) -> bool {
        self.is_local && !self.has_tls && address.tls.is_none()
    }

    /// Begins TLS, and checks the server's certificate; with a server on this machine only if the connection says so.
    pub(crate) async fn secure(&mut self, address: &Address) -> Result<(), SocketError> {
        let broken = || SocketError::Cut {
            place: address.place(),
            cause: "there is no connection".to_owned(),
        };
        let stream = self.stream.take().ok_or_else(broken)?;
        if !stream.buffer().is_empty() {
            // Someone on the way may have sent it, in the hope that it is read as if it had come by TLS.
            return Err(SocketError::Cut {
                place: address.place(),
                cause: "it sent more before TLS began".to_owned(),
            });
        }
        let stream = stream.into_inner();
        let host = address.host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| SocketError::Wrong {
            message: format!("`{}` is not a name for TLS: {error}", address.host),
            hint: "write the host of the connection as a name or an address",
        })?;
        let connector =
            TlsConnector::from(Arc::new(client(address, self.may_trust_anyone(address))?));
        let stream =
            connector
                .connect(name, stream)
                .await
                .map_err(|error| match tls::fault(&error) {
                    Some(fault) => SocketError::Untrusted {
                        place: address.place(),
                        fault,
                    },
                    None => SocketError::io(&address.place(), &error),
                })?;
        self.stream = Some(BufReader::new(Box::new(stream)));
        self.has_tls = true;
        Ok(())
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), SocketError> {
        let place = self.place.clone();
        let stream = self.stream.as_mut();
        let sent = async {
            let stream = stream.ok_or(io::ErrorKind::NotConnected)?;
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        sent.await.map_err(|error| SocketError::io(&place, &error))
    }

    /// Checks whether that many bytes may be read, before memory is taken for them.
    pub(crate) fn charge(&mut self, bytes: u64) -> Result<(), SocketError> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(SocketError::TooLarge {
                place: self.place.clone(),
                limit: self.limit,
            }),
        }
    }

    /// Reads exactly that many bytes, and adds them to `to`. The memory grows as they arrive.
    pub(crate) async fn read(&mut self, to: &mut Vec<u8>, count: usize) -> Result<(), SocketError> {
        self.charge(count as u64)?;
        let place = self.place.clone();
        let Some(stream) = self.stream.as_mut() else {
            return Err(SocketError::io(&place, &io::ErrorKind::NotConnected.into()));
        };
        let wanted = to.len() + count;
        let mut part = stream.take(count as u64);
        while to.len() < wanted {
            match part.read_buf(to).await {
                Ok(0) => {
                    return Err(SocketError::io(
                        &place,
                        &io::ErrorKind::UnexpectedEof.into(),
                    ));
                }
                Ok(_) => {}
                Err(error) => return Err(SocketError::io(&place, &error)),
            }
        }
        Ok(())
    }
}

/// Connects to the first address of the host that answers, of those that the guard allows.
async fn connect(address: &Address) -> Result<(TcpStream, SocketAddr), SocketError> {
    let unreachable = |cause: String| SocketError::Unreachable {
        place: address.place(),
        cause,
    };
    address
        .guard
        .check_url(&address.url, Zone::Loopback)
        .map_err(SocketError::Refused)?;
    let host = address.host.trim_matches(['[', ']']);
    let found = timeout(address.connect_timeout, lookup(host)).await;
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(unreachable(error.to_string())),
        Err(_) => return Err(unreachable("its name was not resolved in time".to_owned())),
    };
    let found = allowed(&address.guard, &address.host, found, Zone::Loopback)
        .map_err(SocketError::Refused)?;
    let mut cause = "its name has no address".to_owned();
    for mut one in found {
        one.set_port(address.port);
        match timeout(address.connect_timeout, TcpStream::connect(one)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).ok();
                return Ok((stream, one));
            }
            Ok(Err(error)) => cause = error.to_string(),
            Err(_) => cause = "the connection was not accepted in time".to_owned(),
        }
    }
    Err(unreachable(cause))
}

/// Accepts any certificate.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the settings of TLS: the authorities of the system, and those of the project.
fn client(address: &Address, trusts_anyone: bool) -> Result<ClientConfig, SocketError> {
    let bad = |message: String| SocketError::Wrong {
        message,
        hint: "flowstone.edn says under `:http :ca-file` which authorities are added",
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut own = Vec::new();
    if let Some(path) = &address.ca_file {
        let failed = |cause: String| {
            bad(format!(
                "the certificates in {} cannot be used: {cause}",
                path.display()
            ))
        };
        let found =
            CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
        for certificate in found {
            own.push(certificate.map_err(|error| failed(error.to_string()))?);
        }
    }
    let builder = || {
        ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(error.to_string()))
    };
    if trusts_anyone {
        let config = builder()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)));
        return Ok(config.with_no_client_auth());
    }
    let verifier =
        rustls_platform_verifier::Verifier::new_with_extra_roots(own.clone(), provider.clone());
    if let Ok(verifier) = verifier {
        let config = builder()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        return Ok(config.with_no_client_auth());
    }
    // A minimal container has no certificates of its own.
    let mut roots = rustls::RootCertStore::empty();
    let built_in = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
    roots.add_parsable_certificates(built_in.chain(own));
    Ok(builder()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
