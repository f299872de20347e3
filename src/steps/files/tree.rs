//! Resolves `:source` or `:changeset` to a tree.

use std::path::Path;
use std::sync::Arc;

use flowstone_flow::blob::BlobHash;
use flowstone_flow::changeset::Overlay;
use flowstone_flow::ports::StoreError;
use flowstone_flow::step::{Progress, StepContext, StepError};

use super::draft::Draft;
use super::error::FilesError;
use super::manifest::{Manifest, Origin};
use super::objects::Objects;
use super::source::{self, Source, Spec};
use super::{Call, Files, Limit, blocking, git, snapshot};

/// The content type of a source tree.
pub(super) const TREE_TYPE: &str = "application/vnd.flowstone.source-tree+json";
/// The content type of a changeset.
pub(super) const CHANGESET_TYPE: &str = "application/vnd.flowstone.changeset+json";

/// A tree that can be read: of a source, or of a source under a changeset.
#[derive(Clone)]
pub(super) struct Tree {
    /// The hash of its manifest, without the changeset: its name in URIs and in the blob store.
    pub id: String,
    pub manifest: Arc<Manifest>,
    pub objects: Objects,
    /// Its `res://` name.
    pub uri: String,
    /// Size of the encoded manifest in bytes; 0 if the tree was not resolved just now.
    pub bytes: u64,
}

impl Call<'_> {
    /// Returns the tree that `:source` or `:changeset` names.
    pub(super) async fn tree(&self) -> Result<Tree, StepError> {
        let source = source::readable(self.cx, self.fields)?;
        self.files.tree(self.cx, &source).await
    }

    /// Returns the changeset that `:changeset` names, as a draft to change.
    pub(super) async fn draft(&self) -> Result<Draft, StepError> {
        let id = source::changeset(self.fields)?;
        let (tree, overlay) = self.files.under_changeset(self.cx, &id).await?;
        Ok(Draft::new(tree, &overlay))
    }
}

impl Files {
    /// Resolves a source, or finds the tree that it refers to.
    pub(super) async fn tree(&self, cx: &StepContext, source: &Source) -> Result<Tree, StepError> {
        match source {
            Source::Tree { id, uri } => {
                cx.check_resource(uri).await?;
                Ok(Tree {
                    manifest: self.manifest(cx, id).await?,
                    id: id.clone(),
                    objects: objects(cx),
                    uri: uri.clone(),
                    bytes: 0,
                })
            }
            Source::Changeset { id } => Ok(self.under_changeset(cx, id).await?.0),
            Source::Spec(spec) => self.resolve(cx, spec.clone()).await,
        }
    }

    async fn resolve(&self, cx: &StepContext, spec: Spec) -> Result<Tree, StepError> {
        let trees = cx.files_home().join("trees");
        let objects = objects(cx);
        cx.emit(Progress::Status(format!("reading {}", spec.describe())));
        let store = objects.clone();
        let guard = spec.guard(cx)?;
        let (manifest, kind) = blocking(move |cancelled| match spec {
            Spec::Folder(folder) => {
                let manifest = snapshot::snapshot(&folder, &trees, &store)?;
                let origin = Origin::Dir {
                    path: folder.shown,
                    ignored: folder.ignored,
                    hidden: folder.hidden,
                };
                Ok((manifest.from_origin(origin), "dir"))
            }
            Spec::Git(repository) => {
                let limit = Limit {
                    timeout: repository.timeout,
                    cancelled,
                    guard,
                };
                let (manifest, commit) = git::snapshot(&repository, &trees, &store, &limit)?;
                let origin = Origin::Git {
                    repo: git::address(&repository.repo),
                    reference: repository.reference,
                    commit,
                    connection: repository.connection,
                };
                Ok((manifest.from_origin(origin), "git"))
            }
        })
        .await?;
        let encoded = manifest.encode();
        let bytes = encoded.len() as u64;
        let id = cx.own_stores().blobs.put(encoded).await?.0;
        let manifest = Arc::new(manifest);
        self.remember(cx, &id, &manifest);
        Ok(Tree {
            uri: format!("{}{kind}/{id}", source::URI),
            id,
            manifest,
            objects,
            bytes,
        })
    }

    pub(super) async fn under_changeset(
        &self,
        cx: &StepContext,
        id: &str,
    ) -> Result<(Tree, Overlay), StepError> {
        cx.check_resource(&source::changeset_uri(id)).await?;
        let Some(overlay) = cx.own_stores().changesets.overlay(id).await? else {
            return Err(FilesError::UnknownChangeset { id: id.to_string() }.into());
        };
        let base = self.manifest(cx, &overlay.base).await?;
        let tree = Tree {
            id: overlay.base.clone(),
            manifest: Arc::new(base.under(&overlay.changes)?),
            objects: objects(cx),
            uri: source::changeset_uri(id),
            bytes: 0,
        };
        Ok((tree, overlay))
    }

    pub(super) async fn manifest(
        &self,
        cx: &StepContext,
        id: &str,
    ) -> Result<Arc<Manifest>, StepError> {
        let known = self
            .recent
            .borrow()
            .iter()
            .find(|(it, _)| it == id)
            .map(|(_, manifest)| Arc::clone(manifest));
        if let Some(manifest) = known {
            return Ok(manifest);
        }
        let bytes = match cx.own_stores().blobs.get(&BlobHash(id.to_string())).await {
            Ok(bytes) => bytes,
            Err(StoreError::Rejected { .. }) => {
                return Err(FilesError::UnknownTree { id: id.to_string() }.into());
            }
            Err(error) => return Err(error.into()),
        };
        let manifest = Arc::new(Manifest::decode(&bytes)?);
        self.remember(cx, id, &manifest);
        Ok(manifest)
    }

    fn remember(&self, cx: &StepContext, id: &str, manifest: &Arc<Manifest>) {
        const RECENT: usize = 8;
        // Other runs must not find what only a dry test has.
        if cx.files_home() != cx.home() {
            return;
        }
        let mut recent = self.recent.borrow_mut();
        recent.retain(|(it, _)| it != id);
        recent.push_front((id.to_string(), Arc::clone(manifest)));
        recent.truncate(RECENT);
    }
}

fn objects(cx: &StepContext) -> Objects {
    let folder = |home: &Path| home.join("trees").join("objects");
    let own = folder(cx.files_home());
    match cx.files_home() == cx.home() {
        true => Objects::new(own),
        false => Objects::over(own, Objects::new(folder(cx.home()))),
    }
}
