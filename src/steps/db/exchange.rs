//! Statements of runs that are recorded or replayed: an answer is recorded as the request to a server would be.

use flowstone_flow::ports::ClientRequest;
use flowstone_flow::step::StepContext;
use serde::{Deserialize, Serialize};

use super::cell::{Answer, Cell};
use super::error::DbError;
use super::execute;
use super::query::Query;
use super::target::Target;
use crate::recorded;

/// The body of the recorded request.
#[derive(Serialize)]
struct Asked<'a> {
    sql: &'a str,
    params: &'a [Cell],
}

/// The body of the recorded answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Recorded {
    Answer(Answer),
    /// The database refused the statement.
    Refused {
        message: String,
        state: String,
        number: Option<i64>,
        detail: Vec<String>,
    },
}

/// Executes a statement, or answers it from a recording.
pub(super) async fn answer(
    cx: &StepContext,
    target: &Target,
    query: &Query,
) -> Result<Answer, DbError> {
    let asked = Asked {
        sql: &query.sql,
        params: &query.params,
    };
    let request = ClientRequest {
        method: "SQL".to_owned(),
        url: target.url(),
        body: serde_json::to_vec(&asked).unwrap_or_default(),
        ..ClientRequest::default()
    };
    let place = target.place();
    let recorded = recorded::answer(
        cx,
        request,
        async || match execute(target, query).await {
            Ok(answer) => Ok(Recorded::Answer(answer)),
            Err(DbError::Statement {
                message,
                state,
                number,
                detail,
                ..
            }) => Ok(Recorded::Refused {
                message,
                state,
                number,
                detail,
            }),
            Err(error) => Err(error),
        },
        |error| DbError::Exchange(Box::new(error)),
        |cause| DbError::Cut {
            place: place.clone(),
            cause,
        },
    );
    match recorded.await? {
        Recorded::Answer(answer) => Ok(answer),
        Recorded::Refused {
            message,
            state,
            number,
            detail,
        } => Err(DbError::Statement {
            place,
            message,
            state,
            number,
            detail,
        }),
    }
}
