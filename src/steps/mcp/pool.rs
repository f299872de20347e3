//! The connections to servers, on a separate thread: kept between calls, and closed when they are idle.
//!
//! All steps of a process share them. A call is a message to that thread, and is cancelled when its caller drops it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use rmcp::model::Tool;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::answer::Answer;
use super::client::Watcher;
use super::connection::{Called, Connection, ToolCall};
use super::error::McpError;
use super::open::{self, Open};
use super::query::Query;
use super::question::{Answers, Asks};
use super::server::Target;

/// Maximum number of calls that wait for the thread.
const WAITING: usize = 256;

/// The time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(60);

/// The interval of checks for idle connections.
const LOOK: Duration = Duration::from_secs(5);

/// Maximum number of kept connections. More are kept only while they are in use.
const MOST: usize = 32;

/// The channel to the thread. It ends, with all connections, when the last user is dropped.
pub(super) struct Pool {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// A request to the thread.
#[derive(Clone)]
pub(super) enum Ask {
    Call(ToolCall, Watcher),
    /// Continues a call of this name, which waits for answers in this process.
    Continue(String, Answers),
    /// Lists the tools.
    List,
    Query(Query),
}

/// The outcome of a request.
pub(super) enum Reply {
    Answer(Answer),
    /// The server asks; the call waits for the answers.
    Asks(Asks),
    Tools(Vec<Tool>),
    /// The answer to a query, in the form that flows get.
    Facts(serde_json::Value),
}

struct Job {
    target: Target,
    ask: Ask,
    limit: Duration,
    reply: Replier,
}

/// The receiver of the outcome of a request.
pub(super) type Replier = oneshot::Sender<Result<Reply, McpError>>;

static SHARED: Mutex<Weak<Pool>> = Mutex::new(Weak::new());

impl Pool {
    /// Returns the pool of the process, and starts it if necessary.
    pub(super) fn shared() -> std::io::Result<Arc<Pool>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = shared.upgrade() {
            return Ok(pool);
        }
        let pool = Arc::new(Pool::start()?);
        *shared = Arc::downgrade(&pool);
        Ok(pool)
    }

    fn start() -> std::io::Result<Pool> {
        let (jobs, taken) = mpsc::channel(WAITING);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                let local = LocalSet::new();
                runtime.block_on(local.run_until(serve(taken)));
            })?;
        Ok(Pool {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Performs a request; `None` if the thread is gone.
    pub(super) async fn ask(
        &self,
        target: Target,
        ask: Ask,
        limit: Duration,
    ) -> Option<Result<Reply, McpError>> {
        let (reply, answer) = oneshot::channel();
        let job = Job {
            target,
            ask,
            limit,
            reply,
        };
        self.jobs.as_ref()?.send(job).await.ok()?;
        answer.await.ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// The pool of a step, which is started on first use.
#[derive(Default)]
pub(super) struct Lazy(OnceLock<Arc<Pool>>);

impl Lazy {
    pub(super) fn get(&self) -> std::io::Result<&Arc<Pool>> {
        if self.0.get().is_none() {
            self.0.set(Pool::shared()?).ok();
        }
        Ok(self.0.get().expect("it was set just now"))
    }
}

/// A connection, or the place of a connection that is being opened.
pub(super) struct Slot {
    pub(super) target: Target,
    connection: OnceCell<Connection>,
    used: Cell<Instant>,
    busy: Cell<usize>,
}

type Slots = Rc<RefCell<Vec<Rc<Slot>>>>;

/// Performs jobs until no sender is left, then closes all connections.
async fn serve(mut jobs: mpsc::Receiver<Job>) {
    let slots = Slots::default();
    let open = Open::default();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(job) => drop(tokio::task::spawn_local(perform((slots.clone(), open.clone()), job))),
                None => break,
            },
            _ = look.tick() => close(old(&slots)).await,
        }
    }
    let all = slots.take();
    close(all).await;
}

/// Removes the connections to close: broken, idle and surplus ones.
fn old(slots: &Slots) -> Vec<Rc<Slot>> {
    let mut slots = slots.borrow_mut();
    slots.sort_by_key(|slot| slot.used.get());
    let mut surplus = slots.len().saturating_sub(MOST);
    let (kept, old): (Vec<_>, Vec<_>) = slots.drain(..).partition(|slot| {
        let is_open = slot.connection.get().is_none_or(Connection::is_open);
        let is_old = !is_open || slot.used.get().elapsed() > IDLE || surplus > 0;
        if slot.busy.get() > 0 || !is_old {
            return true;
        }
        surplus = surplus.saturating_sub(1);
        false
    });
    *slots = kept;
    old
}

