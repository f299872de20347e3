//! What policies decide about when an action is asked for.

use flowstone_engine::Engine;

use super::super::error::ApiError;
use super::super::permissions::{self, Verb};
use super::super::policies::Request;
use super::super::rights::Rights;
use super::super::{admission, generations, ids};
use super::{Action, Given, Subject};

impl Action {
    /// Checks that the caller may perform the action. A record of another project does not exist for it.
    ///
    /// # Errors
    /// When the project has no such record, or the caller may not.
    pub async fn admit(
        &self,
        engine: &Engine,
        given: &Given,
        rights: &Rights,
    ) -> Result<(), ApiError> {
        let request = self.request(engine, given).await?;
        let change = match permissions::verb(self.permission) {
            Verb::Merge | Verb::Replace => given.body.get("tags"),
            Verb::List | Verb::Search | Verb::Update | Verb::Other => Some(&given.body),
        };
        admission::admit(rights, self.scope, (&request, change))
    }

    /// Returns what policies decide about.
    async fn request(&self, engine: &Engine, given: &Given) -> Result<Request, ApiError> {
        let id = given.ids.last().map_or("", String::as_str);
        match self.subject {
            Subject::New => {
                let of = (self.permission, self.kind);
                let mut request = admission::about_all(&given.project, of);
                admission::with_members(&mut request, &given.body);
                Ok(request)
            }
            Subject::Record(kind) | Subject::Part(kind) => {
                let id = match self.subject {
                    Subject::Part(_) => given.id(0),
                    Subject::New | Subject::Record(_) | Subject::Generation | Subject::Trace => id,
                };
                // A session of an agent is about the session, a new one about its agent.
                let record = kind.get_in(engine, &given.project, id).await?;
                Ok(admission::about(&record, self.permission))
            }
            Subject::Generation | Subject::Trace => {
                let (row, origin) = generations::find(engine, self.kind, id).await?;
                if ids::key_of(&origin.project) != ids::key_of(&given.project) {
                    return Err(ApiError::missing(self.kind, id));
                }
                let run = (given.project.as_str(), &row.id);
                admission::about_run(engine, run, (self.permission, self.kind)).await
            }
        }
    }
}
