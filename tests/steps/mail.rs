//! Mail of `:notify`: with a server that is played here. A real one is in `tests/servers`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::net::contains;
use crate::project::Project;

/// Starts a server that answers each command in this way, and returns its port and what it got.
fn server(
    answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> (u16, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (got, answer) = (Arc::new(Mutex::new(String::new())), Arc::new(answer));
    let kept = Arc::clone(&got);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .expect("a limit");
            let (answer, got) = (Arc::clone(&answer), Arc::clone(&kept));
            std::thread::spawn(move || talk(stream, &*answer, &got));
        }
    });
    (port, got)
}

fn talk(
    stream: TcpStream,
    answer: &dyn Fn(&str) -> Option<String>,
    got: &Mutex<String>,
) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    let mut line = String::from("hello");
    let mut is_data = false;
    loop {
        if !is_data || line == ".\r\n" {
            match answer(line.trim_end()) {
                Some(text) => out.write_all(text.as_bytes())?,
                // It closes the connection.
                None => return Ok(()),
            }
            is_data = line.trim_end() == "DATA";
        }
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        got.lock().expect("free").push_str(&line);
    }
}

/// The answers of a server that takes everything.
fn taking(line: &str) -> Option<String> {
    let word = line.split([' ', ':']).next().unwrap_or_default();
    let text = match word {
        "hello" => "220 mail\r\n",
        "EHLO" => "250-mail\r\n250-8BITMIME\r\n250 AUTH LOGIN PLAIN\r\n",
        "AUTH" => "235 welcome\r\n",
        "DATA" => "354 go on\r\n",
        _ => "250 fine\r\n",
    };
    Some(text.to_owned())
}

fn tell(port: u16, more: &str) -> String {
    let settings = format!(
        "{{:connections {{:mail {{:base-url \"smtp://127.0.0.1:{port}\" :auth {{:type :basic :username \"flows\" :secret-ref :mail-password}}}}}}}}"
    );
    let project = Project::with_secrets(&settings, &[("mail-password", "pa55-word-1234")]);
    let began = Instant::now();
    let found = project.eval(&format!(
        "(flow/step :notify :tell {{:timeout \"3s\" :on-error :fail :channels {{:email {{:connection :mail :from \"flows@example.com\" {more}}}}}}})"
    ));
    assert!(began.elapsed() < Duration::from_secs(15), "{found}");
    let kept = project.everything_kept();
    for text in [&found, &kept] {
        assert!(
            !text.contains("pa55") && !text.contains("AGZsb3dz"),
            "the secret shows: {text}"
        );
    }
    found
}

const ADA: &str = ":to \"ada@example.com\" :subject \"a\" :text \"b\"";

#[test]
fn a_message_is_handed_over() {
    let (port, got) = server(taking);
    let found = tell(
        port,
        ":to [\"Ada <ada@example.com>\"] :bcc \"bo@example.com\" :subject \"Größe\" :text \"x\\n.\\ny\"",
    );
    contains(
        &found,
        "{:sent? true :channels {:email {:sent? true :status 250 :recipients 2 :message-id \"<",
    );
    let got = got.lock().expect("free").clone();
    contains(&got, "AUTH PLAIN ");
    contains(
        &got,
        "MAIL FROM:<flows@example.com>\r\nRCPT TO:<ada@example.com>\r\nRCPT TO:<bo@example.com>\r\nDATA\r\n",
    );
    contains(&got, "To: Ada <ada@example.com>\r\n");
    contains(&got, "Subject: =?utf-8?b?");
    contains(&got, "\r\nx\r\n..\r\ny\r\n.\r\n");
    assert!(!got.contains("Bcc"), "{got}");
}

#[test]
fn headers_and_recipients_of_others_are_refused() {
    let (port, got) = server(taking);
    for more in [
        ":to \"ada@example.com\" :subject \"a\\r\\nBcc: eve@example.com\" :text \"b\"",
        ":to \"ada@example.com\" :subject \"a\\nb\" :text \"b\"",
        ":to \"ada@example.com\\r\\nRCPT TO:<eve@example.com>\" :subject \"a\" :text \"b\"",
        ":to \"ada@example.com, eve@example.com\" :subject \"a\" :text \"b\"",
        ":to \"<ada@example.com>,<eve@example.com>\" :subject \"a\" :text \"b\"",
        ":to \"ada\" :subject \"a\" :text \"b\"",
        ":to [] :subject \"a\" :text \"b\"",
        ":to \"ada@example.com\" :reply-to \"x\\ny\" :subject \"a\" :text \"b\"",
        ":to \"ada@example.com\" :cc \"Eve\\n <eve@example.com>\" :subject \"a\" :text \"b\"",
        ":to \"ada@example.com\" :subject \"a\"",
        ":to \"ada@example.com\" :text \"b\"",
        ":subject \"a\" :text \"b\"",
    ] {
        contains(&tell(port, more), "E1482");
    }
    contains(
        &tell(port, ":to \"a@example.com\" :subject \"a\" :txt \"b\""),
        "E0726",
    );
    assert_eq!(*got.lock().expect("free"), "");
}

