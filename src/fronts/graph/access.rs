//! Decides who may start runs of an agent, and how many.

use flowstone_engine::feed_event::instant;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{NewReceipt, RunQuery, RunSummary};
use flowstone_engine::{Engine, EngineError};
use serde_json::{Value as Json, json};

use super::agents::{self, Agent};
use super::codes;
use super::compile::slug;
use super::error::{GraphError, Status};
use super::runs::{self, Start};
use super::spec::Audience;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub kind: Kind,
    /// The id of the user, or the name of the token.
    pub id: String,
    /// The address that the request comes from.
    pub address: String,
    /// The name under which runs of an owner are started.
    pub owner_name: String,
    /// Whether the caller may change the project.
    pub may_edit: bool,
}

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The owner of the project, or a program of the owner.
    Owner,
    /// A user who is signed in to an app.
    User,
    /// A caller with the project's anonymous key.
    Anonymous,
}

/// The limits of an agent.
const LIMITS: &[&str] = &[
    "daily_budget_usd",
    "max_concurrent_runs",
    "max_runs_per_app_per_hour",
    "max_runs_per_ip_per_hour",
    "max_runs_per_user_per_hour",
];

/// The prefix of the names under which runs of users are started.
const OF_USERS: &str = "graph:";

impl Who {
    /// Returns the name under which the caller starts runs.
    pub fn started_by(&self) -> String {
        match self.kind {
            Kind::Owner => self.owner_name.clone(),
            Kind::User => format!("{OF_USERS}user:{}@{}", self.id, self.address),
            Kind::Anonymous => format!("{OF_USERS}anon:{}@{}", self.id, self.address),
        }
    }

    /// Returns the identity that idempotency keys belong to.
    pub fn identity(&self) -> String {
        match self.kind {
            Kind::Owner => format!("owner {}", self.id),
            Kind::User => format!("user {}", self.id),
            Kind::Anonymous => format!("address {}", self.address),
        }
    }

    /// Tells whether the caller started a run.
    pub fn has_started(&self, started_by: &str) -> bool {
        match self.kind {
            Kind::Owner => started_by == self.owner_name,
            Kind::User => user_of(started_by) == Some(self.id.as_str()),
            Kind::Anonymous => started_by == self.started_by(),
        }
    }

    /// Returns the audience of the tools that a run of the caller sees.
    pub fn audience(&self) -> Audience {
        match self.kind {
            Kind::Owner => Audience::DeveloperOnly,
            Kind::User | Kind::Anonymous => Audience::EndUser,
        }
    }
}

/// Returns the user who started a run. An address contains no `@`; the name of a user may.
fn user_of(started_by: &str) -> Option<&str> {
    let rest = started_by.strip_prefix(OF_USERS)?.strip_prefix("user:")?;
    rest.rsplit_once('@').map(|(user, _)| user)
}

/// Refuses callers on the public routes whom the agent's visibility excludes.
///
/// # Errors
/// A refusal with status 403.
pub fn may_use(agent: &Agent, who: &Who) -> Result<(), GraphError> {
    let is_allowed = match (agent.visibility(), who.kind) {
        ("public", _) => true,
        ("authenticated", Kind::Owner | Kind::User) => true,
        (_, _) => false,
    };
    match is_allowed {
        true => Ok(()),
        false => Err(not_open(&agent.name)),
    }
}

/// Returns an agent for a caller on the public routes. `is_reached`: whether the token of the caller reaches it.
///
/// # Errors
/// A refusal with status 403, the same for an agent that does not exist and for one that is not open to the caller.
pub async fn open(
    engine: &Engine,
    name: &str,
    (who, is_reached): (&Who, bool),
) -> Result<Agent, GraphError> {
    let agent = match agents::get(engine, name).await {
        Ok(agent) if is_reached => agent,
        Ok(_) | Err(GraphError::Refused(_)) => return Err(not_open(name)),
        Err(error) => return Err(error),
    };
    may_use(&agent, who)?;
    Ok(agent)
}

/// Returns the error for an agent that does not exist, or that its visibility keeps from a caller: callers must not find out which.
fn not_open(name: &str) -> GraphError {
    GraphError::new(
        Status::Forbidden,
        codes::NOT_ALLOWED,
        format!("there is no agent `{name}` that is open to this caller"),
    )
}

/// Refuses a webhook from callers who may not change the project: the server would send them wherever they like.
///
/// # Errors
/// A refusal with status 403.
pub fn may_call_back(who: &Who, start: &Start) -> Result<(), GraphError> {
    match start.webhook_url.is_none() || who.may_edit {
        true => Ok(()),
        false => Err(GraphError::new(
            Status::Forbidden,
            codes::NOT_ALLOWED,
            "`webhook_url` needs a token of the owner, or of kind `service` with the scope `edit`",
        )),
    }
}

/// The digest of the receipts that [`within_limits`] returns.
pub const SEAT: &str = "seat";

