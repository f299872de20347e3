//! Copying all that a project keeps, and looking whether it is whole.

use std::path::Path;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ports::{BackedUp, Verified};
use crate::step::HomeVerified;

impl Engine {
    /// Copies all that the project keeps, as it is at one moment, to a folder that does not exist yet.
    ///
    /// # Errors
    /// When the folder exists or cannot be written, or something that the database names is missing.
    pub async fn backup(&self, place: &Path) -> Result<BackedUp, EngineError> {
        Ok(self.services.stores.upkeep.backup(place).await?)
    }

    /// Looks at all that is stored. Nothing is changed.
    ///
    /// # Errors
    /// When the database cannot be read at all.
    pub async fn verify_stores(&self) -> Result<Verified, EngineError> {
        let mut found = self.services.stores.upkeep.verify().await?;
        for step in self.services.steps.iter() {
            let HomeVerified { files, flaws } = step.verify(&self.services).await?;
            found.files += files;
            found.flaws.extend(flaws);
        }
        Ok(found)
    }
}
