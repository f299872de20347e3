//! Runs of installations: what they see of the project, and how they are started.

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use flowstone_lang::value::Value;

use crate::bindings::{Bindings, Installed};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::{ACTIVATION, Flow};
use crate::installation::{InstallationName, InstallationRow, InstalledFlow};
use crate::ports::{Scratch, StoreError, Vault};
use crate::private;
use crate::scoped::scoped;
use crate::sealed;
use crate::step::{RunInstallation, Services, real_path};

/// The folder of installations in the home folder.
const FOLDER: &str = "installations";

/// Returns the setup values of an installation.
///
/// # Errors
/// When its secrets cannot be decrypted.
pub(crate) fn opened_setup(vault: &dyn Vault, row: &InstallationRow) -> Result<Value, EngineError> {
    let whose = row.at.to_string();
    let whole = sealed::open_stored(vault, &row.setup, &whose)?;
    Ok(whole.get(ACTIVATION).cloned().unwrap_or(Value::Nil))
}

impl Engine {
    /// Returns the folder of an installation: its runs reach no other files.
    pub fn installation_folder(&self, at: &InstallationName) -> PathBuf {
        let folder = self.services.home.join(FOLDER);
        folder.join(&at.workspace).join(&at.name)
    }

    /// Returns the setup values of an installation as its row keeps them: secrets are encrypted.
    ///
    /// # Errors
    /// When a value cannot serve as a secret, is not data, or cannot be encrypted.
    pub fn sealed_setup(&self, flow: &Flow, setup: &Value) -> Result<String, EngineError> {
        let whole = Value::map([(Value::keyword(ACTIVATION), setup.clone())]);
        self.stored_input((flow, None), &whole, &[])
    }

    /// Returns the setup values of an installation.
    ///
    /// # Errors
    /// When its secrets cannot be decrypted.
    pub fn opened_setup(&self, row: &InstallationRow) -> Result<Value, EngineError> {
        opened_setup(&*self.services.vault, row)
    }

    /// Returns what the runs of an installation have.
    pub(crate) fn services_of_installation(
        &self,
        installed: &Installed,
        bindings: &Bindings,
        scratch: Option<Rc<Scratch>>,
    ) -> Result<Rc<Services>, EngineError> {
        let flow = InstalledFlow::read(&installed.flow).ok_or_else(|| {
            EngineError::Internal(format!("`{}` names no installation", installed.flow))
        })?;
        let settings = bindings.apply(&self.settings)?;
        let folder = self.installation_folder(&flow.at);
        if !folder.is_dir() {
            let made = fs::create_dir_all(&folder).and_then(|()| private::make_folder(&folder));
            made.map_err(|error| StoreError::of_file(&folder, &error))?;
        }
        let slug = (&*flow.flow.slug, bindings.is_outside);
        let allow = self
            .services
            .permissions
            .of_installation(slug, &settings, &real_path(&folder));
        let stores = match &scratch {
            Some(scratch) => &scratch.stores,
            None => &self.services.stores,
        };
        let namespace = flow.at.namespace();
        let mut installation = RunInstallation {
            flow,
            allow,
            author: stores.clone(),
            max_tokens: installed.max_tokens,
            home: self.settings.clone(),
        };
        installation.author = scoped(stores, installation.author_namespace());
        Ok(Rc::new(Services {
            settings,
            profile: None,
            is_outside: bindings.is_outside,
            test: bindings.test,
            stores: scoped(stores, namespace),
            scratch: scratch.clone(),
            project_root: folder,
            installation: Some(Rc::new(installation)),
            ..Services::clone(&self.of_runs)
        }))
    }
}
