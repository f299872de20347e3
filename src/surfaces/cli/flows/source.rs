//! Where an installed flow comes from: the registry, a file, a folder, an archive, a URL, a git repository.
//!
//! Whatever comes from elsewhere ends as bytes of an archive that [`package`] reads. No file is unpacked, no link is followed
//! and nothing of a repository is executed.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use flowstone_engine::codec::digest_bytes;
use flowstone_engine::registry::{MAIN_FILE, VersionFiles};
use flowstone_project::installations::{InstallationError, package};
use flowstone_project::registry::files_of;
use reqwest::Url;

/// Maximum time for a download, and for each command of git.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was found.
pub(super) enum Found {
    /// The name of a flow of the registry.
    Slug(String),
    Files(VersionFiles),
}

/// Finds what is to be installed.
pub(super) async fn find(
    source: &str,
    digest: Option<&str>,
    root: &Path,
) -> Result<Found, InstallationError> {
    if let Some(repository) = source.strip_prefix("git+") {
        refuse_digest(
            digest,
            "a git repository has revisions: name a commit after `@`",
        )?;
        return git(repository).map(Found::Files);
    }
    if source.contains("://") {
        let bytes = download(source, digest).await?;
        return package::read(&bytes).map(Found::Files);
    }
    let path = Path::new(source);
    let is_path = source.contains('/') || path.extension().is_some() || path.exists();
    if !is_path {
        refuse_digest(digest, "a flow of the registry is named by its slug")?;
        return Ok(Found::Slug(source.to_owned()));
    }
    let unread = |error: std::io::Error| InstallationError::Unfetched {
        address: source.to_owned(),
        detail: error.to_string(),
    };
    let is_folder = fs::metadata(path).map_err(unread)?.is_dir();
    let is_flow = path
        .extension()
        .is_some_and(|it| it == "edn" || it == "clj");
    if is_folder || is_flow {
        refuse_digest(digest, "only archives have a digest")?;
        let main = match is_folder {
            true => path.join(MAIN_FILE),
            false => path.to_path_buf(),
        };
        return of_file(&main, root).map(Found::Files);
    }
    let size = fs::metadata(path).map_err(unread)?.len();
    if size > package::MOST as u64 {
        return Err(InstallationError::TooLarge);
    }
    let bytes = fs::read(path).map_err(unread)?;
    check_digest(&bytes, digest)?;
    package::read(&bytes).map(Found::Files)
}

fn refuse_digest(digest: Option<&str>, hint: &str) -> Result<(), InstallationError> {
    match digest {
        None => Ok(()),
        Some(_) => Err(InstallationError::BadSource {
            detail: "`--digest` is for archives".to_owned(),
            hint: hint.to_owned(),
        }),
    }
}

/// Reads a flow file with what it includes.
fn of_file(path: &Path, root: &Path) -> Result<VersionFiles, InstallationError> {
    let name = path
        .strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string();
    let session = flowstone_lang::session::Session::new();
    let checked = flowstone_engine::disk::load(&session, path, &name);
    let worst = checked.findings.first().map(|it| it.message.clone());
    match checked.loaded {
        Some(loaded) => Ok(files_of(&loaded)?),
        None => Err(InstallationError::BadPackage {
            detail: worst.unwrap_or_else(|| format!("{name} holds no flow")),
        }),
    }
}

/// Compares bytes with a digest, if there is one.
fn check_digest(bytes: &[u8], digest: Option<&str>) -> Result<(), InstallationError> {
    let found = digest_bytes(bytes);
    match digest {
        Some(expected) if !expected.trim().eq_ignore_ascii_case(&found) => {
            Err(InstallationError::OtherDigest {
                expected: expected.to_owned(),
                found,
            })
        }
        _ => Ok(()),
    }
}

/// The address of an archive, and the digest that it must have.
#[derive(Debug)]
struct Address {
    url: Url,
    digest: String,
}

