//! `flowstone nrepl` and `flowstone repl --socket`: what clients send that no editor would, and who leaves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::program::Scratch;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(scratch: &Scratch, args: &[&str]) -> Server {
        let mut command = scratch.command(args);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe"))
            .read_line(&mut line)
            .expect("it says where it listens");
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "port").expect(&line);
        let port = words[at + 1].parse().expect("a port");
        Server { child, port }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends bytes on a connection of its own, and returns what comes until the server ends it, or `end` has come.
    fn answer(&self, bytes: &[u8], end: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("it reads");
        until(&mut stream, end)
    }

    fn still_answers(&self) {
        let answer = self.answer(b"d4:code7:(+ 1 2)2:id1:12:op4:evale", "4:donee");
        assert!(answer.contains("5:value1:3"), "{answer}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    let begun = Instant::now();
    while !String::from_utf8_lossy(&seen).contains(end) && begun.elapsed() < PATIENCE {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => seen.extend_from_slice(&piece[..count]),
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn malformed_messages_are_refused_and_end_their_connection_only() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["nrepl"]);
    assert_eq!(scratch.read(".nrepl-port"), server.port.to_string());
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".as_slice(),
        b"i1e",
        b"d2:opi1x",
        b"d99999999999:",
        &[b"d1:a".as_slice(), &[b'l'; 100]].concat(),
    ] {
        let answer = server.answer(bytes, "never");
        assert!(answer.contains("13:bencode-error"), "{answer}");
    }
    // Messages without an operation, with an unknown one, or for a session that does not exist.
    assert!(server.answer(b"de", "4:donee").contains("10:unknown-op"));
    assert!(
        server
            .answer(b"d2:op3:foxe", "4:donee")
            .contains("10:unknown-op")
    );
    assert!(
        server
            .answer(b"d2:op4:eval7:session1:xe", "4:donee")
            .contains("15:unknown-session")
    );
    assert!(
        server
            .answer(b"d2:op11:socket/evale", "4:donee")
            .contains("10:unknown-op")
    );
    server.still_answers();
}

#[test]
fn clients_that_leave_or_do_not_read_stop_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["nrepl"]);
    // Half a message.
    drop(server.connect().write_all(b"d2:op4:eval4:code100:("));
    // An evaluation that waits for input, whose client leaves.
    let mut stream = server.connect();
    stream
        .write_all(b"d4:code11:(read-line)2:op4:evale")
        .expect("sent");
    assert!(until(&mut stream, "10:need-input").contains("need-input"));
    drop(stream);
    server.still_answers();
    // Many sessions, and many clients.
    let mut clients: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.write_all(b"d2:op5:clonee").expect("sent");
        assert!(until(client, "4:donee").contains("11:new-session"));
    }
    drop(clients);
    server.still_answers();
    // Too many sessions of one client.
    let mut stream = server.connect();
    let mut answers = String::new();
    for _ in 0..300 {
        stream.write_all(b"d2:op5:clonee").expect("sent");
        answers.push_str(&until(&mut stream, "4:donee"));
    }
    assert!(answers.contains("17:too-many-sessions"));
    server.still_answers();
}

#[test]
fn steps_of_clients_obey_the_permissions_of_the_project() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    let server = Server::start(&scratch, &["nrepl"]);
    let code = "(flow/step :http :x {:url \"http://127.0.0.1:9/\"})";
    let message = format!("d4:code{}:{code}2:op4:evale", code.len());
    let answer = server.answer(message.as_bytes(), "4:donee");
    assert!(
        answer.contains("10:eval-error") && answer.contains("E09"),
        "{answer}"
    );
    let code = "(slurp \"flowstone.edn\")";
    let message = format!("d4:code{}:{code}2:op4:evale", code.len());
    let answer = server.answer(message.as_bytes(), "4:donee");
    assert!(answer.contains("--allow-files"), "{answer}");
}

#[test]
fn a_socket_prompt_reads_forms_and_prints_values() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["repl", "--socket", "0"]);
    let mut stream = server.connect();
    stream
        .write_all(b"(+ 1\n2)\n:a :b\n(println \"out\")\n(read-line)\nthe line\n(ns my.own)\n(nope)\n:repl/quit\n")
        .expect("it reads");
    let seen = until(&mut stream, "never");
    assert!(
        seen.starts_with(
            "user=> 3\nuser=> :a\n:b\nuser=> out\nnil\nuser=> \"the line\"\nuser=> nil\nmy.own=> "
        ),
        "{seen}"
    );
    assert!(seen.contains("`nope` is not defined"), "{seen}");
    // Another connection has another namespace, and the end of its input ends it.
    let mut stream = server.connect();
    stream.write_all(b"(str *1)\n").expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("an end");
    assert_eq!(until(&mut stream, "never"), "user=> \"\"\nuser=> ");
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let ran = Scratch::new().run(&["nrepl", "--port", &port]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("E1555"), "{}", ran.err);
}
