//! Conversion of the protocol library's errors.

use std::error::Error;
use std::time::Duration;

use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::connection::MOST_BYTES;
use super::error::McpError;
use super::process::Output;
use crate::http;

/// The context of an error.
pub(super) struct Why<'a> {
    pub server: &'a str,
    pub tool: Option<&'a str>,
    pub output: &'a Output,
}

type Http = StreamableHttpError<reqwest::Error>;

/// Returns the error of a failed handshake. `ended` describes how the server's process ended.
pub(super) fn of_handshake(
    error: &ClientInitializeError,
    server: &str,
    ended: Option<String>,
    output: &Output,
) -> McpError {
    let cause = match error {
        ClientInitializeError::TransportError { error, .. } => {
            match (of_transport(error, server, output), ended) {
                (McpError::Handshake { .. }, Some(how)) => before_it_answered(&how),
                (other, _) => return other,
            }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return of_handshake(fallback, server, ended, output);
        }
        ClientInitializeError::ConnectionClosed(_) if output.is_too_large() => {
            return too_large(server);
        }
        ClientInitializeError::ConnectionClosed(_) => match ended {
            Some(how) => before_it_answered(&how),
            None => "it broke off before it answered".to_owned(),
        },
        ClientInitializeError::JsonRpcError(error) => {
            format!(
                "it refuses the handshake: {} (code {})",
                error.message, error.code.0
            )
        }
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let versions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            format!(
                "it speaks other revisions of the protocol: {}",
                versions.join(", ")
            )
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered a request that was not made".to_owned()
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to the handshake is invalid".to_owned()
        }
        other => other.to_string(),
    };
    McpError::Handshake {
        server: server.to_owned(),
        cause,
        output: output.text(),
    }
}

/// Returns the error of a request without an answer.
pub(super) fn of_service(error: ServiceError, why: &Why<'_>) -> McpError {
    let gone = || McpError::Gone {
        server: why.server.to_owned(),
        tool: why.tool.map(str::to_owned),
        output: why.output.text(),
    };
    let protocol = |cause: String| McpError::Protocol {
        server: why.server.to_owned(),
        cause,
        output: why.output.text(),
    };
    match error {
        ServiceError::McpError(error) => match why.tool {
            Some(tool) if error.code != ErrorCode::METHOD_NOT_FOUND => McpError::Rpc {
                tool: tool.to_owned(),
                code: error.code.0,
                message: error.message.into_owned(),
                data: error.data,
            },
            _ => protocol(format!("{} (code {})", error.message, error.code.0)),
        },
        ServiceError::TransportSend(error) => match of_transport(&error, why.server, why.output) {
            // The server has completed its handshake before.
            McpError::Handshake { cause, .. } => protocol(cause),
            other => other,
        },
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
            match why.output.is_too_large() {
                true => too_large(why.server),
                false => gone(),
            }
        }
        ServiceError::UnexpectedResponse => {
            protocol("its answer does not fit the request".to_owned())
        }
        other => protocol(other.to_string()),
    }
}

fn before_it_answered(how: &str) -> String {
    format!("it ended before it answered ({how})")
}

fn too_large(server: &str) -> McpError {
    McpError::TooLarge {
        server: server.to_owned(),
        limit: MOST_BYTES,
    }
}

fn of_transport(error: &DynamicTransportError, server: &str, output: &Output) -> McpError {
    let inner: &(dyn Error + 'static) = error.error.as_ref();
    let Some(error) = inner.downcast_ref::<Http>() else {
        // A pipe whose other end is closed.
        return McpError::Handshake {
            server: server.to_owned(),
            cause: "it broke off".to_owned(),
            output: output.text(),
        };
    };
    of_http(error, server)
}

fn of_http(error: &Http, server: &str) -> McpError {
    let server = server.to_owned();
    let handshake = |cause: String| McpError::Handshake {
        server: server.clone(),
        cause,
        output: String::new(),
    };
    match error {
        StreamableHttpError::Client(error) => match error.status().map(|it| it.as_u16()) {
            Some(status @ (401 | 403 | 407)) => McpError::Refused {
                server,
                status,
                cause: format!("status {status}"),
            },
            Some(status) => handshake(format!("it answers with status {status}")),
            None => McpError::Http(http::client::failed(server, error)),
        },
        StreamableHttpError::HttpStatus(error) => McpError::Status {
            server,
            status: error.status,
            after: error
                .retry_after
                .as_ref()
                .and_then(|text| text.trim().parse().ok())
                .map(Duration::from_secs),
        },
        StreamableHttpError::AuthRequired(error) => McpError::Refused {
            server,
            status: 401,
            cause: format!("it wants {}", error.www_authenticate_header),
        },
        StreamableHttpError::InsufficientScope(error) => McpError::Refused {
            server,
            status: 403,
            cause: format!("it wants {}", error.www_authenticate_header),
        },
        StreamableHttpError::ResponseBodyTooLarge { .. } => too_large(&server),
        StreamableHttpError::Sse(error) if error.to_string().contains("maximum size") => {
            too_large(&server)
        }
        StreamableHttpError::UnexpectedServerResponse(response) => {
            let refused = [401, 403, 407]
                .into_iter()
                .find(|status| response.starts_with(&format!("HTTP {status}")));
            match refused {
                Some(status) => McpError::Refused {
                    server,
                    status,
                    cause: format!("status {status}"),
                },
                None => handshake(format!("it answers {}", unparsed(response))),
            }
        }
        StreamableHttpError::UnexpectedContentType(found) => handshake(format!(
            "its answer is {}, not JSON",
            found.as_deref().unwrap_or("of no type")
        )),
        other => handshake(other.to_string()),
    }
}

/// Returns the library's message about an answer that it cannot read, without names of its types.
fn unparsed(response: &str) -> String {
    match response.split_once("ServerJsonRpcMessage: ") {
        Some((_, why)) => format!("a line that is not a message: {why}"),
        None => response.trim_end_matches([' ', ':']).to_owned(),
    }
}
