//! A blob that arrives in parts: a temporary file until its hash is known.
//!
//! The file is in a folder beside those of complete blobs, so that the search for unnamed blobs finds what a crash
//! leaves behind. Dropping an unfinished blob removes the file.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flowstone_model::blob::BlobHash;
use flowstone_model::codec::Digester;
use flowstone_model::ports::{BlobWriter, PortFuture, StoreError, StoredBlob};
use flowstone_model::private;

use super::{Sharing, is_there, lock, place, unwritable};

/// The folder of unfinished blobs.
const FOLDER: &str = "incoming";
/// Parts are buffered up to this size, so that small ones do not each cost a switch of threads.
const GATHERED: usize = 1 << 20;

/// Starts a blob; its parts are written on other threads.
///
/// # Errors
/// When the folder cannot be written.
pub fn begin(folder: &Path) -> Result<Incoming, StoreError> {
    Ok(Incoming {
        gathered: Vec::new(),
        written: Some(Box::new(begin_here(folder)?)),
    })
}

/// Starts a blob that is written on this thread.
///
/// # Errors
/// When the folder cannot be written.
pub fn begin_here(folder: &Path) -> Result<Written, StoreError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let parent = folder.join(FOLDER);
    private::make_folder(&parent).map_err(|error| unwritable(&parent, &error))?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = parent.join(format!("{}-{count}", std::process::id()));
    let file = private::create(&path).map_err(|error| unwritable(&path, &error))?;
    Ok(Written {
        folder: folder.to_owned(),
        file,
        unfinished: Unfinished(path),
        digest: Digester::default(),
        size: 0,
    })
}

/// A blob that is not complete.
pub struct Incoming {
    gathered: Vec<u8>,
    /// The file; `None` after a failure, or while another thread writes to it.
    written: Option<Box<Written>>,
}

/// The file of an incomplete blob, on the thread that writes it.
pub struct Written {
    folder: PathBuf,
    file: File,
    unfinished: Unfinished,
    digest: Digester,
    size: u64,
}

/// A file that is removed on drop unless it was completed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl BlobWriter for Incoming {
    fn write(&mut self, bytes: &[u8]) -> PortFuture<'_, ()> {
        self.gathered.extend_from_slice(bytes);
        let is_full = self.gathered.len() >= GATHERED;
        Box::pin(async move {
            if is_full {
                self.flush().await?;
            }
            Ok(())
        })
    }

    fn finish(mut self: Box<Self>) -> PortFuture<'static, StoredBlob> {
        Box::pin(async move {
            self.flush().await?;
            let written = self.written.take().ok_or_else(torn)?;
            blocking(move || written.finish()).await
        })
    }
}

impl Incoming {
    async fn flush(&mut self) -> Result<(), StoreError> {
        let mut written = self.written.take().ok_or_else(torn)?;
        let bytes = std::mem::take(&mut self.gathered);
        let (written, mut bytes) = blocking(move || {
            written.write(&bytes)?;
            Ok((written, bytes))
        })
        .await?;
        bytes.clear();
        self.gathered = bytes;
        self.written = Some(written);
        Ok(())
    }
}

impl Written {
    /// Appends bytes.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| unwritable(&self.unfinished.0, &error))?;
        self.digest.add(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Completes the blob.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<StoredBlob, StoreError> {
        let Written {
            folder,
            file,
            unfinished,
            digest,
            size,
        } = self;
        let hash = BlobHash(digest.finish());
        let path = place(&folder, &hash)?;
        let parent = path.parent().unwrap_or(&folder);
        private::make_folder(parent).map_err(|error| unwritable(parent, &error))?;
        let _lock = lock(&folder, Sharing::Shared)?;
        if !is_there(&path, size) {
            let named = file
                .sync_all()
                .and_then(|()| fs::rename(&unfinished.0, &path))
                // The entry of the file is durable only when its folder is.
                .and_then(|()| File::open(parent)?.sync_all());
            named.map_err(|error| unwritable(&path, &error))?;
        }
        Ok(StoredBlob { hash, size })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Internal(format!("writing a blob stopped: {error}")))?
}

fn torn() -> StoreError {
    StoreError::Internal("a blob was written to after a failure".to_owned())
}
