//! Sends spans to the collector.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use flowstone_engine::ports::FinishedSpan;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Certificate, Client, StatusCode};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::otlp;
use super::settings::{Protocol, Settings};

/// The wait before the second attempt. It doubles with each.
const BACKOFF: Duration = Duration::from_millis(500);
/// As much of a collector's words is shown.
const SHOWN: usize = 200;

/// Why a collector did not take spans.
#[derive(Debug, Clone)]
pub enum SendError {
    NoEndpoint,
    /// The collector was not reached.
    Unreachable(String),
    /// It refused them.
    Refused {
        status: u16,
        message: String,
    },
    /// It left some out.
    Partial {
        rejected: i64,
        message: String,
    },
}

impl std::fmt::Display for SendError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SendError::NoEndpoint => out.write_str("no collector is configured"),
            SendError::Unreachable(cause) => {
                write!(out, "the collector cannot be reached: {cause}")
            }
            SendError::Refused { status, message } => {
                write!(out, "the collector answered with status {status}")?;
                match message.is_empty() {
                    true => Ok(()),
                    false => write!(out, ": {message}"),
                }
            }
            SendError::Partial { rejected, message } => {
                write!(out, "the collector rejected {rejected} spans: {message}")
            }
        }
    }
}

/// A connection to the collector, with a runtime of its own.
pub(super) struct Sender {
    settings: Arc<Settings>,
    client: Client,
    runtime: Runtime,
}

impl Sender {
    pub(super) fn new(settings: Arc<Settings>) -> Result<Sender, SendError> {
        let unreachable = |error: String| SendError::Unreachable(error);
        // Another part of the program may have chosen one already.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none());
        let host = settings.endpoint.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            builder = builder.no_proxy();
        }
        if let Some(file) = &settings.certificate {
            let pem = fs::read(file)
                .map_err(|error| unreachable(format!("{}: {error}", file.display())))?;
            let all = Certificate::from_pem_bundle(&pem)
                .map_err(|error| unreachable(format!("{}: {error}", file.display())))?;
            for certificate in all {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let client = builder
            .build()
            .map_err(|error| unreachable(root_cause(&error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unreachable(error.to_string()))?;
        Ok(Sender {
            settings,
            client,
            runtime,
        })
    }

    /// Sends a batch, again where that may help, within the time for it.
    pub(super) fn send(&mut self, spans: &[FinishedSpan]) -> Result<(), SendError> {
        let Settings {
            protocol,
            gzip,
            timeout,
            ..
        } = *self.settings;
        let body = match protocol {
            Protocol::Protobuf => otlp::protobuf(spans, &self.settings.resource),
            Protocol::Json => otlp::json(spans, &self.settings.resource).into_bytes(),
        };
        let body = match gzip {
            true => zipped(&body),
            false => body,
        };
        self.runtime.block_on(async {
            let end = Instant::now() + timeout;
            let mut wait = BACKOFF;
            loop {
                let error = match tokio::time::timeout_at(end, self.attempt(&body)).await {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) => error,
                    Err(_) => SendError::Unreachable("it did not answer in time".to_owned()),
                };
                if !error.may_pass() || Instant::now() + wait >= end {
                    return Err(error);
                }
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        })
    }

    async fn attempt(&self, body: &[u8]) -> Result<(), SendError> {
        let unreachable = |error: reqwest::Error| SendError::Unreachable(root_cause(&error));
        let settings = &self.settings;
        let mut request = self
            .client
            .post(settings.endpoint.clone())
            .headers(settings.headers.clone())
            .header(
                CONTENT_TYPE,
                match settings.protocol {
                    Protocol::Protobuf => "application/x-protobuf",
                    Protocol::Json => "application/json",
                },
            );
        if settings.gzip {
            request = request.header(CONTENT_ENCODING, "gzip");
        }
        let response = request.body(body.to_vec()).send().await;
        let response = response.map_err(unreachable)?;
        let status = response.status();
        let answer = response.bytes().await.map_err(unreachable)?;
        if status.is_success() {
            return match otlp::rejected(&answer, settings.protocol) {
                Some((rejected, message)) => Err(SendError::Partial { rejected, message }),
                None => Ok(()),
            };
        }
        let text = String::from_utf8_lossy(&answer);
        let message: String = match settings.protocol {
            Protocol::Json => text.chars().take(SHOWN).collect(),
            Protocol::Protobuf => String::new(),
        };
        Err(SendError::Refused {
            status: status.as_u16(),
            message,
        })
    }
}

impl SendError {
    /// Tells whether a further attempt may succeed.
    fn may_pass(&self) -> bool {
        match self {
            SendError::Unreachable(_) => true,
            SendError::Refused { status, .. } => matches!(
                StatusCode::from_u16(*status),
                Ok(StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT)
            ),
            SendError::NoEndpoint | SendError::Partial { .. } => false,
        }
    }
}

/// Sends spans now.
pub(super) fn all(settings: &Arc<Settings>, spans: &[FinishedSpan]) -> Result<(), SendError> {
    let mut sender = Sender::new(settings.clone())?;
    let mut batches = spans.chunks(settings.batch);
    batches.try_for_each(|batch| sender.send(batch))
}

fn zipped(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // A vector takes everything.
    let written = encoder.write_all(body);
    written
        .and_then(|()| encoder.finish())
        .expect("a vector takes everything")
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
