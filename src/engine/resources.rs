//! What is done with resources from outside of runs: uploading, looking, linking, removing.

use std::io::Read;

use crate::blob::BlobRow;
use crate::engine::Engine;
use crate::error::EngineError;
pub use crate::error::ResourceError;
use crate::ids::RunId;
use crate::ports::{BlobWriter, ResourceRow, StoreError};
use crate::resource::sign::Signer;
use crate::resource::{
    PREFIX, ResourceKind, ResourceLimits, SearchEntry, Tier, canonical, escaped, media,
};
use crate::server_file;

/// Bytes that are read from a file at once.
const CHUNK: usize = 256 << 10;

/// A file to store.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// What it is called, without folders.
    pub name: String,
    /// The content type; if missing, it is derived from the file extension.
    pub content_type: Option<String>,
    /// With a folder, the file has a name that stays.
    pub folder: Option<String>,
    /// Takes the place of a file of that name in that folder.
    pub replace: bool,
    pub search: Option<SearchEntry>,
}

/// A file that is being stored.
pub struct Uploading {
    upload: Upload,
    /// The name and the folder of a file whose name stays.
    target: Option<(String, String)>,
    most: u64,
    size: u64,
    writer: Box<dyn BlobWriter>,
}

impl Uploading {
    /// Adds bytes.
    ///
    /// # Errors
    /// When the file is too large or cannot be written. After a failure it is of no more use.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.size += bytes.len() as u64;
        if self.size > self.most {
            return Err(ResourceError::TooLarge { most: self.most }.into());
        }
        Ok(self.writer.write(bytes).await?)
    }

    /// Registers the file.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn finish(self, engine: &Engine) -> Result<ResourceRow, EngineError> {
        let Uploading { upload, target, .. } = self;
        let stored = self.writer.finish().await?;
        let (uri, folder) = target.map_or_else(
            || {
                // The same file has the same name: a command that is repeated means the same run.
                let id = RunId::derived(&format!("{}/{}", stored.hash.0, upload.name));
                (format!("{PREFIX}file/{id}"), None)
            },
            |(uri, folder)| (uri, Some(folder)),
        );
        let content_type = upload.content_type;
        let blob =
            BlobRow {
                content_type: Some(content_type.unwrap_or_else(|| {
                    media::of_name(&upload.name).unwrap_or(media::OCTETS).into()
                })),
                filename: Some(upload.name),
                kind: ResourceKind::File,
                tier: Tier::Retained,
                folder,
                search: upload.search,
                ..BlobRow::new(uri.clone(), stored.hash, stored.size)
            };
        let now_ms = engine.now_ms();
        let resources = &engine.stores().resources;
        resources.register(blob, now_ms).await?;
        engine.live_resource(&uri).await
    }
}

impl Engine {
    /// Finds what a name stands for, also where it is gone. The part before the workspace may be left out.
    ///
    /// # Errors
    /// When there is nothing of that name.
    pub async fn resource(&self, uri: &str) -> Result<ResourceRow, EngineError> {
        let whole = match uri.starts_with("res://") {
            true => uri.to_owned(),
            false => format!("{PREFIX}{}", uri.trim_start_matches('/')),
        };
        let resources = &self.services.stores.resources;
        let found = resources.find(&whole, self.services.clock.now_ms()).await?;
        let missing = || ResourceError::Missing {
            uri: uri.to_owned(),
        };
        Ok(found.ok_or_else(missing)?)
    }

    /// As [`Engine::resource`], and it must be there.
    ///
    /// # Errors
    /// Also when it was deleted or has expired.
    pub async fn live_resource(&self, uri: &str) -> Result<ResourceRow, EngineError> {
        let row = self.resource(uri).await?;
        match row.gone {
            None => Ok(row),
            Some((why, at_ms)) => {
                let uri = row.uri;
                Err(ResourceError::Gone { uri, why, at_ms }.into())
            }
        }
    }

    /// Returns the bytes of a blob or a file, and the text of what is a value.
    ///
    /// # Errors
    /// When it is something else, or cannot be read.
    pub async fn resource_bytes(&self, row: &ResourceRow) -> Result<Vec<u8>, EngineError> {
        let stores = &self.services.stores;
        if let Some(hash) = &row.hash {
            return Ok(stores.blobs.get(hash).await?);
        }
        Ok(self.resource_value(row).await?.into_bytes())
    }

    /// Returns the value of a key, a step or a run, as EDN text.
    ///
    /// # Errors
    /// When it is something else.
    pub async fn resource_value(&self, row: &ResourceRow) -> Result<String, EngineError> {
        let stores = &self.services.stores;
        let found =
            flowstone_model::resource_value::value_text(stores, row, self.services.clock.now_ms())
                .await?;
        let unsuitable = || ResourceError::Unsuitable {
            uri: row.uri.clone(),
            kind: row.kind.name(),
            what: "has no contents of its own",
        };
        Ok(found.ok_or_else(unsuitable)?)
    }

