//! The process of `ssh`: what it may do, and its end.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command as Process};

use super::command::Command;
use super::error::SshError;
use super::files::Files;
use super::target::{PROGRAM, Target};

/// How a command ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ended {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The exit code of `ssh` if it fails itself.
const OF_SSH: i32 = 255;
/// The largest log of `ssh` that is read.
const LOG_MAX: u64 = 64 << 10;

/// Executes a command.
pub(super) async fn execute(target: &Target, command: &Command) -> Result<Ended, SshError> {
    let address = target.resolve(command.connect_time).await?;
    let files = Files::write(target)?;
    let mut process = process(target, command, &files, &address.to_string());
    let child = process.spawn().map_err(|error| SshError::NoProgram {
        cause: error.to_string(),
    })?;
    // Dropped with this future, it kills `ssh` and what `ssh` has started.
    let mut group = Group(child);
    let place = target.place();
    let ended = tokio::time::timeout(command.time, talk(&mut group.0, command, &place)).await;
    let (status, stdout, stderr) = ended.map_err(|_| SshError::TimedOut {
        place: place.clone(),
        limit: command.time,
    })??;
    let log = read_log(&files.log());
    match (status.code(), log.is_empty()) {
        // The command may end with this code, too; then `ssh` has nothing to say.
        (Some(OF_SSH), false) => Err(failure(place, &log)),
        (Some(exit), _) => Ok(Ended {
            exit,
            stdout: text(&stdout),
            stderr: text(&stderr),
        }),
        (None, _) => Err(SshError::Lost {
            place,
            cause: format!("`ssh` ended with {status}"),
        }),
    }
}

fn process(target: &Target, command: &Command, files: &Files, address: &str) -> Process {
    let seconds = command.connect_time.as_millis().div_ceil(1000).max(1);
    let (port, known_as) = (target.port, target.known_as());
    let mut options = vec![
        format!("HostName={address}"),
        format!("HostKeyAlias={known_as}"),
        format!("ConnectTimeout={seconds}"),
        "StrictHostKeyChecking=yes".to_owned(),
        "CheckHostIP=no".to_owned(),
        "UpdateHostKeys=no".to_owned(),
        "VerifyHostKeyDNS=no".to_owned(),
        "PasswordAuthentication=no".to_owned(),
        "KbdInteractiveAuthentication=no".to_owned(),
        "GSSAPIAuthentication=no".to_owned(),
        "NumberOfPasswordPrompts=1".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
        "ForwardAgent=no".to_owned(),
        "ForwardX11=no".to_owned(),
        "PermitLocalCommand=no".to_owned(),
        "ControlMaster=no".to_owned(),
        "ControlPath=none".to_owned(),
        "EscapeChar=none".to_owned(),
        "ServerAliveInterval=15".to_owned(),
        "ServerAliveCountMax=3".to_owned(),
        "LogLevel=ERROR".to_owned(),
    ];
    if let Some(path) = &files.known_hosts {
        // Quotes: the value is a list of names with spaces between.
        options.push(format!("UserKnownHostsFile=\"{}\"", path.display()));
        options.push("GlobalKnownHostsFile=none".to_owned());
    }
    if let Some(path) = &files.key {
        options.push(format!("IdentityFile=\"{}\"", path.display()));
        options.push("IdentitiesOnly=yes".to_owned());
        options.push("IdentityAgent=none".to_owned());
    }
    if files.askpass.is_none() {
        options.push("BatchMode=yes".to_owned());
    }
    let mut process = Process::new(PROGRAM);
    process
        .args(["-F", "none", "-a", "-x"])
        .arg(if command.has_terminal { "-tt" } else { "-T" })
        .arg("-E")
        .arg(files.log())
        .args(options.iter().flat_map(|option| ["-o", option]))
        .args(["-p", &port.to_string(), "-l", &target.user, "--"])
        .args([target.host.trim_matches(['[', ']']), &command.line()])
        .env_remove("SSH_ASKPASS")
        .env("LC_ALL", "C")
        .stdin(match command.stdin.is_empty() {
            true => Stdio::null(),
            false => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let (Some(askpass), Some(passphrase)) = (&files.askpass, &target.passphrase) {
        process
            .env("SSH_ASKPASS", askpass)
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("FLOWSTONE_SSH_PASSPHRASE", passphrase.reveal());
    }
    #[cfg(unix)]
    process.process_group(0);
    process
}

/// A process with its group, which ends with it.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        // After it was waited for, there is no id, which may belong to another process then.
        if let Some(id) = self.0.id()
            && let Ok(id) = i32::try_from(id)
        {
            use nix::sys::signal::{Signal, killpg};
            killpg(nix::unistd::Pid::from_raw(id), Signal::SIGKILL).ok();
        }
        self.0.start_kill().ok();
    }
}

