//! The contents of resources: by token, or by a signed link.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flowstone_engine::EngineError;
use flowstone_engine::blob::BlobHash;
use flowstone_engine::codec::digest_bytes;
use flowstone_engine::ports::ResourceRow;
use flowstone_engine::resource::sign::{BadLink, PATH};
use flowstone_engine::resource::{ResourceKind, segment};
use flowstone_engine::resources::ResourceError;
use flowstone_engine::table::csv::{CsvContent, ExportCsv};
use flowstone_engine::table::{Filter, TableName, TableTarget};
use flowstone_engine::token::Scope;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::mpsc;

use super::range::{self, Wanted};
use super::{URI, reached};
use crate::http::access::{Caller, ProofClass};
use crate::http::operation::{Param, names};
use crate::http::problem::{Problem, codes};
use crate::http::request::Query;
use crate::http::server::{EngineContext, Peer, Shared};

/// Bytes that are read from a file at once.
const CHUNK: usize = 256 << 10;
/// Parts that may wait for a slow reader.
const BACKLOG: usize = 2;
pub(super) const HEADERS: &[Param] = &[
    Param::text(
        "If-None-Match",
        "`ETag` of the contents that the client has.",
    ),
    Param::text("If-Range", "`ETag` of the contents that the range is of."),
    Param::text("Range", "One range of bytes."),
];
/// Content types that a browser may show. Pages and drawings with scripts are not among them.
const SHOWN: &[&str] = &[
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "image/avif",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "video/mp4",
    "video/ogg",
    "video/webm",
];
const POLICY: &str = "sandbox; default-src 'none'";

/// `GET /api/v1/resources/content?uri=`.
pub(super) async fn by_token(
    State(server): State<Shared>,
    caller: Caller,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let uri = Query::read(query.as_deref(), &names(URI))?.needed("uri")?;
    let found = server
        .ask(async move |cx: &EngineContext| {
            let row = reached(cx, &caller, &uri).await?;
            contents(cx, row).await
        })
        .await?;
    Ok(answer(&server, found, &method, &headers))
}

/// `GET /api/resources/content?uri=&expires=&signature=`: what a link of `resources url` leads to.
pub(super) async fn signed(
    State(server): State<Shared>,
    Extension(Peer(peer)): Extension<Peer>,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let known = ["expires", "signature", "uri"];
    let given = Query::read(Some(&query), &known)?;
    for name in known {
        given.needed(name)?;
    }
    let found = server
        .ask(async move |cx: &EngineContext| {
            let (row, _) = cx.engine.check_link(&format!("{PATH}?{query}")).await?;
            Ok::<_, EngineError>(contents(cx, row).await)
        })
        .await;
    let forged = EngineError::from(ResourceError::BadLink(BadLink::Forged));
    if let Err(problem) = &found
        && problem.code == forged.code()
        && problem.status == StatusCode::FORBIDDEN
    {
        server.metrics.refused("link");
        let failures = &server.failures;
        let refused = failures.note(peer.ip(), ProofClass::ResourceLink, Instant::now());
        return Err(refused.unwrap_or_else(|| problem.clone()));
    }
    Ok(answer(&server, found??, &method, &headers))
}

/// The content type of a table.
const CSV: &str = "text/csv; charset=utf-8";

/// What a resource contains: a file, or the text of a value.
enum Contents {
    File { hash: BlobHash, size: u64 },
    Text(Vec<u8>),
}

async fn contents(
    cx: &EngineContext,
    row: ResourceRow,
) -> Result<(ResourceRow, Contents), Problem> {
    if let (ResourceKind::Table, Some(name)) = (row.kind, &row.name) {
        let table = TableTarget::from(TableName::Name(name.clone()));
        return rows_of(cx, (row, table)).await;
    }
    let contents = match (&row.hash, row.size) {
        (Some(hash), Some(size)) => Contents::File {
            hash: hash.clone(),
            size,
        },
        _ => Contents::Text(cx.engine.resource_bytes(&row).await?),
    };
    Ok((row, contents))
}

/// Returns the rows of a table as CSV.
async fn rows_of(
    cx: &EngineContext,
    (row, table): (ResourceRow, TableTarget),
) -> Result<(ResourceRow, Contents), Problem> {
    let ask = ExportCsv {
        table,
        select: Vec::new(),
        filter: Filter::And(Vec::new()),
        sort: Vec::new(),
        escape_formulas: false,
    };
    let exported = cx.engine.stores().tables.export(ask).await;
    let exported = exported.map_err(EngineError::from)?;
    let contents = match exported.content {
        CsvContent::Text(text) => Contents::Text(text.into_bytes()),
        CsvContent::Blob { blob, bytes } => Contents::File {
            hash: blob,
            size: bytes,
        },
    };
    let row = ResourceRow {
        content_type: Some(CSV.to_owned()),
        name: Some(exported.filename),
        ..row
    };
    Ok((row, contents))
}

