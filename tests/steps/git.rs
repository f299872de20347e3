//! Git repositories for tests, and a local server for them with git's own `http-backend`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;

use crate::test_server::{Answer, Request, Server, reply};

/// Runs git in a folder, with the identity of a test user, and returns its output.
#[track_caller]
pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Ann",
            "-c",
            "user.email=ann@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Creates a bare repository `<name>.git` in a folder, with a commit on `main` that has these files.
pub fn bare(folder: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let work = folder.join(format!("{name}-work"));
    std::fs::create_dir_all(&work).expect("a folder");
    git(&work, &["init", "--quiet"]);
    for (path, content) in files {
        let path = work.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let bare = folder.join(format!("{name}.git"));
    git(
        folder,
        &[
            "clone",
            "--quiet",
            "--bare",
            &work.display().to_string(),
            &bare.display().to_string(),
        ],
    );
    bare
}

/// Serves the repositories of a folder with `git http-backend` for the duration of the test, and returns the address.
/// With a user, requests without its credentials are refused.
pub fn serve(folder: &Path, user: Option<(&str, &str)>) -> String {
    let folder = folder.to_path_buf();
    let expected = user.map(|(name, password)| {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
        format!("Basic {pair}")
    });
    let server = Server::start(move |request, _| answer(request, &folder, expected.as_deref()));
    server.url("")
}

fn answer(request: &Request, folder: &Path, expected: Option<&str>) -> Answer {
    let authorization = request.header("authorization");
    if expected.is_some() && authorization != expected {
        return reply(
            "401 Unauthorized",
            &["www-authenticate: Basic realm=\"git\""],
            "",
        );
    }
    backend(request, folder).unwrap_or(Answer::Raw(Vec::new()))
}

/// Answers a request by `git http-backend`, or nothing if that fails.
fn backend(request: &Request, folder: &Path) -> Option<Answer> {
    let header = |name: &str| request.header(name).unwrap_or_default();
    let body = request.body_bytes.clone();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut child = Command::new("git")
        .args(["-c", "http.receivepack=true", "http-backend"])
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let writer = std::thread::spawn(move || stdin.write_all(&body).ok());
    let mut said = Vec::new();
    child.stdout.take()?.read_to_end(&mut said).ok()?;
    writer.join().ok();
    child.wait().ok()?;
    let end = said.windows(4).position(|it| it == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&said[..end]).into_owned();
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let headers: Vec<&str> = head
        .lines()
        .filter(|line| !line.starts_with("Status: "))
        .collect();
    Some(reply(status, &headers, &said[end + 4..]))
}