type Output = (ExitStatus, Vec<u8>, Vec<u8>);

/// Sends the input and reads both outputs, all at once, until the process ends.
async fn talk(child: &mut Child, command: &Command, place: &str) -> Result<Output, SshError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let lost = |error: io::Error| SshError::Lost {
        place: place.to_owned(),
        cause: error.to_string(),
    };
    let send = async {
        if let Some(mut stdin) = stdin {
            // A command may end before it has read its input.
            stdin.write_all(&command.stdin).await.ok();
            stdin.shutdown().await.ok();
        }
        Ok(())
    };
    let limit = command.max_output;
    let too_large = || SshError::TooLarge {
        place: place.to_owned(),
        limit,
    };
    let read = |read: Result<Option<Vec<u8>>, io::Error>| match read {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(too_large()),
        Err(error) => Err(lost(error)),
    };
    let (stdout, stderr, ()) = tokio::try_join!(
        async { read(bounded(stdout, limit).await) },
        async { read(bounded(stderr, limit).await) },
        send,
    )?;
    let status = child.wait().await.map_err(lost)?;
    Ok((status, stdout, stderr))
}

/// Reads to the end; `None` if there is more than allowed.
async fn bounded(
    from: Option<impl AsyncRead + Unpin>,
    limit: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        from.take(most).read_to_end(&mut bytes).await?;
    }
    Ok((bytes.len() <= limit).then_some(bytes))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read_log(path: &Path) -> String {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        file.take(LOG_MAX).read_to_end(&mut bytes).ok();
    }
    text(&bytes).trim().to_owned()
}

/// Names a failure of `ssh` by its messages.
fn failure(place: String, log: &str) -> SshError {
    let has = |signs: &[&str]| signs.iter().any(|sign| log.contains(sign));
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let cause = lines.next_back().unwrap_or("it gave no reason").to_owned();
    if has(&[
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "HOST IDENTIFICATION HAS CHANGED",
    ]) {
        return SshError::KeyChanged { place };
    }
    if has(&["Host key verification failed", "host key is known for"]) {
        return SshError::KeyUnknown { place };
    }
    if has(&[
        "Permission denied",
        "Too many authentication failures",
        "Load key",
        "no mutual signature",
        "invalid format",
        "incorrect passphrase",
    ]) {
        return SshError::Login { place, cause };
    }
    if has(&[
        "Connection refused",
        "No route to host",
        "Network is unreachable",
        "timed out during banner exchange",
        "Connection timed out",
        "banner exchange",
        "Connection closed by",
        "kex_exchange_identification",
        "Could not resolve",
        "connect to host",
    ]) {
        return SshError::Unreachable { place, cause };
    }
    SshError::Lost { place, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_named_by_the_messages_of_ssh() {
        let named = |log: &str| {
            let error = flowstone_flow::step::StepError::from(failure("web-1".into(), log));
            format!("{} {}", error.code, error.kind)
        };
        let cases = [
            (
                "@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.",
                "E1476 untrusted",
            ),
            (
                "No ED25519 host key is known for web-1 and you have requested strict checking.\nHost key verification failed.",
                "E1476 untrusted",
            ),
            (
                "ada@web-1: Permission denied (publickey).",
                "E1477 unauthorized",
            ),
            (
                "ssh: connect to host web-1 port 22: Connection refused",
                "E1477 unavailable",
            ),
            (
                "Connection to web-1 closed by remote host.",
                "E1477 in-doubt",
            ),
            ("Timeout, server web-1 not responding.", "E1477 in-doubt"),
        ];
        for (log, expected) in cases {
            assert_eq!(named(log), expected, "{log}");
        }
    }
}