impl Address {
    /// Reads `URL` or `URL#sha256=DIGEST`. Only https is taken, and only with a digest.
    fn read(text: &str, digest: Option<&str>) -> Result<Address, InstallationError> {
        let refused = |detail: &str, hint: &str| InstallationError::BadSource {
            detail: detail.to_owned(),
            hint: hint.to_owned(),
        };
        let mut url = Url::parse(text).map_err(|error| {
            refused(
                &format!("`{text}` is no URL: {error}"),
                "as in https://example.com/report.tar.gz#sha256=...",
            )
        })?;
        if url.scheme() != "https" {
            let detail = format!("a package is not fetched from {}:", url.scheme());
            return Err(refused(
                &detail,
                "use an https URL, or download it and install the file",
            ));
        }
        let named = url.fragment().and_then(|it| it.strip_prefix("sha256="));
        let digest = digest.or(named).map(str::to_lowercase);
        let digest = digest.ok_or_else(|| {
            refused(
                "a package from a URL needs a digest",
                "put `#sha256=...` after the URL, or give `--digest`; the author prints it with `flowstone flows pack`",
            )
        })?;
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused(
                "a digest is a SHA-256: 64 hexadecimal digits",
                "`flowstone flows pack` prints it",
            ));
        }
        url.set_fragment(None);
        Ok(Address { url, digest })
    }
}

/// Downloads an archive, and compares it with its digest. Redirects are not followed.
async fn download(text: &str, digest: Option<&str>) -> Result<Vec<u8>, InstallationError> {
    let address = Address::read(text, digest)?;
    let unfetched = |detail: String| InstallationError::Unfetched {
        address: address.url.to_string(),
        detail,
    };
    // Another part of the program may have chosen one already.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .build()
        .map_err(|error| unfetched(error.to_string()))?;
    let sent = client.get(address.url.clone()).send().await;
    let mut response = sent.map_err(|error| unfetched(error.without_url().to_string()))?;
    if !response.status().is_success() {
        return Err(unfetched(format!(
            "the server answered {}",
            response.status()
        )));
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| unfetched(error.without_url().to_string()))? {
            None => break,
            Some(chunk) => bytes.extend_from_slice(&chunk),
        }
        if bytes.len() > package::MOST {
            return Err(InstallationError::TooLarge);
        }
    }
    check_digest(&bytes, Some(&address.digest))?;
    Ok(bytes)
}

/// Settings under which git executes nothing that a repository names.
const NO_PROGRAMS: &[&str] = &[
    "core.alternateRefsCommand=true",
    "core.fsmonitor=false",
    "core.gitProxy=none",
    "core.hooksPath=/dev/null",
    "fetch.uriProtocols=",
    "http.followRedirects=false",
    "transfer.bundleURI=false",
];

/// Returns the files of a revision of a repository: `URL@REVISION` or `PATH@REVISION`.
fn git(repository: &str) -> Result<VersionFiles, InstallationError> {
    let refused = |detail: String| InstallationError::BadSource {
        detail,
        hint: "as in git+https://example.com/flows.git@v1.2".to_owned(),
    };
    let parts = repository
        .rsplit_once('@')
        .filter(|(_, revision)| !revision.contains(['/', ':']));
    let Some((address, revision)) = parts else {
        return Err(refused(
            "a repository needs a revision after `@`".to_owned(),
        ));
    };
    let is_odd =
        |text: &str| text.is_empty() || text.starts_with('-') || text.contains(char::is_control);
    if is_odd(address) || is_odd(revision) || address.contains("::") {
        return Err(refused(format!(
            "`{}` is not a repository",
            repository.escape_debug()
        )));
    }
    let is_remote = address.contains("://") && !address.starts_with("file://");
    if is_remote && !address.starts_with("https://") && !address.starts_with("ssh://") {
        return Err(refused(
            "a repository is fetched by https or ssh, or from a folder".to_owned(),
        ));
    }
    let folder = tempfile::tempdir().map_err(|error| failed_git(repository, error.to_string()))?;
    let at = folder.path();
    run_git(repository, at, &["init", "--bare", "--quiet", "."])?;
    run_git(
        repository,
        at,
        &[
            "fetch",
            "--quiet",
            "--depth",
            "1",
            "--no-tags",
            "--",
            address,
            revision,
        ],
    )?;
    let archive = ["archive", "--format=tar", "FETCH_HEAD"];
    package::read_tar(&run_git(repository, at, &archive)?)
}

