//! Calls that wait for answers of people while their connection is open: the older handshake, in which a server asks in
//! the middle of a call.
//!
//! Lives on the thread of the pool. The step that made the call gets the question as its reply; a later step passes on
//! the answer by the name of the call, and gets the next reply. A name that is not known belongs to a process that has
//! ended.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use rmcp::model::{ElicitResult, ElicitationAction};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::client::{Asked, Watcher};
use super::connection::{Called, Connection, ToolCall};
use super::error::McpError;
use super::pool::{Replier, Reply, Slot, replied};
use super::question::{Answers, Asks, Question, Resume};

/// Maximum number of calls of a process that wait for answers.
const MOST_OPEN: usize = 128;
/// The time for which an answer may come after its wait has ended.
const SLACK: Duration = Duration::from_secs(300);
/// The id of the question: in the older handshake a call asks one at a time.
const ID: &str = "question";

type Passed = (Answers, Duration, Replier);

/// The calls that wait for answers, by their names.
#[derive(Clone, Default)]
pub(super) struct Open(Rc<RefCell<HashMap<String, mpsc::Sender<Passed>>>>);

impl Open {
    /// Passes answers on to a call.
    pub(super) async fn pass_on(&self, name: &str, passed: Passed) {
        let call = self.0.borrow_mut().remove(name);
        let lost = match call {
            Some(call) => call.send(passed).await.err().map(|error| error.0),
            None => Some(passed),
        };
        if let Some((_, _, reply)) = lost {
            let name = name.to_owned();
            reply.send(Err(McpError::Lost { name })).ok();
        }
    }

    fn add(&self, name: &str) -> Option<mpsc::Receiver<Passed>> {
        let mut open = self.0.borrow_mut();
        if open.len() >= MOST_OPEN && !open.contains_key(name) {
            return None;
        }
        let (sender, passed) = mpsc::channel(1);
        open.insert(name.to_owned(), sender);
        Some(passed)
    }
}

type Done = Result<Called, McpError>;
type Calling<'a> = Pin<&'a mut dyn Future<Output = Done>>;

/// The end of a call: its outcome, and who waits for it.
type Ended = (Result<Reply, McpError>, Replier);

/// Calls a tool whose server may ask. Returns its end; `None` if nobody waits for it any more.
pub(super) async fn call(
    slot: &Slot,
    (call, heard): (ToolCall, Watcher),
    open: &Open,
    (limit, mut reply): (Duration, Replier),
) -> Option<Ended> {
    let until = Instant::now() + limit;
    let opened = tokio::select! {
        opened = slot.opened((until, limit)) => opened,
        () = reply.closed() => return None,
    };
    let connection = match opened {
        Ok(connection) => connection,
        Err(error) => return Some((Err(error), reply)),
    };
    let Some(questions) = &connection.questions else {
        let error = connection.broken("its connection takes no questions");
        return Some((Err(error), reply));
    };
    let mut questions = questions.lock().await;
    // Questions of an earlier call, which nobody answers.
    while questions.try_recv().is_ok() {}
    let conversation = Conversation {
        server: slot.target.name.clone(),
        tool: call.tool.clone(),
        name: call.name.clone(),
        stays: call.asks.unwrap_or_default() + SLACK,
        connection,
        open,
    };
    let calling = std::pin::pin!(connection.call(call, heard));
    conversation
        .hold(calling, &mut questions, (until, limit, reply))
        .await
}

/// A call with the questions that it may ask.
struct Conversation<'a> {
    server: String,
    tool: String,
    name: String,
    /// How long a question stays open.
    stays: Duration,
    connection: &'a Connection,
    open: &'a Open,
}

/// What comes after a question.
enum Next {
    Passed(Passed),
    /// The server ended the call without the answer.
    Ended(Done, Replier),
    Nobody,
}

impl Conversation<'_> {
    async fn hold(
        &self,
        mut calling: Calling<'_>,
        questions: &mut mpsc::Receiver<Asked>,
        (mut until, mut limit, mut reply): (Instant, Duration, Replier),
    ) -> Option<Ended> {
        loop {
            let asked = tokio::select! {
                done = &mut calling => return Some((done.map(replied), reply)),
                Some(asked) = questions.recv() => asked,
                () = reply.closed() => return None,
                () = tokio::time::sleep_until(until) => {
                    let late = self.connection.late(limit, Some(self.tool.clone()));
                    return Some((Err(late), reply));
                }
            };
            let mut passed = match self.ask(&asked) {
                Ok((asks, passed)) => {
                    reply.send(Ok(Reply::Asks(asks))).ok();
                    passed
                }
                Err(error) => return Some((Err(error), reply)),
            };
            match self.next(&mut calling, &mut passed).await {
                Next::Passed((answers, new_limit, new_reply)) => {
                    limit = new_limit;
                    until = Instant::now() + limit;
                    reply = new_reply;
                    asked.answer.send(result(&answers)).ok();
                }
                Next::Ended(done, reply) => return Some((done.map(replied), reply)),
                Next::Nobody => return None,
            }
        }
    }

    fn ask(&self, asked: &Asked) -> Result<(Asks, mpsc::Receiver<Passed>), McpError> {
        let question = Question::of(ID, &asked.params);
        let question = question.map_err(|what| McpError::AsksBack {
            server: self.server.clone(),
            tool: self.tool.clone(),
            what,
        })?;
        let passed = self.open.add(&self.name);
        let passed = passed.ok_or_else(|| McpError::TooManyAsk {
            server: self.server.clone(),
            tool: self.tool.clone(),
            most: MOST_OPEN,
        })?;
        let asks = Asks {
            questions: vec![question],
            resume: Resume::Open(self.name.clone()),
        };
        Ok((asks, passed))
    }

    /// Waits for the answer. If the server ends the call before, its outcome is kept for the step with the answer.
    async fn next(&self, calling: &mut Calling<'_>, passed: &mut mpsc::Receiver<Passed>) -> Next {
        let waiting = timeout(self.stays, async {
            tokio::select! {
                // In this order: an answer that is there is given to the call.
                biased;
                passed = passed.recv() => passed.map_or(Next::Nobody, Next::Passed),
                done = calling => match passed.recv().await {
                    Some((_, _, reply)) => Next::Ended(done, reply),
                    None => Next::Nobody,
                },
            }
        });
        match waiting.await {
            Ok(next) => next,
            Err(_) => {
                self.open.0.borrow_mut().remove(&self.name);
                Next::Nobody
            }
        }
    }
}

/// Returns the answer to the question of a call.
fn result(answers: &Answers) -> ElicitResult {
    let answer = answers.get(ID).cloned();
    let answer = answer.and_then(|answer| serde_json::from_value(answer).ok());
    answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel))
}
