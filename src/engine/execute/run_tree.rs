//! A run and the children that are executed with it. They are executed concurrently, not nested, so the process's stack
//! does not grow with the depth of calls.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::sync::Notify;

use super::ExecuteOptions;
use super::branch::Branch;
use crate::Interrupt;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::ports::{ClaimBy, ParentClose, RunRow};
use crate::step::LocalFuture;

/// The runs that one call of [`Engine::execute`] executes.
#[derive(Default)]
pub(crate) struct RunTree {
    /// Children that wait to be executed.
    requested: RefCell<Vec<ChildRequest>>,
}

/// A child to be executed.
struct ChildRequest {
    run: RunId,
    observer: Rc<dyn Observer>,
    options: ExecuteOptions,
    end: Rc<ChildEnd>,
}

/// The slot for the outcome of a child's execution.
#[derive(Default)]
struct ChildEnd {
    outcome: RefCell<Option<Result<RunOutcome, EngineError>>>,
    news: Notify,
}

/// A child that is executed for a branch of its parent.
pub(super) struct Executed {
    end: Rc<ChildEnd>,
    interrupt: Interrupt,
    branch: Rc<Branch>,
    close: ParentClose,
}

impl Executed {
    /// Returns when the child cannot be executed further in this process.
    pub(super) async fn outcome(&self) -> Result<RunOutcome, EngineError> {
        loop {
            let news = self.end.news.notified();
            if let Some(outcome) = self.end.outcome.take() {
                return outcome;
            }
            news.await;
        }
    }

    /// Stops waiting for the child: a cancelled child executes its `finally` blocks, any other is suspended.
    pub(super) fn leave(&self) {
        if self.branch.has_child() || self.close == ParentClose::Abandon {
            self.interrupt.trigger();
        } else {
            self.interrupt.notify();
        }
    }
}

impl Drop for Executed {
    fn drop(&mut self) {
        self.leave();
    }
}

impl RunTree {
    /// Executes a child in this tree.
    pub(super) fn execute(
        &self,
        child: &RunRow,
        branch: Rc<Branch>,
        observer: Rc<dyn Observer>,
        options: &ExecuteOptions,
    ) -> Executed {
        let interrupt = options.interrupt.below();
        let end = Rc::new(ChildEnd::default());
        self.requested.borrow_mut().push(ChildRequest {
            run: child.id.clone(),
            observer,
            options: ExecuteOptions {
                interrupt: interrupt.clone(),
                by: ClaimBy::Search,
                ..options.clone()
            },
            end: end.clone(),
        });
        let close = child.parent.as_ref().map(|parent| parent.close);
        Executed {
            end,
            interrupt,
            branch,
            close: close.unwrap_or_default(),
        }
    }

    /// Executes a cancelled child for which no branch waits, unless it is being executed already.
    pub(super) fn tidy_up(&self, run: RunId, observer: Rc<dyn Observer>, options: &ExecuteOptions) {
        self.requested.borrow_mut().push(ChildRequest {
            run,
            observer,
            options: ExecuteOptions {
                by: ClaimBy::Search,
                ..options.clone()
            },
            end: Rc::default(),
        });
    }

    /// Runs `work`, during which children may be requested; returns when they have left memory, too.
    pub(crate) async fn accompany<T>(
        self: &Rc<Self>,
        engine: &Engine,
        main: impl Future<Output = T>,
    ) -> T {
        let mut main = std::pin::pin!(main);
        let mut done = None;
        let mut underway: Vec<LocalFuture<'_, ()>> = Vec::new();
        poll_fn(move |cx| {
            loop {
                if done.is_none()
                    && let Poll::Ready(value) = main.as_mut().poll(cx)
                {
                    done = Some(value);
                }
                let requested = self.requested.take();
                underway.extend(
                    requested
                        .into_iter()
                        .map(|request| self.begin(engine, request)),
                );
                poll_all(&mut underway, cx);
                if self.requested.borrow().is_empty() {
                    break;
                }
            }
            match done.take_if(|_| underway.is_empty()) {
                Some(value) => Poll::Ready(value),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn begin<'e>(
        self: &Rc<Self>,
        engine: &'e Engine,
        request: ChildRequest,
    ) -> LocalFuture<'e, ()> {
        let tree = self.clone();
        Box::pin(async move {
            let ChildRequest {
                run,
                observer,
                options,
                end,
            } = request;
            let outcome = engine.execute_in(&run, observer, options, tree).await;
            end.outcome.replace(Some(outcome));
            end.news.notify_waiters();
        })
    }
}

fn poll_all(underway: &mut Vec<LocalFuture<'_, ()>>, cx: &mut Context<'_>) {
    underway.retain_mut(|future| future.as_mut().poll(cx).is_pending());
}