/// Returns all bytes of a live resource as a body that is read as fast as it is taken, and their content type.
///
/// # Errors
/// When there is no such resource, or it is deleted or expired.
pub(in crate::http) async fn whole(
    server: &Shared,
    uri: &str,
) -> Result<(Body, Option<String>), Problem> {
    let uri = uri.to_owned();
    let (row, contents) = server
        .ask(async move |cx: &EngineContext| {
            let row = cx.engine.live_resource(&uri).await?;
            contents(cx, row).await
        })
        .await?;
    let body = match contents {
        Contents::File { hash, size } => file(server, hash, 0, size),
        Contents::Text(bytes) => Body::from(bytes),
    };
    Ok((body, row.content_type))
}

fn answer(
    server: &Shared,
    (row, contents): (ResourceRow, Contents),
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let (tag, size) = match &contents {
        Contents::File { hash, size } => (format!("\"{}\"", hash.0), *size),
        Contents::Text(bytes) => (format!("\"{}\"", digest_bytes(bytes)), bytes.len() as u64),
    };
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let mut response = Response::new(Body::empty());
    describe(response.headers_mut(), &row, &tag);
    if text(header::IF_NONE_MATCH).is_some_and(|tags| has_tag(tags, &tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    // A part of another version of the file would be of no use.
    let is_same = text(header::IF_RANGE).is_none_or(|known| known == tag);
    let range = text(header::RANGE).filter(|_| is_same && method == Method::GET);
    let (start, length) = match range::read(range, size) {
        Wanted::Whole => (0, size),
        Wanted::Part { start, length } => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let range = format!("bytes {start}-{}/{size}", start + length - 1);
            put(response.headers_mut(), header::CONTENT_RANGE, &range);
            (start, length)
        }
        Wanted::Nothing => {
            return Problem::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                codes::MALFORMED,
                format!("the file has {size} bytes, and one range of them can be asked for"),
            )
            .header(header::CONTENT_RANGE, &format!("bytes */{size}"))
            .into_response();
        }
    };
    put(
        response.headers_mut(),
        header::CONTENT_LENGTH,
        &length.to_string(),
    );
    if method != Method::HEAD {
        *response.body_mut() = match contents {
            Contents::File { hash, .. } => file(server, hash, start, length),
            Contents::Text(bytes) => {
                let rest = bytes
                    .into_iter()
                    .skip(usize::try_from(start).unwrap_or(usize::MAX));
                let part: Vec<u8> = rest
                    .take(usize::try_from(length).unwrap_or(usize::MAX))
                    .collect();
                Body::from(part)
            }
        };
    }
    response
}

/// Adds the headers that belong to the resource as a whole.
fn describe(headers: &mut HeaderMap, row: &ResourceRow, tag: &str) {
    let kind = match (&row.content_type, &row.hash) {
        (Some(kind), _) => kind,
        (None, Some(_)) => "application/octet-stream",
        (None, None) => "application/edn",
    };
    let plain = kind.split(';').next().unwrap_or_default().trim();
    let is_shown = SHOWN.contains(&plain.to_ascii_lowercase().as_str());
    let place = if is_shown { "inline" } else { "attachment" };
    let place = match &row.name {
        Some(name) => format!("{place}; filename*=UTF-8''{}", segment(name)),
        None => place.to_owned(),
    };
    put(headers, header::CONTENT_TYPE, kind);
    put(headers, header::CONTENT_DISPOSITION, &place);
    put(headers, header::CONTENT_SECURITY_POLICY, POLICY);
    put(headers, header::ACCEPT_RANGES, "bytes");
    put(headers, header::ETAG, tag);
    // The token or the link decides, each time.
    put(headers, header::CACHE_CONTROL, "private, no-cache");
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Tells whether an `If-None-Match` header names a version.
fn has_tag(tags: &str, tag: &str) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// Returns a body that is read from a file as fast as it is taken.
fn file(server: &Shared, hash: BlobHash, start: u64, length: u64) -> Body {
    let (sender, parts) = mpsc::channel(BACKLOG);
    let server = server.clone();
    tokio::spawn(async move {
        let mut at = start;
        let end = start + length;
        while at < end {
            let count = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let hash = hash.clone();
            let part = server
                .ask(async move |cx: &EngineContext| {
                    let blobs = &cx.engine.stores().blobs;
                    Ok::<_, EngineError>(blobs.part(&hash, at, count).await?)
                })
                .await;
            let part = match part {
                Ok(part) if !part.is_empty() => Ok(Bytes::from(part)),
                Ok(_) => Err(io::Error::other("the file is shorter than it was")),
                Err(problem) => Err(io::Error::other(problem.detail)),
            };
            at += part.as_ref().map_or(0, |part| part.len() as u64);
            let is_broken = part.is_err();
            if sender.send(part).await.is_err() || is_broken {
                return;
            }
        }
    });
    Body::new(Parts {
        parts,
        left: length,
    })
}

/// A body that comes a part at a time.
struct Parts {
    parts: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = self.parts.poll_recv(cx);
        polled.map(|part| {
            part.map(|part| {
                let part = part?;
                self.left = self.left.saturating_sub(part.len() as u64);
                Ok(Frame::data(part))
            })
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