async fn close(slots: Vec<Rc<Slot>>) {
    let mut closing = tokio::task::JoinSet::new();
    for slot in slots {
        closing.spawn_local(async move {
            if let Some(connection) = slot.connection.get() {
                connection.close().await;
            }
        });
    }
    while closing.join_next().await.is_some() {}
}

/// Returns the slot of a target's connection.
fn slot(slots: &Slots, target: &Target) -> Rc<Slot> {
    let mut slots = slots.borrow_mut();
    let is_open = |slot: &&Rc<Slot>| {
        let is_free = !target.asks || slot.busy.get() == 0;
        let is_same = slot.target.server == target.server && slot.target.asks == target.asks;
        is_same && is_free && slot.connection.get().is_none_or(Connection::is_open)
    };
    if let Some(slot) = slots.iter().find(is_open) {
        return slot.clone();
    }
    let slot = Rc::new(Slot {
        target: target.clone(),
        connection: OnceCell::new(),
        used: Cell::new(Instant::now()),
        busy: Cell::new(0),
    });
    slots.push(slot.clone());
    slot
}

/// Does a job, unless the caller no longer waits for it.
async fn perform((slots, open): (Slots, Open), job: Job) {
    let Job {
        target,
        ask,
        limit,
        mut reply,
    } = job;
    if let Ask::Continue(name, answers) = ask {
        return open.pass_on(&name, (answers, limit, reply)).await;
    }
    let slot = slot(&slots, &target);
    let busy = Busy::new(&slot);
    let (done, reply) = match ask {
        Ask::Call(call, heard) if target.asks => {
            match open::call(&slot, (call, heard), &open, (limit, reply)).await {
                Some((done, reply)) => (done, reply),
                None => return,
            }
        }
        ask => tokio::select! {
            done = within(&slot, ask, limit) => (done, reply),
            () = reply.closed() => return,
        },
    };
    if let Err(error) = &done
        && error.ends_connection()
    {
        if let Some(connection) = slot.connection.get() {
            connection.broke();
        }
        slots.borrow_mut().retain(|it| !Rc::ptr_eq(it, &slot));
    }
    drop(busy);
    reply.send(done).ok();
    // The slot is no longer listed, so its last user closes the connection.
    let is_last = slot.busy.get() == 0 && slot.connection.get().is_some_and(|it| !it.is_open());
    if is_last {
        close(vec![slot]).await;
    }
}

impl Slot {
    /// Returns the connection, opened before that instant.
    pub(super) async fn opened(
        &self,
        (until, limit): (Instant, Duration),
    ) -> Result<&Connection, McpError> {
        let opened = self
            .connection
            .get_or_try_init(|| Connection::open(&self.target));
        match timeout_at(until, opened).await {
            Ok(connection) => connection,
            Err(_) => Err(McpError::TimedOut {
                server: self.target.name.clone(),
                tool: None,
                limit,
                output: String::new(),
            }),
        }
    }
}

/// Returns the reply to a call.
pub(super) fn replied(called: Called) -> Reply {
    match called {
        Called::Answer(answer) => Reply::Answer(answer),
        Called::Asks(asks) => Reply::Asks(asks),
    }
}

async fn within(slot: &Slot, ask: Ask, limit: Duration) -> Result<Reply, McpError> {
    let until = Instant::now() + limit;
    let connection = slot.opened((until, limit)).await?;
    match ask {
        Ask::Continue(name, _) => Err(McpError::Lost { name }),
        Ask::Call(call, heard) => {
            let tool = call.tool.clone();
            match timeout_at(until, connection.call(call, heard)).await {
                Ok(called) => called.map(replied),
                Err(_) => Err(connection.late(limit, Some(tool))),
            }
        }
        Ask::List => match timeout_at(until, connection.list()).await {
            Ok(tools) => tools.map(|tools| Reply::Tools((*tools).clone())),
            Err(_) => Err(connection.late(limit, None)),
        },
        Ask::Query(query) => match timeout_at(until, connection.query(query)).await {
            Ok(facts) => facts.map(Reply::Facts),
            Err(_) => Err(connection.late(limit, None)),
        },
    }
}

/// Marks a connection as being in use, so that it is not closed.
struct Busy(Rc<Slot>);

impl Busy {
    fn new(slot: &Rc<Slot>) -> Busy {
        slot.busy.set(slot.busy.get() + 1);
        Busy(slot.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
        self.0.used.set(Instant::now());
    }
}