fn failed_git(repository: &str, detail: String) -> InstallationError {
    InstallationError::Unfetched {
        address: format!("git+{repository}"),
        detail,
    }
}

/// Runs git in a folder, and returns what it prints.
fn run_git(repository: &str, folder: &Path, args: &[&str]) -> Result<Vec<u8>, InstallationError> {
    let failed = |detail: String| failed_git(repository, detail);
    let mut command = Command::new("git");
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_CONFIG_PARAMETERS",
    ] {
        command.env_remove(name);
    }
    let child = command
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_ALLOW_PROTOCOL", "file:https:ssh")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        .env("LC_ALL", "C")
        .args(NO_PROGRAMS.iter().flat_map(|setting| ["-c", setting]))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| failed(format!("git cannot be started: {error}")))?;
    let (output, complaints) = (child.stdout.take(), child.stderr.take());
    let output = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let most = 2 * package::MOST as u64;
        let read = output.map(|output| output.take(most + 1).read_to_end(&mut bytes));
        (bytes, read.is_none_or(|read| read.is_ok()), most)
    });
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(complaints) = complaints {
            complaints.take(64 << 10).read_to_end(&mut text).ok();
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    });
    let begun = std::time::Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if output.is_finished() && begun.elapsed() > PATIENCE / 2 => {
                child.kill().ok();
            }
            Ok(None) if begun.elapsed() > PATIENCE => {
                child.kill().ok();
            }
            Ok(None) => {}
            Err(error) => return Err(failed(error.to_string())),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (bytes, is_whole, most) = output.join().unwrap_or_default();
    let complaints = complaints.join().unwrap_or_default();
    if bytes.len() as u64 > most {
        return Err(InstallationError::TooLarge);
    }
    match status.success() && is_whole {
        true => Ok(bytes),
        false => Err(failed(match complaints.is_empty() {
            true => format!("git ended with {status}"),
            false => complaints,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, check_digest, git};

    #[test]
    fn a_url_needs_https_and_a_digest() {
        let digest = "0".repeat(64);
        let good = format!("https://example.com/a.tar.gz#sha256={digest}");
        let read = Address::read(&good, None).expect("good");
        assert_eq!(read.url.as_str(), "https://example.com/a.tar.gz");
        assert_eq!(read.digest, digest);
        assert!(Address::read("https://example.com/a", Some(&digest)).is_ok());
        for (text, given) in [
            ("https://example.com/a", None),
            ("https://example.com/a#sha256=12", None),
            ("http://example.com/a", Some(&*digest)),
            ("file:///tmp/a", Some(&*digest)),
            ("ftp://example.com/a", Some(&*digest)),
        ] {
            assert!(Address::read(text, given).is_err(), "{text}");
        }
    }

    #[test]
    fn other_bytes_have_another_digest() {
        let digest = flowstone_engine::codec::digest_bytes(b"a");
        assert!(check_digest(b"a", Some(&digest)).is_ok());
        assert!(check_digest(b"b", Some(&digest)).is_err());
    }

    #[test]
    fn what_is_no_repository_is_refused_before_git_runs() {
        for text in [
            "/tmp/a",
            "-x@main",
            "/tmp/a@-x",
            "ext::sh -c x@main",
            "http://example.com/a@main",
            "git://example.com/a@b",
        ] {
            let error = git(text).expect_err(text);
            assert_eq!(error.code(), "E1454", "{text}: {error}");
        }
    }
}