#[test]
fn refusals_of_the_server_are_errors() {
    let refusing = |word: &'static str, answer: &'static str| {
        server(move |line| match line.starts_with(word) {
            true => Some(answer.to_owned()),
            false => taking(line),
        })
        .0
    };
    let cases = [
        (
            "hello",
            "554 no\r\n",
            "E1483",
            "refuses the connection: 554 no",
        ),
        (
            "AUTH",
            "535 wrong\r\n",
            "E1483",
            "refuses the login: 535 wrong",
        ),
        (
            "MAIL",
            "550 who\r\n",
            "E1483",
            "refuses the sender flows@example.com: 550 who",
        ),
        (
            "RCPT",
            "550-no\r\n550 such user\r\n",
            "E1483",
            "refuses the recipient ada@example.com: 550 no such user",
        ),
        (
            ".",
            "552 too large\r\n",
            "E1483",
            "refuses the message: 552 too large",
        ),
        (
            "hello",
            "SSH-2.0-OpenSSH\r\n",
            "E1484",
            "does not speak SMTP",
        ),
        (
            "hello",
            "HTTP/1.1 400 Bad Request\r\n",
            "E1484",
            "does not speak SMTP",
        ),
        (
            "EHLO",
            "250 mail\r\n",
            "E1483",
            "neither AUTH PLAIN nor AUTH LOGIN",
        ),
    ];
    for (word, answer, code, expected) in cases {
        let found = tell(refusing(word, answer), ADA);
        contains(&found, code);
        contains(&found, expected);
    }
}

#[test]
fn servers_that_hang_or_talk_without_end_are_left() {
    let silent = |word: &'static str| {
        server(move |line| match line.starts_with(word) {
            true => Some(String::new()),
            false => taking(line),
        })
        .0
    };
    contains(&tell(silent("hello"), ADA), "E1484 127.0.0.1");
    contains(&tell(silent("DATA"), ADA), "did not answer within");
    contains(
        &tell(silent("."), ADA),
        "E1484 it is not known whether the message was sent",
    );
    let closing = server(|line| taking(line).filter(|_| line != ".")).0;
    contains(
        &tell(closing, ADA),
        "E1484 it is not known whether the message was sent",
    );
    let endless = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = endless.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in endless.incoming().flatten() {
            std::thread::spawn(move || while stream.write_all(&[b'2'; 1024]).is_ok() {});
        }
    });
    contains(&tell(port, ADA), "E1484");
    let dropping = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = dropping.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in dropping.incoming().flatten() {
            let _ = stream.read(&mut [0; 1]).is_ok();
        }
    });
    contains(&tell(port, ADA), "E1484");
}

#[test]
fn connections_of_mail_are_checked() {
    let with = |connection: &str| {
        let settings = format!("{{:connections {{:mail {connection}}}}}");
        let project = Project::with_secrets(&settings, &[("mail-password", "pa55-word-1234")]);
        project.eval(&format!(
            "(flow/step :notify :tell {{:on-error :fail :channels {{:email {{:connection :mail :from \"flows@example.com\" {ADA}}}}}}})"
        ))
    };
    for (connection, expected) in [
        ("{}", "E1482 the connection `:mail` has no `:base-url`"),
        ("{:base-url \"https://127.0.0.1\"}", "is not one of SMTP"),
        ("{:base-url \"smtp://a:b@127.0.0.1\"}", "E1482"),
        ("{:base-url \"smtp://127.0.0.1/x\"}", "E1482"),
        (
            "{:base-url \"smtp://127.0.0.1\" :auth {:type :bearer :secret-ref :mail-password}}",
            "E1482",
        ),
        ("{:base-url \"smtp://169.254.169.254\"}", "E0731"),
    ] {
        contains(&with(connection), expected);
    }
    // TLS is not given up.
    let (port, got) = server(taking);
    let found = with(&format!(
        "{{:base-url \"smtp://localhost:{port}\" :tls :verify :auth {{:type :basic :username \"flows\" :secret-ref :mail-password}}}}"
    ));
    contains(&found, "offers no TLS");
    assert!(!got.lock().expect("free").contains("AUTH"));
}
