//! Git repositories for tests, and a local server for them with git's own `http-backend`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;

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
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let folder = folder.to_path_buf();
    let expected = user.map(|(name, password)| {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
        format!("Basic {pair}")
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (folder, expected) = (folder.clone(), expected.clone());
            std::thread::spawn(move || answer(stream, &folder, expected.as_deref()));
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn answer(stream: TcpStream, folder: &Path, expected: Option<&str>) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    let mut first = String::new();
    input.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let header = |name: &str| {
        headers
            .iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    };
    if header("expect").is_some() {
        output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let body = match header("content-length").and_then(|it| it.parse::<usize>().ok()) {
        Some(length) => {
            let mut body = vec![0; length];
            input.read_exact(&mut body).ok()?;
            body
        }
        None if header("transfer-encoding").is_some() => chunks(&mut input)?,
        None => Vec::new(),
    };
    if expected.is_some() && header("authorization") != expected {
        let refusal = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"git\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return output.write_all(refusal.as_bytes()).ok();
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut child = Command::new("git")
        .args(["-c", "http.receivepack=true", "http-backend"])
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &method)
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env(
            "HTTP_CONTENT_ENCODING",
            header("content-encoding").unwrap_or_default(),
        )
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
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
    let rest: String = head
        .lines()
        .filter(|line| !line.starts_with("Status: "))
        .map(|line| format!("{line}\r\n"))
        .collect();
    let length = said.len() - end - 4;
    let answer =
        format!("HTTP/1.1 {status}\r\n{rest}content-length: {length}\r\nconnection: close\r\n\r\n");
    output.write_all(answer.as_bytes()).ok()?;
    output.write_all(&said[end + 4..]).ok()
}

fn chunks(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        input.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend(&chunk[..size]);
    }
}
