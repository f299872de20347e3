//! Uploads: a file as the body of a request, or as the part `file` of a form. Neither is kept in memory.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use flowstone_engine::resources::Upload;
use flowstone_engine::token::Scope;
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use tokio::sync::mpsc;

use crate::http::access::Caller;
use crate::http::answer::Answer;
use crate::http::operation::{Param, names};
use crate::http::problem::Problem;
use crate::http::request::{BODY_PAUSE, Query, slow};
use crate::http::server::{EngineContext, Shared};
use crate::json::reference_json;

/// Parts that may wait for the disk.
const BACKLOG: usize = 4;
/// The part of a form that holds the file.
const FIELD: &str = "file";
const FORM: &str = "multipart/form-data";
/// The types that clients send when nobody chose one.
const UNSAID: &[&str] = &[
    "",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
];

/// `POST /api/v1/resources?filename=&folder=&replace=`.
pub(super) const QUERY: &[Param] = &[
    Param::text("filename", "The name of the file; a form may give it, too."),
    Param::text("folder", "The folder, in which the file keeps its name."),
    Param::flag(
        "replace",
        "Overwrites a file of this name. Needs the scope `edit`, too.",
    ),
];

pub(super) async fn upload(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Run)?;
    let query = Query::read(query.as_deref(), &names(QUERY))?;
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let plain = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let mut upload = Upload {
        folder: query.owned("folder"),
        replace: query.flag("replace")?,
        ..Upload::default()
    };
    if upload.replace {
        caller.need(Scope::Edit)?;
    }
    let content = if plain == FORM {
        let mut form = form(kind, body)?;
        let (name, kind) = form.start().await?;
        upload.name = query.owned("filename").or(name).unwrap_or_default();
        upload.content_type = kind;
        Content::Form(Box::new(form))
    } else {
        upload.name = query.needed("filename")?;
        upload.content_type = (!UNSAID.contains(&plain.as_str())).then(|| kind.to_owned());
        Content::Raw(body)
    };
    if let Some(folder) = &upload.folder {
        let name = format!("file/{}/{}", folder.trim_matches('/'), upload.name);
        if !caller.reaches_resource(&name) {
            let detail = format!("the folder `{folder}` is out of reach of this token");
            return Err(Problem::not_found(detail));
        }
    }
    let shown = store(&server, upload, content).await?;
    Ok(Answer::with(StatusCode::CREATED, shown))
}

/// What a request brings, and then its end.
enum Part {
    Bytes(Bytes),
    End,
}

enum Content {
    Raw(Body),
    Form(Box<Form>),
}

impl Content {
    /// Returns the next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let next = async {
            match self {
                Content::Raw(body) => loop {
                    let Some(frame) = body.frame().await else {
                        return Ok(None);
                    };
                    let frame = frame.map_err(|_| incomplete())?;
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                },
                Content::Form(form) => form.next().await,
            }
        };
        tokio::time::timeout(BODY_PAUSE, next)
            .await
            .map_err(|_| slow())?
    }
}

fn incomplete() -> Problem {
    Problem::malformed("the body of the request is incomplete")
}

async fn store(
    server: &Shared,
    upload: Upload,
    mut content: Content,
) -> Result<serde_json::Value, Problem> {
    let (sender, mut parts) = mpsc::channel(BACKLOG);
    let storing = server.ask(async move |cx: &EngineContext| {
        let mut uploading = cx.engine.begin_upload(upload).await?;
        loop {
            match parts.recv().await {
                Some(Part::Bytes(bytes)) => uploading.write(&bytes).await?,
                Some(Part::End) => break,
                // The client went away, or sent something malformed.
                None => return Err(incomplete()),
            }
        }
        let row = uploading.finish(&cx.engine).await?;
        Ok::<_, Problem>(reference_json(&row))
    });
    let reading = async move {
        while let Some(bytes) = content.next().await? {
            if sender.send(Part::Bytes(bytes)).await.is_err() {
                return Ok(());
            }
        }
        // If nobody takes it, storing has failed already.
        let _ = sender.send(Part::End).await;
        Ok::<(), Problem>(())
    };
    let (stored, read) = tokio::join!(storing, reading);
    read?;
    stored
}

/// A form with a file.
struct Form {
    form: multer::Multipart<'static>,
    file: Option<multer::Field<'static>>,
}

fn form(kind: &str, body: Body) -> Result<Form, Problem> {
    let boundary = multer::parse_boundary(kind)
        .map_err(|_| Problem::malformed("the form has no `boundary` in its `Content-Type`"))?;
    Ok(Form {
        form: multer::Multipart::new(body.into_data_stream(), boundary),
        file: None,
    })
}

impl Form {
    /// Reads up to the file, and returns its name and its type.
    async fn start(&mut self) -> Result<(Option<String>, Option<String>), Problem> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.form.next_field());
        let field = next.await.map_err(|_| slow())?.map_err(of_form)?;
        let field = field.filter(|field| field.name() == Some(FIELD));
        let field = field.ok_or_else(|| {
            Problem::malformed(format!("the first part of the form must be `{FIELD}`"))
        })?;
        let name = field.file_name().map(str::to_owned);
        let kind = field.content_type().map(ToString::to_string);
        self.file = Some(field);
        Ok((name, kind))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let Some(file) = &mut self.file else {
            return Ok(None);
        };
        if let Some(bytes) = file.chunk().await.map_err(of_form)? {
            return Ok(Some(bytes));
        }
        self.file = None;
        match self.form.next_field().await.map_err(of_form)? {
            None => Ok(None),
            Some(_) => Err(Problem::malformed(format!(
                "the form must have one part, `{FIELD}`"
            ))),
        }
    }
}

fn of_form(error: multer::Error) -> Problem {
    Problem::malformed(format!("the form cannot be read: {error}"))
}
