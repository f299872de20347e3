//! The project's key: its format is stable, and its loss affects only secrets.

use std::fs;
use std::path::Path;

use flowstone_engine::ports::{Vault, VaultError};
use flowstone_stores::vault::{FILE, ProjectVault};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

fn given(keys: &str) -> ProjectVault {
    ProjectVault::new(Path::new("/nowhere"), Some(keys.to_owned()))
}

/// Later builds must read what earlier builds encrypted.
#[test]
fn envelopes_of_earlier_builds_can_be_decrypted() {
    let vault = given(KEY);
    let envelope = vault.seal(b"[\"correct horse\"]").expect("sealed");
    expect_test::expect![
        "fs1.890df68f.XAAEr0oWY4lboR0ng6IqeyjIpaD8x7L413YHGvvAGnXz5FLuB8fcKSaUsnpk"
    ]
    .assert_eq(&envelope);
    assert_eq!(
        vault.open(&envelope).expect("opened"),
        b"[\"correct horse\"]"
    );
    // Equal texts have equal envelopes, and different texts have different ones.
    assert_eq!(vault.seal(b"[\"correct horse\"]"), Ok(envelope.clone()));
    assert_ne!(vault.seal(b"[\"correct horsf\"]"), Ok(envelope.clone()));
    assert_ne!(given(OTHER).seal(b"[\"correct horse\"]"), Ok(envelope));
}

#[test]
fn a_changed_envelope_is_refused() {
    let vault = given(KEY);
    let envelope = vault.seal(b"some text").expect("sealed");
    let (head, body) = envelope.rsplit_once('.').expect("three parts");
    for at in 0..body.len() {
        let other = if &body[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{head}.{}{other}{}", &body[..at], &body[at + 1..]);
        let opened = vault.open(&changed);
        let is_refused = matches!(
            opened,
            Err(VaultError::Changed { .. } | VaultError::Unreadable { .. })
        );
        assert!(is_refused, "{at}: {opened:?}");
    }
    let rows = [
        "",
        "fs1",
        "fs1.x",
        "fs2.7a7e8ab6.AAAA",
        "fs1.890df68f.****",
        "a.b.c.d",
    ];
    for row in rows {
        assert_eq!(vault.open(row).expect_err(row).code(), "E0983", "{row}");
    }
    let (id, _) = head
        .rsplit_once('.')
        .map(|(_, id)| (id, ()))
        .expect("an id");
    assert_eq!(
        vault
            .open(&format!("fs1.{id}.AAAA"))
            .expect_err("short")
            .code(),
        "E0983"
    );
}

#[test]
fn keys_of_the_environment_are_used_and_never_replaced() {
    let envelope = given(KEY).seal(b"text").expect("sealed");
    let missing = given(OTHER).open(&envelope).expect_err("another key");
    assert_eq!(missing.code(), "E0982");
    let both = given(&format!("{OTHER},{KEY}"));
    assert_eq!(both.open(&envelope).expect("the old key is there"), b"text");
    assert_ne!(both.seal(b"text").expect("sealed"), envelope);
    assert_eq!(
        both.renew().expect_err("not ours to change").code(),
        "E0986"
    );
    for wrong in ["abc", &KEY[1..], &KEY.replace('0', "g"), ","] {
        assert_eq!(
            given(wrong).seal(b"text").expect_err(wrong).code(),
            "E0985",
            "{wrong}"
        );
    }
}

#[test]
fn the_key_file_is_made_when_it_is_needed() {
    let home = tempfile::tempdir().expect("a folder");
    let vault = ProjectVault::new(home.path(), None);
    let path = home.path().join(FILE);
    assert_eq!(vault.keys().expect("no key").current, None);
    assert!(!path.exists());
    let envelope = vault.seal(b"text").expect("sealed");
    let text = fs::read_to_string(&path).expect("a file");
    assert_eq!(text.lines().filter(|line| line.len() == 64).count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let again = ProjectVault::new(home.path(), None);
    assert_eq!(again.open(&envelope).expect("the same key"), b"text");

    fs::remove_file(&path).expect("it was there");
    let lost = again.open(&envelope).expect_err("no key");
    assert_eq!(lost.code(), "E0982");
    assert!(lost.hint().contains(FILE), "{}", lost.hint());
    // Opening creates no new key that would hide the problem.
    assert!(!path.exists());
    fs::write(&path, "not a key\n").expect("written");
    assert_eq!(again.seal(b"text").expect_err("no key").code(), "E0985");
    assert_eq!(fs::read_to_string(&path).expect("a file"), "not a key\n");
}

#[test]
fn a_new_key_keeps_the_old_ones() {
    let home = tempfile::tempdir().expect("a folder");
    let vault = ProjectVault::new(home.path(), None);
    let old = vault.seal(b"text").expect("sealed");
    vault.renew().expect("a new key");
    let keys = vault.keys().expect("keys");
    assert_eq!(keys.old.len(), 1);
    assert!(old.contains(&keys.old[0]));
    let new = vault.seal(b"text").expect("sealed");
    assert_ne!(old, new);
    assert_eq!(vault.open(&old).expect("the old key"), b"text");
    vault.forget_old().expect("forgotten");
    assert_eq!(vault.open(&old).expect_err("it is gone").code(), "E0982");
    assert_eq!(vault.open(&new).expect("the new key"), b"text");
    let left: Vec<_> = fs::read_dir(home.path())
        .expect("a folder")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1);
}

/// Without the lock, each process would keep the key that it found, and drop the one that another made in the meantime.
#[test]
fn keys_created_by_concurrent_processes_are_all_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let envelopes: Vec<String> = std::thread::scope(|scope| {
        let renew = || {
            let vault = ProjectVault::new(home.path(), None);
            let _exclusive = vault.exclusive().expect("a lock");
            vault.renew().expect("a new key");
            vault.seal(b"text").expect("sealed")
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(renew)).collect();
        all.into_iter()
            .map(|it| it.join().expect("joined"))
            .collect()
    });
    let vault = ProjectVault::new(home.path(), None);
    for envelope in envelopes {
        assert_eq!(vault.open(&envelope).expect("its key"), b"text");
    }
}

