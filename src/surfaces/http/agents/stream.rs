//! Streamed generations: the text of the model as it arrives, in the frames of chat completions.
//!
//! A turn that is over is read from the journal, so nothing is missing where its text came faster than it was read. A generation
//! that fails ends its stream with an error and without `[DONE]`. So does one whose model was asked again and answers other text than
//! what was sent: the generation continues, and its record has the later answer. A stream that did not reach its end is noted as left.

use std::time::Duration;

use axum::response::Response;
use flowstone_engine::json::compact;
use flowstone_engine::ports::{LiveText, News, TextPiece};
use flowstone_fronts::agents::generations::{self, View};
use flowstone_fronts::agents::ids;
use flowstone_fronts::agents::traces::{self, TurnText};
use serde_json::{Value as Json, json};

use super::client::Client;
use super::generations::{Followed, again};
use super::sent::Sent;
use crate::http::feed::Streamed;
use crate::http::feed::sse::{Closed, Stream};
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Shared};

/// The last data of a stream that ended well.
const DONE: &str = "[DONE]";

/// Starts the stream of a generation.
pub(super) async fn start(
    server: Shared,
    client: Client,
    Followed { id, news, may_nest }: Followed,
    live: Box<dyn LiveText>,
) -> Result<Response, Problem> {
    let place = server.readers.enter(&client.0.token.id, Streamed::Run)?;
    let (stream, response) = Stream::start(server.clone(), (&client.0, Streamed::Run));
    let follow = Follow {
        server,
        id,
        news,
        live,
        may_nest,
        over: 0,
        finished: String::new(),
        current: (String::new(), Sent::default()),
    };
    tokio::spawn(async move {
        let _place = place;
        follow.send(stream).await;
    });
    Ok(response)
}

/// Follows one generation.
struct Follow {
    server: Shared,
    id: String,
    news: Box<dyn News>,
    live: Box<dyn LiveText>,
    /// Whether the generation can start others.
    may_nest: bool,
    /// Number of turns that were sent completely.
    over: usize,
    /// The path of the last of them.
    finished: String,
    /// The path of the turn in progress, and what was sent of it.
    current: (String, Sent),
}

/// Why a stream ends before the end of its generation.
enum Ends {
    Closed,
    /// The model was asked again, and answers other text than what was sent.
    Contradicted,
}

impl From<Closed> for Ends {
    fn from(Closed: Closed) -> Ends {
        Ends::Closed
    }
}

impl Follow {
    async fn send(mut self, mut stream: Stream) {
        let ended = self.follow(&mut stream).await;
        // The generation continues without its client.
        match ended {
            Ok(()) | Err(Ends::Closed) => {}
            Err(Ends::Contradicted) => {
                let frame = self.contradicted();
                // A client that is gone misses nothing.
                let _ = stream.data(&compact(&frame)).await;
            }
        }
    }

    /// Returns the frame that ends a stream whose text does not hold any more.
    fn contradicted(&self) -> Json {
        let trace = format!("{}{}", ids::TRACE, ids::key_of(&self.id));
        let message = format!(
            "the answer of the model broke off after a part of it was sent, and the model was asked again and answers otherwise: \
             discard the text of this stream; the generation continues, and GET /api/v1/traces/{trace} has its text"
        );
        json!({
            "error": {"code": "STREAM_CONTRADICTED", "message": message},
            "generation_id": self.id,
            "trace_id": trace,
        })
    }

    async fn follow(&mut self, stream: &mut Stream) -> Result<(), Ends> {
        loop {
            self.news.mark_seen();
            let (view, texts) = match self.look().await {
                Ok(seen) => seen,
                Err(problem) => {
                    let frame = json!({"error": {"code": problem.code, "message": problem.detail}});
                    return Ok(stream.data(&compact(&frame)).await?);
                }
            };
            for turn in texts.into_iter().skip(self.over) {
                self.finish(turn, stream).await?;
            }
            if view.is_settled() {
                return Ok(self.end(view.stayed(), stream).await?);
            }
            self.wait(stream, again(&view, self.may_nest)).await?;
        }
    }

    /// Sends the last frames.
    async fn end(&mut self, view: View, stream: &mut Stream) -> Result<(), Closed> {
        if stream.is_left() {
            return Err(Closed);
        }
        // Before the last frame, so that a client that has it reads the same in the record.
        let id = self.id.clone();
        let noted = self
            .server
            .ask(async move |cx: &EngineContext| generations::note_stayed(&cx.engine, &id).await)
            .await;
        if let Err(problem) = noted {
            let detail = problem.detail;
            tracing::warn!(detail, "it cannot be noted that a stream reached its end");
        }
        match view.to_frame() {
            Err(frame) => stream.data(&compact(&frame)).await,
            Ok(frame) => {
                stream.data(&compact(&frame)).await?;
                stream.data(DONE).await
            }
        }
    }

    async fn look(&mut self) -> Result<(View, Vec<TurnText>), Problem> {
        let id = self.id.clone();
        self.server
            .ask(async move |cx: &EngineContext| {
                let view = generations::view(&cx.engine, &id).await?;
                let texts = traces::texts(&cx.engine, &id).await?;
                Ok::<_, flowstone_fronts::agents::error::ApiError>((view, texts))
            })
            .await
    }

    /// Sends what is missing of a turn that is over.
    async fn finish(&mut self, turn: TurnText, stream: &mut Stream) -> Result<(), Ends> {
        let sent = match self.current.0 == turn.path {
            true => std::mem::take(&mut self.current.1),
            false => Sent::default(),
        };
        self.over += 1;
        // What is still read of its text as it arrived was sent here.
        self.finished = turn.path;
        match sent.rest(&turn.text) {
            Some(rest) => Ok(text(rest, stream).await?),
            None => Err(Ends::Contradicted),
        }
    }

    /// Sends text as it arrives, until the journal may have more.
    async fn wait(&mut self, stream: &mut Stream, again: Option<Duration>) -> Result<(), Ends> {
        let at = tokio::time::Instant::now() + again.unwrap_or_default();
        loop {
            for piece in self.live.pieces() {
                self.piece(&piece, stream).await?;
            }
            tokio::select! {
                () = self.news.changed() => return Ok(()),
                () = tokio::time::sleep_until(at), if again.is_some() => return Ok(()),
                () = self.live.changed() => {}
                closed = stream.idle() => return Err(closed.into()),
            }
        }
    }

    async fn piece(&mut self, piece: &TextPiece, stream: &mut Stream) -> Result<(), Ends> {
        if self.finished == piece.path {
            return Ok(());
        }
        if self.current.0 != piece.path {
            self.current = (piece.path.clone(), Sent::default());
        }
        match self.current.1.add(piece) {
            Some(new) => Ok(text(new, stream).await?),
            None => Err(Ends::Contradicted),
        }
    }
}

async fn text(content: &str, stream: &mut Stream) -> Result<(), Closed> {
    if content.is_empty() {
        return Ok(());
    }
    let frame = json!({"choices": [{"delta": {"content": content}}]});
    stream.data(&compact(&frame)).await
}