/// Refuses a start over a limit of the agent. Runs of the owner are neither limited nor counted.
///
/// Returns the receipt under which the start has to take place: two starts that saw the same last run have the same, so that
/// the store takes one of them, and the other one is counted again.
///
/// # Errors
/// A refusal with status 429 that names the limit.
pub async fn within_limits(
    engine: &Engine,
    agent: &Agent,
    who: &Who,
) -> Result<Option<NewReceipt>, GraphError> {
    if who.kind == Kind::Owner || LIMITS.iter().all(|limit| agent.limit(limit).is_none()) {
        return Ok(None);
    }
    let now_ms = engine.now_ms();
    let hour = Started::since(engine, agent, now_ms - HOUR_MS).await?;
    let address = format!("@{}", who.address);
    let is_user = |run: &&RunSummary| {
        who.kind == Kind::User && user_of(&run.started_by) == Some(who.id.as_str())
    };
    hour.check(agent, "max_runs_per_user_per_hour", now_ms, is_user)?;
    hour.check(agent, "max_runs_per_ip_per_hour", now_ms, |run| {
        run.started_by.ends_with(&address)
    })?;
    hour.check(agent, "max_runs_per_app_per_hour", now_ms, |_| true)?;
    if let Some(most) = agent.limit("max_concurrent_runs") {
        let live = Started::live(engine, agent).await?;
        let current = live.0.len() as f64;
        if current >= most {
            return Err(limited("max_concurrent_runs", current, most, Json::Null, 1));
        }
    }
    if let Some(most) = agent.limit("daily_budget_usd") {
        let midnight = now_ms - now_ms.rem_euclid(DAY_MS);
        let today = Started::since(engine, agent, midnight).await?;
        let spent = today.cost(engine).await?;
        if spent >= most {
            let reset = midnight + DAY_MS;
            let wait = (reset - now_ms + 999) / 1_000;
            return Err(limited(
                "daily_budget_usd",
                spent,
                most,
                instant(reset),
                wait,
            ));
        }
    }
    let last = hour.0.first().map_or("none", |run| run.id.as_str());
    Ok(Some(NewReceipt {
        scope: format!("graph starts {}", agent.name),
        key: last.to_owned(),
        digest: SEAT.to_owned(),
        until_ms: now_ms + HOUR_MS,
    }))
}

/// Runs of an agent that users started, newest first.
struct Started(Vec<RunSummary>);

impl Started {
    async fn since(engine: &Engine, agent: &Agent, since_ms: i64) -> Result<Started, EngineError> {
        let query = RunQuery {
            flow: Some(slug(&agent.name)),
            since_ms: Some(since_ms),
            ..RunQuery::default()
        };
        Started::of(engine, query).await
    }

    async fn live(engine: &Engine, agent: &Agent) -> Result<Started, EngineError> {
        use flowstone_engine::ports::RunStatus::{FailedCompensating, Queued, Running, Waiting};
        let query = RunQuery {
            flow: Some(slug(&agent.name)),
            statuses: vec![Queued, Running, Waiting, FailedCompensating],
            ..RunQuery::default()
        };
        Started::of(engine, query).await
    }

    async fn of(engine: &Engine, query: RunQuery) -> Result<Started, EngineError> {
        let mut runs = engine.summaries(query).await?;
        runs.retain(|run| run.started_by.starts_with(OF_USERS));
        Ok(Started(runs))
    }

    /// Refuses a start if the number of runs that meet a condition has reached the limit.
    fn check(
        &self,
        agent: &Agent,
        limit: &'static str,
        now_ms: i64,
        counts: impl Fn(&&RunSummary) -> bool,
    ) -> Result<(), GraphError> {
        let Some(most) = agent.limit(limit) else {
            return Ok(());
        };
        let counted: Vec<&RunSummary> = self.0.iter().filter(counts).collect();
        let current = counted.len() as f64;
        if current < most {
            return Ok(());
        }
        // The next run may start when the oldest of the last ones is more than an hour old.
        let freeing = counted.get(most as usize - 1).or(counted.last());
        let reset = freeing.map_or(now_ms, |run| run.created_ms) + HOUR_MS;
        let wait = (reset - now_ms + 999) / 1_000;
        Err(limited(limit, current, most, instant(reset), wait))
    }

    /// Returns the cost of the runs' model calls, in dollars.
    async fn cost(&self, engine: &Engine) -> Result<f64, GraphError> {
        let mut dollars = 0.0;
        for run in &self.0 {
            dollars += cost_of(engine, &run.id).await?;
        }
        Ok(dollars)
    }
}

async fn cost_of(engine: &Engine, run: &RunId) -> Result<f64, GraphError> {
    let row = engine.run(run).await?;
    let Some(mut reader) = runs::Reader::open(engine, &row).await? else {
        return Ok(0.0);
    };
    reader.read_all().await?;
    Ok(reader.projection().cost_usd())
}

fn limited(limit: &'static str, current: f64, most: f64, reset_at: Json, wait: i64) -> GraphError {
    let number = |value: f64| match value.fract() == 0.0 {
        true => json!(value as i64),
        false => json!(value),
    };
    GraphError::new(
        Status::TooMany,
        codes::LIMITED,
        format!("the limit `{limit}` is reached: {current} of {most}"),
    )
    .with("limit", json!(limit))
    .with("current", number(current))
    .with("max", number(most))
    .with("reset_at", reset_at)
    .after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_owns_no_runs_of_another_whose_name_begins_alike() {
        let user = |id: &str| Who {
            kind: Kind::User,
            id: id.to_owned(),
            address: "127.0.0.1".to_owned(),
            owner_name: String::new(),
            may_edit: false,
        };
        let (short, long) = (user("ada"), user("ada@example.com"));
        for one in [&short, &long] {
            for other in [&short, &long] {
                let is_own = one.has_started(&other.started_by());
                assert_eq!(is_own, one == other, "{} {}", one.id, other.id);
            }
        }
    }
}