#[test]
fn temporary_key_files_of_killed_processes_are_removed() {
    let home = tempfile::tempdir().expect("a folder");
    let vault = ProjectVault::new(home.path(), None);
    vault.seal(b"text").expect("sealed");
    let aside = home.path().join(format!(".{FILE}-7a7e8ab6"));
    fs::write(&aside, KEY).expect("written");
    drop(vault.exclusive().expect("a lock"));
    assert!(!aside.exists());
    assert!(home.path().join(FILE).exists());
}

#[test]
fn several_processes_agree_about_the_first_key() {
    let home = tempfile::tempdir().expect("a folder");
    let envelopes: Vec<String> = std::thread::scope(|scope| {
        let vaults: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    ProjectVault::new(home.path(), None)
                        .seal(b"text")
                        .expect("sealed")
                })
            })
            .collect();
        vaults
            .into_iter()
            .map(|it| it.join().expect("no panic"))
            .collect()
    });
    assert!(envelopes.iter().all(|it| *it == envelopes[0]));
}

/// The form in which earlier builds stored inputs.
#[test]
fn a_stored_input_has_two_parts() {
    use flowstone_engine::sealed::{join, split};
    let stored = "{:password \"[secret]\"}\n#flowstone/sealed [[[:password]] \"fs1.890df68f.XAA\"]";
    let both = split(stored);
    assert_eq!(both.shown, "{:password \"[secret]\"}");
    assert_eq!(both.sealed, Some("[[[:password]] \"fs1.890df68f.XAA\"]"));
    assert_eq!(join(both.shown, both.sealed), stored);
    // An input without secrets is unchanged, even one that contains the mark.
    let plain = "{:a \"x\\n#flowstone/sealed [1]\"}";
    assert_eq!((split(plain).shown, split(plain).sealed), (plain, None));
}
