//! Pages and queries of lists.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use flowstone_fronts::agents::generations::LIMIT;
use serde_json::{Value as Json, json};

use crate::http::answer::Answer;
use crate::http::problem::Problem;
use crate::http::request::Query;

/// The parameters of a list with pages.
pub(super) const PAGED: &[&str] = &["limit", "offset", "project_id"];

/// The part of a list that is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub limit: usize,
    pub offset: usize,
}

impl Part {
    /// # Errors
    /// When a number is malformed or out of range.
    pub(super) fn of(query: &Query) -> Result<Part, Problem> {
        let offset = query.number("offset")?.unwrap_or(0);
        let offset = usize::try_from(offset)
            .map_err(|_| Problem::malformed("`offset` must be a number from 0"))?;
        Ok(Part {
            limit: query.limit_within(LIMIT)?,
            offset,
        })
    }

    /// As [`Part::of`], for a list that does not tell how many records there are: it is whole unless a `limit` is given.
    ///
    /// # Errors
    /// As for [`Part::of`].
    pub(super) fn of_whole(query: &Query) -> Result<Part, Problem> {
        let part = Part::of(query)?;
        Ok(match query.get("limit") {
            Some(_) => part,
            None => Part {
                limit: usize::MAX,
                ..part
            },
        })
    }

    /// Returns the part of a whole list.
    pub(super) fn take(self, all: Vec<Json>) -> Vec<Json> {
        all.into_iter().skip(self.offset).take(self.limit).collect()
    }

    /// Returns a list as `{data, total, limit, offset}`.
    pub(super) fn page(self, data: Vec<Json>, total: usize) -> Answer {
        Answer::ok(
            json!({"data": data, "total": total, "limit": self.limit, "offset": self.offset}),
        )
    }
}

/// Returns the answer to a deletion.
pub(super) fn deleted() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
