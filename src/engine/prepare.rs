//! Sessions with the program of a run.

use std::rc::Rc;

use flowstone_lang::session::Body;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow;
use crate::locals;
use crate::ports::RunRow;
use crate::sessions::{INTERACTIVE, Prepared};

impl Engine {
    /// Returns a session with the program of a run, which other runs of the program may use, too.
    pub(crate) async fn prepare(&self, row: &RunRow) -> Result<Prepared, EngineError> {
        if let Some(prepared) = self.sessions.take(&row.program) {
            return Ok(prepared);
        }
        let mut prepared = self.prepare_own(row).await?;
        self.sessions.share(&row.program, &mut prepared);
        Ok(prepared)
    }

    /// As [`Engine::prepare_own`], with a flow that notes its locals at each step.
    pub(crate) async fn prepare_noting(&self, row: &RunRow) -> Result<Prepared, EngineError> {
        let prepared = self.prepare_own(row).await?;
        let form = locals::noting(&prepared.session, &prepared.flow.body);
        Ok(Prepared {
            body: Rc::new(Body::new(&form)),
            ..prepared
        })
    }

    /// Returns a session with the program of a run, for this run alone.
    pub(crate) async fn prepare_own(&self, row: &RunRow) -> Result<Prepared, EngineError> {
        let run = row.id.to_string();
        if row.program == INTERACTIVE {
            return Err(EngineError::Interactive { run });
        }
        let bad_program = |detail: &str| EngineError::BadProgram {
            run: run.clone(),
            detail: detail.to_owned(),
        };
        let program = self.stores().runs.program(&row.program).await?;
        let program = program.ok_or_else(|| bad_program("it is missing"))?;
        if program.engine_abi != flow::ENGINE_ABI {
            return Err(EngineError::OtherAbi {
                run,
                found: program.engine_abi,
                known: flow::ENGINE_ABI,
            });
        }
        let session = Rc::new(self.session());
        let checked = flow::reload(&session, &program);
        let Some(loaded) = checked.loaded else {
            let first = checked
                .findings
                .first()
                .map(|finding| finding.message.as_str());
            return Err(bad_program(first.unwrap_or("it is not a flow")));
        };
        let libraries = loaded.flow.libraries.load(&session);
        libraries.map_err(|finding| bad_program(&finding.message))?;
        Ok(Prepared::own(session, loaded.flow))
    }
}
