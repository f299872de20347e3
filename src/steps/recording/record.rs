//! Records exchanges while they happen.
//!
//! The request is on disk before it is sent, and its file is rewritten as a whole when the response has ended. After a
//! crash, every file is readable, but the last ones may lack a response.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstone_flow::ports::{
    ExchangeError, Exchanged, Exchanges, OutgoingRequest, ResponseEnd, ResponseHead,
    ResponseRecorder, Secret,
};

use super::file::{Answered, Exchange, RecordedRequest};
use super::redact::{Redactor, SECRET, secrets_in};
use super::{ABOUT, About, RecordingError, write};

/// Records requests and the responses of servers in a folder.
pub struct Recorder {
    folder: PathBuf,
    state: Arc<Mutex<State>>,
}

struct State {
    about: About,
    last: u32,
    /// Secrets that were looked up, and those found in the fields of requests and responses.
    known: Vec<Secret>,
}

impl State {
    fn learn(&mut self, secrets: Vec<Secret>) {
        for secret in secrets {
            if !self.known.contains(&secret) {
                self.known.push(secret);
            }
        }
    }
}

impl Recorder {
    /// Starts a recording in a folder that is empty or does not exist yet. `environment` holds the settings of model
    /// providers.
    ///
    /// # Errors
    /// Returns an error if the folder is not empty, or cannot be written.
    pub fn create(
        folder: &Path,
        environment: BTreeMap<String, String>,
    ) -> Result<Recorder, RecordingError> {
        let path = folder.display().to_string();
        let unwritable = |error: std::io::Error| RecordingError::Unwritable {
            path: path.clone(),
            cause: error.to_string(),
        };
        fs::create_dir_all(folder).map_err(unwritable)?;
        if fs::read_dir(folder).map_err(unwritable)?.next().is_some() {
            let is_recording = folder.join(ABOUT).is_file();
            return Err(RecordingError::Occupied { path, is_recording });
        }
        let clean = |(name, text): (String, String)| {
            let text = crate::shown_url::without_password(&text);
            (name, text)
        };
        let about = About {
            environment: environment.into_iter().map(clean).collect(),
            ..About::default()
        };
        about.write(folder)?;
        let state = State {
            about,
            last: 0,
            known: Vec::new(),
        };
        Ok(Recorder {
            folder: folder.to_owned(),
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// Records the name of a requested secret, and whether it exists.
    pub(super) fn note_secret(&self, name: &str, is_there: bool) {
        let mut state = lock(&self.state);
        if state.about.secrets.contains_key(name) {
            return;
        }
        state.about.secrets.insert(name.to_owned(), is_there);
        if let Err(error) = state.about.write(&self.folder) {
            tracing::warn!(%error, "the name of a secret could not be recorded");
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchanges for Recorder {
    fn ask(&self, request: OutgoingRequest) -> Result<Exchanged, ExchangeError> {
        let number = {
            let mut state = lock(&self.state);
            state.last += 1;
            state.learn(secrets_in(&request.body));
            state.last
        };
        let mut recorder = ExchangeRecorder {
            state: self.state.clone(),
            folder: self.folder.clone(),
            number,
            request,
            answer: None,
        };
        // A request that cannot be recorded is not sent, because a replay could not answer it.
        recorder.write().map_err(|error| ExchangeError {
            code: error.code(),
            kind: "unrecorded",
            message: format!("the request was not sent: {error}"),
            hint: error.hint(),
        })?;
        Ok(Exchanged::Live(Box::new(recorder)))
    }

    fn is_replay(&self) -> bool {
        false
    }
}

/// Records one exchange while it is in progress.
struct ExchangeRecorder {
    state: Arc<Mutex<State>>,
    folder: PathBuf,
    number: u32,
    request: OutgoingRequest,
    answer: Option<Answered>,
}

impl ExchangeRecorder {
    fn answer(&mut self) -> &mut Answered {
        self.answer.get_or_insert_with(|| Answered {
            head: None,
            chunks: Vec::new(),
            end: ResponseEnd::Unread,
        })
    }

    /// Writes the exchange as far as it is known, with all known secrets removed.
    fn write(&mut self) -> Result<(), RecordingError> {
        let redactor = {
            let mut state = lock(&self.state);
            if let Some(answer) = &self.answer {
                state.learn(secrets_in(&answer.chunks.concat()));
            }
            state.learn(self.request.secrets.all());
            Redactor::new(&state.known)
        };
        let answer = self.answer.clone().map(|mut answer| {
            redactor.parts(&mut answer.chunks);
            if let Some(head) = &mut answer.head {
                head.headers = redactor.headers(&head.headers);
                head.url = redactor.url(&head.url);
            }
            if let ResponseEnd::Failed(fault) = &mut answer.end {
                fault.message = redactor.text(&fault.message);
            }
            answer
        });
        let exchange = Exchange {
            number: self.number,
            step: self.request.step.clone(),
            at: instant(self.request.now_ms),
            request: redactor.request(asked(&self.request), &self.request.varying),
            answer,
        };
        write(&self.folder.join(exchange.file_name()), &exchange.to_json())
    }
}

/// Returns a request with a placeholder for the value of each secret header.
pub(super) fn asked(request: &OutgoingRequest) -> RecordedRequest {
    let mut headers = request.headers.clone();
    let secret = request.secret_headers.iter();
    headers.extend(secret.map(|(name, _)| (name.clone(), SECRET.to_owned())));
    RecordedRequest {
        method: request.method.clone(),
        url: request.url.clone(),
        headers,
        body: request.body.clone(),
    }
}

fn instant(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |it| it.to_string())
}

impl ResponseRecorder for ExchangeRecorder {
    fn head(&mut self, head: ResponseHead) {
        self.answer().head = Some(head);
    }

    fn chunk(&mut self, bytes: &[u8]) {
        self.answer().chunks.push(bytes.to_vec());
    }

    fn end(&mut self, end: ResponseEnd) {
        self.answer().end = end;
    }
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        // Without a head or an error, the response is unknown, as after a crash.
        let is_known = self.answer.as_ref().is_some_and(|answer| {
            answer.head.is_some() || matches!(answer.end, ResponseEnd::Failed(_))
        });
        if is_known && let Err(error) = self.write() {
            tracing::warn!(%error, "a response could not be recorded");
        }
    }
}