    /// Stores a file, and registers it.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or has the name of another; nothing is kept of it then.
    pub async fn upload(
        &self,
        upload: &Upload,
        mut content: impl Read,
    ) -> Result<ResourceRow, EngineError> {
        let mut uploading = self.begin_upload(upload.clone()).await?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = content
                .read(&mut chunk)
                .map_err(|error| ResourceError::Unstorable(error.to_string()))?;
            if count == 0 {
                return uploading.finish(self).await;
            }
            uploading.write(&chunk[..count]).await?;
        }
    }

    /// Starts storing a file that comes a part at a time. Nothing is kept before [`Uploading::finish`].
    ///
    /// # Errors
    /// When it has the name of another file, or a name that no file can have.
    pub async fn begin_upload(&self, upload: Upload) -> Result<Uploading, EngineError> {
        Ok(Uploading {
            target: self.upload_target(&upload).await?,
            upload,
            most: ResourceLimits::of(&self.services.settings).max_upload,
            size: 0,
            writer: self.services.stores.blobs.begin().await?,
        })
    }

    /// Returns the name and the folder of a file that is to have a name that stays.
    async fn upload_target(
        &self,
        upload: &Upload,
    ) -> Result<Option<(String, String)>, EngineError> {
        let is_bad = upload.name.is_empty()
            || [".", ".."].contains(&upload.name.as_str())
            || upload.name.len() > 255
            || upload.name.contains(['/', '\\'])
            || upload.name.contains(char::is_control);
        if is_bad {
            let message = format!("{:?} is not a file name without folders", upload.name);
            return Err(ResourceError::Unstorable(message).into());
        }
        let Some(folder) = &upload.folder else {
            return Ok(None);
        };
        let folder = folder.trim_matches('/');
        let is_plain = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control)
        };
        if !folder.split('/').all(is_plain) {
            let message =
                format!("{folder:?} is not a folder: its parts are names with `/` between them");
            return Err(ResourceError::Unstorable(message).into());
        }
        let uri = format!("{PREFIX}file/{}/{}", escaped(folder), escaped(&upload.name));
        let now_ms = self.services.clock.now_ms();
        let found = self.services.stores.resources.find(&uri, now_ms).await?;
        let is_there = found.is_some_and(|row| row.gone.is_none() && row.uri == uri);
        match is_there && !upload.replace {
            true => Err(ResourceError::Taken {
                folder: folder.to_owned(),
                name: upload.name.clone(),
            }
            .into()),
            false => Ok(Some((uri, folder.to_owned()))),
        }
    }

    /// Removes a resource. Returns whether it was there.
    ///
    /// # Errors
    /// When a run that is not over mentions it, unless `force`; when it is not removed by its name.
    pub async fn delete_resource(
        &self,
        uri: &str,
        force: bool,
    ) -> Result<ResourceRow, EngineError> {
        let row = self.live_resource(uri).await?;
        let resources = &self.services.stores.resources;
        if !force {
            let runs = resources.needed_by(&row.uri).await?;
            if !runs.is_empty() {
                let runs = runs.iter().map(ToString::to_string).collect();
                let uri = row.uri;
                return Err(ResourceError::Needed { uri, runs }.into());
            }
        }
        let now_ms = self.services.clock.now_ms();
        resources.delete(&row.uri, now_ms).await?;
        Ok(row)
    }

    /// Says what a resource is found by.
    ///
    /// # Errors
    /// When there is no such resource, or it has no entry of its own.
    pub async fn describe_resource(
        &self,
        uri: &str,
        search: Option<SearchEntry>,
    ) -> Result<ResourceRow, EngineError> {
        let row = self.live_resource(uri).await?;
        let resources = &self.services.stores.resources;
        if !resources.describe(&row.uri, search).await? {
            return Err(ResourceError::Unsuitable {
                uri: row.uri,
                kind: row.kind.name(),
                what: "has no search entry of its own",
            }
            .into());
        }
        self.live_resource(uri).await
    }

    /// Makes a link with which anybody may read a resource for a while, and says until when.
    ///
    /// # Errors
    /// When there is no such resource, it has no contents, or the key cannot be read.
    pub async fn link(&self, uri: &str, ttl_seconds: i64) -> Result<(String, i64), EngineError> {
        let row = self.live_resource(uri).await?;
        if row.hash.is_none() {
            // What is no value either says so.
            self.resource_value(&row).await?;
        }
        let expires_ms = self
            .services
            .clock
            .now_ms()
            .saturating_add(ttl_seconds * 1_000);
        let expires_ms = row.expires_ms.map_or(expires_ms, |end| end.min(expires_ms));
        let base = server_file::base(&self.services.settings, &self.services.home);
        let base = base.ok_or(ResourceError::NoServer)?;
        let link = self.signer()?.link(&base, &row.uri, expires_ms);
        Ok((link, expires_ms))
    }

    /// Makes a link to a resource from another page of the server; `root` is the way there, such as `..`.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn link_below(
        &self,
        root: &str,
        row: &ResourceRow,
        expires_ms: i64,
    ) -> Result<String, EngineError> {
        let expires_ms = row.expires_ms.map_or(expires_ms, |end| end.min(expires_ms));
        Ok(self.signer()?.link(root, &row.uri, expires_ms))
    }

    /// Returns what a link leads to, and until when it is good.
    ///
    /// # Errors
    /// When it is forged, over its time, or leads to what is gone.
    pub async fn check_link(&self, link: &str) -> Result<(ResourceRow, i64), EngineError> {
        let now_ms = self.services.clock.now_ms();
        let (uri, expires_ms) = self
            .signer()?
            .check(link, now_ms)
            .map_err(ResourceError::BadLink)?;
        Ok((self.live_resource(&canonical(&uri)).await?, expires_ms))
    }

    pub(crate) fn signer(&self) -> Result<Signer, EngineError> {
        let home = &self.services.home;
        let unreachable = |error: std::io::Error| StoreError::Unreachable {
            path: home.join("links.key").display().to_string(),
            detail: error.to_string(),
        };
        Ok(Signer::open(home).map_err(unreachable)?)
    }
}
