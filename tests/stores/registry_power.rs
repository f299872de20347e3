//! Loss of power while versions are added and released: what was acknowledged is there, with all its files.

use std::sync::atomic::{AtomicU64, Ordering};

use flowstone_project::registry::{Base, FlowRegistry, NewCommit, VersionFiles, VersionRef};
use flowstone_stores::{Options, open};

use crate::bench::block_on;
use crate::lossy::{self, Image};
use crate::power::scratch;

const VERSIONS: i64 = 40;

/// Returns the files of a version: a long text with one line that changes, and an included one.
fn files(number: i64) -> VersionFiles {
    let lines = (0..200).map(|line| match line == number {
        true => format!(";; changed by {number}\n"),
        false => format!(";; line {line}\n"),
    });
    let text: String = lines.collect();
    VersionFiles::from([
        ("flow.edn".to_owned(), text.into_bytes()),
        ("part.edn".to_owned(), number.to_string().into_bytes()),
    ])
}

/// Returns how many versions are left in the files of a lost machine, after checking each of them.
fn versions_left(image: &Image) -> i64 {
    let folder = tempfile::tempdir_in(scratch()).expect("a folder");
    image.restore(folder.path());
    let stores = open(folder.path(), &Options::default()).expect("what is left opens");
    let registry = FlowRegistry::new(&stores, 1);
    block_on(async {
        let Some(flow) = registry.find("report").await.expect("readable") else {
            return 0;
        };
        let versions = registry
            .versions("report", None, 100)
            .await
            .expect("a list");
        assert_eq!(versions.len() as i64, flow.head);
        for version in &versions {
            let found = registry.files(version).await.expect("its files");
            assert_eq!(found, files(version.number));
        }
        let log = registry.releases("report", 100).await.expect("a log");
        assert_eq!(flow.live, log.first().map(|line| line.version));
        if let Some(live) = flow.live {
            let live = VersionRef::Number(live);
            registry.version("report", &live).await.expect("it exists");
        }
        flow.head
    })
}

#[test]
fn acknowledged_versions_survive_a_loss_of_power() {
    static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
    let folder = tempfile::tempdir_in(scratch()).expect("a folder");
    let home = folder.path().canonicalize().expect("a path");
    let options = Options {
        vfs: Some(lossy::NAME.to_owned()),
        ..Options::default()
    };
    lossy::watch(&home, 9, || ACKNOWLEDGED.load(Ordering::SeqCst));
    let stores = open(&home, &options).expect("opens");
    let registry = FlowRegistry::new(&stores, 1);
    block_on(async {
        for number in 1..=VERSIONS {
            let new = NewCommit {
                base: Base::Any,
                message: number.to_string(),
                ..NewCommit::of("report", files(number))
            };
            registry.commit(new).await.expect("added");
            ACKNOWLEDGED.store(number.cast_unsigned(), Ordering::SeqCst);
            if number % 3 == 0 {
                let released = registry.release("report", None, ("ada", "")).await;
                released.expect("released");
            }
        }
    });
    drop((registry, stores));
    let images = lossy::images(&home);
    assert!(images.len() > 40, "{} images", images.len());
    for image in &images {
        let left = versions_left(image).cast_unsigned();
        assert!(
            left >= image.note,
            "{left} left, {} acknowledged",
            image.note
        );
    }
    assert!(images.iter().any(|image| image.note > 35));
}
