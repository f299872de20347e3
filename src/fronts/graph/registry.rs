//! The agents, functions, MCP servers and webhooks that a project stores for graph agents.

use flowstone_engine::ports::Stores;
use flowstone_engine::{Engine, EngineError};
use serde_json::Value as Json;

use crate::rows::Rows;

/// The kinds of definitions that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    Agents,
    Functions,
    Servers,
    /// The addresses that are called when runs end.
    Webhooks,
}

impl Registry {
    /// Returns the name of its table.
    pub fn table(self) -> &'static str {
        match self {
            Registry::Agents => "flowstone_agents",
            Registry::Functions => "flowstone_functions",
            Registry::Servers => "flowstone_mcp_servers",
            Registry::Webhooks => "flowstone_webhooks",
        }
    }

    fn rows(self) -> Rows {
        Rows(self.table())
    }

    /// Returns all definitions, sorted by key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(self, engine: &Engine) -> Result<Vec<Json>, EngineError> {
        self.rows().list(engine).await
    }

    /// As [`Registry::list`], without an engine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_in(self, stores: &Stores) -> Result<Vec<Json>, EngineError> {
        self.rows().list_in(stores).await
    }

    /// Returns the definition under a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get(self, engine: &Engine, key: &str) -> Result<Option<Json>, EngineError> {
        self.get_in(engine.stores(), key).await
    }

    /// As [`Registry::get`], without an engine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get_in(self, stores: &Stores, key: &str) -> Result<Option<Json>, EngineError> {
        self.rows().get_in(stores, key).await
    }

    /// Adds a definition. Returns false if the key is taken.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn insert(
        self,
        engine: &Engine,
        key: &str,
        data: &Json,
    ) -> Result<bool, EngineError> {
        self.rows().insert(engine, key, data).await
    }

    /// Stores a definition in place of the one under its key.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put(self, engine: &Engine, key: &str, data: &Json) -> Result<(), EngineError> {
        self.rows().put(engine, key, data).await
    }

    /// Deletes a definition. Returns false if the key has no definition.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delete(self, engine: &Engine, key: &str) -> Result<bool, EngineError> {
        self.rows().delete(engine, key).await
    }
}
