//! Streamed generations: the text of the model as it arrives, in the frames of chat completions.
//!
//! A turn that is over is read from the journal, so nothing is missing where its text came faster than it was read. A generation
//! that fails ends its stream with an error and without `[DONE]`. That a client left before the end is noted.

use std::time::Duration;

use axum::response::Response;
use flowstone_engine::json::compact;
use flowstone_engine::ports::{LiveText, News, TextPiece};
use flowstone_fronts::agents::generations::{self, View};
use flowstone_fronts::agents::traces::{self, TurnText};
use serde_json::json;

use super::client::Client;
use super::generations::{Followed, again};
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
        current: (String::new(), String::new()),
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
    /// The path of the turn in progress, and what was sent of it.
    current: (String, String),
}

impl Follow {
    async fn send(mut self, mut stream: Stream) {
        let closed = self.follow(&mut stream).await;
        // The generation continues without its client.
        if closed.is_err() && stream.is_left() {
            let (server, id) = (self.server.clone(), self.id.clone());
            Follow::note_left(&server, id).await;
        }
    }

    async fn note_left(server: &Shared, id: String) {
        let noted = server
            .ask(async move |cx: &EngineContext| generations::note_left(&cx.engine, &id).await)
            .await;
        if let Err(problem) = noted {
            let detail = problem.detail;
            tracing::warn!(detail, "it cannot be noted that a client left its stream");
        }
    }

    async fn follow(&mut self, stream: &mut Stream) -> Result<(), Closed> {
        loop {
            self.news.mark_seen();
            let (view, texts) = match self.look().await {
                Ok(seen) => seen,
                Err(problem) => {
                    let frame = json!({"error": {"code": problem.code, "message": problem.detail}});
                    return stream.data(&compact(&frame)).await;
                }
            };
            for turn in texts.into_iter().skip(self.over) {
                self.finish(turn, stream).await?;
            }
            if view.is_settled() {
                return match view.to_frame() {
                    Err(frame) => stream.data(&compact(&frame)).await,
                    Ok(frame) => {
                        stream.data(&compact(&frame)).await?;
                        stream.data(DONE).await
                    }
                };
            }
            self.wait(stream, again(&view, self.may_nest)).await?;
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
    async fn finish(&mut self, turn: TurnText, stream: &mut Stream) -> Result<(), Closed> {
        let sent = match self.current.0 == turn.path {
            true => std::mem::take(&mut self.current.1),
            false => String::new(),
        };
        self.over += 1;
        match turn.text.strip_prefix(&sent) {
            Some(rest) => text(rest, stream).await,
            None => Ok(()),
        }
    }

    /// Sends text as it arrives, until the journal may have more.
    async fn wait(&mut self, stream: &mut Stream, again: Option<Duration>) -> Result<(), Closed> {
        let at = tokio::time::Instant::now() + again.unwrap_or_default();
        loop {
            for piece in self.live.pieces() {
                self.piece(&piece, stream).await?;
            }
            tokio::select! {
                () = self.news.changed() => return Ok(()),
                () = tokio::time::sleep_until(at), if again.is_some() => return Ok(()),
                () = self.live.changed() => {}
                closed = stream.idle() => return Err(closed),
            }
        }
    }

    async fn piece(&mut self, piece: &TextPiece, stream: &mut Stream) -> Result<(), Closed> {
        if self.current.0 != piece.path {
            self.current = (piece.path.clone(), String::new());
        }
        let sent = self.current.1.chars().count() as u64;
        // A text that begins again repeats what was sent; one with a gap is completed from the journal.
        if piece.offset > sent {
            return Ok(());
        }
        let known = usize::try_from(sent - piece.offset).unwrap_or(usize::MAX);
        let new: String = piece.text.chars().skip(known).collect();
        self.current.1.push_str(&new);
        text(&new, stream).await
    }
}

async fn text(content: &str, stream: &mut Stream) -> Result<(), Closed> {
    if content.is_empty() {
        return Ok(());
    }
    let frame = json!({"choices": [{"delta": {"content": content}}]});
    stream.data(&compact(&frame)).await
}
