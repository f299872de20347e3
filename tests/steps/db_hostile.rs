//! `:db` with servers that hang, send without end, or are something else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::net::contains;
use crate::project::Project;

/// Starts a server that treats each connection in this way, and returns its port.
fn server(treat: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let treat = Arc::new(treat);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let treat = Arc::clone(&treat);
            let limit = Some(Duration::from_secs(20));
            stream.set_read_timeout(limit).expect("a limit");
            stream.set_write_timeout(limit).expect("a limit");
            std::thread::spawn(move || treat(stream));
        }
    });
    port
}

fn project(scheme: &str, port: u16) -> Project {
    Project::with_secrets(
        &format!(
            "{{:connections {{:shop {{:base-url \"{scheme}://ada@127.0.0.1:{port}/shop\" :auth {{:type :basic :secret-ref :shop-password}}}}}}}}"
        ),
        &[("shop-password", "pa55-word-1234")],
    )
}

const STEP: &str = "(flow/step :db :it {:connection :shop :sql \"select 1 as a\" :timeout \"3s\" :retry {:max-attempts 1} MORE})";

/// Performs a step, which must end soon, and returns its outcome.
#[track_caller]
fn outcome(scheme: &str, port: u16, more: &str) -> String {
    let began = Instant::now();
    let project = project(scheme, port);
    let found = project.eval(&STEP.replace("MORE", more));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}: {found}");
    let kept = project.everything_kept();
    for text in [&found, &kept] {
        assert!(!text.contains("pa55"), "the secret shows: {text}");
    }
    found
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

const READY: &[u8] = b"Z\0\0\0\x05I";

/// Plays PostgreSQL up to the statement, whose columns are one text, and returns the connection.
fn postgres(mut stream: TcpStream) -> std::io::Result<TcpStream> {
    let mut buffer = [0; 4096];
    // The greeting: no password is wanted.
    let _ = stream.read(&mut buffer)?;
    stream.write_all(&[&message(b'R', &[0; 4])[..], READY].concat())?;
    // The settings of the session.
    let _ = stream.read(&mut buffer)?;
    stream.write_all(&[&message(b'C', b"BEGIN\0")[..], READY].concat())?;
    // The statement.
    let _ = stream.read(&mut buffer)?;
    let column = [b"a\0".as_slice(), &[0; 6], &25_u32.to_be_bytes(), &[0; 8]].concat();
    let columns = [&1_u16.to_be_bytes()[..], &column].concat();
    stream.write_all(
        &[
            message(b'1', b""),
            message(b't', &[0, 0]),
            message(b'T', &columns),
            READY.to_vec(),
        ]
        .concat(),
    )?;
    // Its execution.
    let _ = stream.read(&mut buffer)?;
    stream.write_all(&message(b'2', b""))?;
    Ok(stream)
}

fn postgres_row(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("short");
    message(
        b'D',
        &[&1_u16.to_be_bytes()[..], &length.to_be_bytes(), text].concat(),
    )
}

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("short").to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

/// Plays MySQL up to the statement, whose columns are one text, and returns the connection.
fn mysql(mut stream: TcpStream) -> std::io::Result<TcpStream> {
    let mut buffer = [0; 4096];
    let greeting = [
        b"\x0a8.0.0\0".as_slice(),
        &[1, 0, 0, 0],
        b"saltsalt\0",
        &[0x08, 0xa2, 45, 2, 0, 0x08, 0x00, 21],
        &[0; 10],
        b"saltsaltsalt\0",
        b"mysql_native_password\0",
    ]
    .concat();
    stream.write_all(&packet(0, &greeting))?;
    let _ = stream.read(&mut buffer)?;
    let fine = [0, 0, 0, 2, 0, 0, 0];
    stream.write_all(&packet(2, &fine))?;
    // The settings of the session, and the beginning of the transaction.
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if buffer[4] == 0x16 {
            break;
        }
        stream.write_all(&packet(1, &fine))?;
    }
    let column = b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0";
    let end = [0xfe, 0, 0, 2, 0];
    let prepared = [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    stream.write_all(&[packet(1, &prepared), packet(2, column), packet(3, &end)].concat())?;
    let _ = stream.read(&mut buffer)?;
    stream.write_all(&[packet(1, &[1]), packet(2, column), packet(3, &end)].concat())?;
    Ok(stream)
}

#[test]
fn servers_that_answer_are_understood() {
    let port = server(|stream| {
        let mut stream = postgres(stream)?;
        let done = [
            postgres_row(b"x"),
            message(b'C', b"SELECT 1\0"),
            READY.to_vec(),
        ];
        stream.write_all(&done.concat())?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    assert_eq!(outcome("postgres", port, ""), "[{:a \"x\"}]");
    let port = server(|stream| {
        let mut stream = mysql(stream)?;
        stream
            .write_all(&[packet(4, &[0, 0, 1, b'x']), packet(5, &[0xfe, 0, 0, 2, 0])].concat())?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    assert_eq!(outcome("mysql", port, ""), "[{:a \"x\"}]");
}

#[test]
fn servers_that_hang_are_left() {
    let silent = server(|mut stream| stream.read_to_end(&mut Vec::new()).map(drop));
    let in_postgres = server(|stream| postgres(stream)?.read_to_end(&mut Vec::new()).map(drop));
    let in_mysql = server(|stream| mysql(stream)?.read_to_end(&mut Vec::new()).map(drop));
    for (scheme, port) in [
        ("postgres", silent),
        ("mysql", silent),
        ("postgres", in_postgres),
        ("mysql", in_mysql),
    ] {
        let found = outcome(scheme, port, "");
        contains(&found, "did not answer within");
        contains(&found, "E1469");
    }
    // Whether a statement that writes was executed is not known then.
    let found = outcome("postgres", in_postgres, ":read-only false");
    contains(
        &found,
        "E1465 it is not known whether the statement was executed",
    );
    let found = outcome("mysql", in_mysql, ":read-only false");
    contains(
        &found,
        "E1465 it is not known whether the statement was executed",
    );
    let found = outcome("postgres", silent, ":read-only false");
    contains(&found, "E1469");
}

#[test]
fn rows_without_end_are_cut() {
    let in_postgres = server(|stream| {
        let mut stream = postgres(stream)?;
        let row = postgres_row(b"0123456789").repeat(1000);
        loop {
            stream.write_all(&row)?;
        }
    });
    let found = outcome("postgres", in_postgres, "");
    contains(&found, "E1470 the answer has more than 5000 rows");
    let found = outcome(
        "postgres",
        in_postgres,
        ":max-results 1000000 :max-bytes 100000",
    );
    contains(&found, "E1470 the answer is larger than 100000 bytes");
    let in_mysql = server(|stream| {
        let mut stream = mysql(stream)?;
        let mut sequence = 4_u8;
        loop {
            stream.write_all(&packet(sequence, &[0, 0, 1, b'x']))?;
            sequence = sequence.wrapping_add(1);
        }
    });
    let found = outcome("mysql", in_mysql, "");
    contains(&found, "E1470 the answer has more than 5000 rows");
    // Notices are no rows, but they are bytes.
    let chatty = server(|stream| {
        let mut stream = postgres(stream)?;
        let notice = message(b'N', b"Mhello\0\0").repeat(1000);
        loop {
            stream.write_all(&notice)?;
        }
    });
    contains(&outcome("postgres", chatty, ":max-bytes 1000"), "E1470");
}

#[test]
fn values_that_are_too_large_are_refused_before_they_arrive() {
    let port = server(|stream| {
        let mut stream = postgres(stream)?;
        // A row of 1 GB is announced, and nothing comes.
        stream.write_all(&[b"D".as_slice(), &(1_u32 << 30).to_be_bytes()].concat())?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    contains(&outcome("postgres", port, ""), "E1470");
    let port = server(|stream| {
        let mut stream = mysql(stream)?;
        let part = vec![b'x'; 0xff_ff_ff];
        let mut sequence = 4_u8;
        loop {
            stream.write_all(&packet(sequence, &part))?;
            sequence = sequence.wrapping_add(1);
        }
    });
    contains(&outcome("mysql", port, ""), "E1470");
}

#[test]
fn other_servers_are_named() {
    for (greeting, scheme) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "postgres"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "mysql"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "postgres"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "mysql"),
        ("220 mail ready\r\n", "postgres"),
        ("\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}", "mysql"),
    ] {
        let port = server(move |mut stream| {
            stream.write_all(greeting.as_bytes())?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        });
        let found = outcome(scheme, port, "");
        assert!(
            found.contains("E1466") || found.contains("E1470"),
            "{greeting:?} {scheme}: {found}"
        );
    }
    let closing = server(|stream| {
        drop(stream);
        Ok(())
    });
    contains(&outcome("postgres", closing, ""), "E1465");
    contains(&outcome("mysql", closing, ""), "E1465");
}

#[test]
fn answers_that_are_not_well_formed_are_refused() {
    let bodies = [
        // Two fields where there is one column, a field of more than the row, a wrong length, an unknown message.
        message(b'D', &[0, 2, 0, 0, 0, 0, 0, 0, 0, 0]),
        message(b'D', &[0, 1, 0, 0, 1, 0]),
        b"D\0\0\0\x01".to_vec(),
        b"!!!!!!!!!".to_vec(),
        message(b'D', &[0, 1, 0, 0, 0, 1, 0xff]),
    ];
    for body in bodies {
        let port = server(move |stream| {
            let mut stream = postgres(stream)?;
            stream.write_all(&body)?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        });
        let found = outcome("postgres", port, "");
        assert!(
            found.contains("E1466") || found.contains("E1471"),
            "{found}"
        );
    }
    for body in [vec![0, 0, 200, 1], vec![0], vec![0xfb, b'/'], vec![7]] {
        let port = server(move |stream| {
            let mut stream = mysql(stream)?;
            stream.write_all(&packet(4, &body))?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        });
        contains(&outcome("mysql", port, ""), "E1466");
    }
    let asks_for_file = server(|mut stream| {
        // The greeting of a server that wants a file instead of a login.
        stream.write_all(&packet(0, b"\xfb/etc/passwd"))?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    contains(&outcome("mysql", asks_for_file, ""), "E1466");
}

#[test]
fn tls_is_not_given_up() {
    let without = server(|mut stream| {
        let mut request = [0; 8];
        stream.read_exact(&mut request)?;
        stream.write_all(b"N")?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    let with_tls = |scheme: &str, port: u16| {
        let project = Project::with_secrets(
            &format!(
                "{{:connections {{:shop {{:base-url \"{scheme}://ada@localhost:{port}/shop\" :tls :verify :auth {{:type :basic :secret-ref :shop-password}}}}}}}}"
            ),
            &[("shop-password", "pa55-word-1234")],
        );
        project.eval(&STEP.replace("MORE", ""))
    };
    contains(&with_tls("postgres", without), "E1473");
    let plain = server(|stream| mysql(stream).map(drop));
    contains(&with_tls("mysql", plain), "E1473");
    // More than the answer was sent before TLS began: nobody must take it for a part of it.
    let injecting = server(|mut stream| {
        let mut request = [0; 8];
        stream.read_exact(&mut request)?;
        stream.write_all(b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    let found = with_tls("postgres", injecting);
    assert!(
        found.contains("E1465") || found.contains("E1473"),
        "{found}"
    );
}

#[test]
fn connections_are_checked() {
    let with = |connection: &str, step: &str| {
        let settings = format!("{{:connections {{:shop {connection}}}}}");
        let project = Project::with_secrets(&settings, &[("shop-password", "pa55-word-1234")]);
        project.eval(&format!(
            "(flow/step :db :it {{:connection :shop :sql \"select 1\" {step}}})"
        ))
    };
    let cases = [
        (
            "{:base-url \"postgres://ada:pw@127.0.0.1/shop\"}",
            "",
            "E1462 the address `postgres://127.0.0.1/shop` holds a password itself",
        ),
        (
            "{:base-url \"postgres://ada@127.0.0.1/shop?sslmode=off\"}",
            "",
            "E1462",
        ),
        ("{:base-url \"postgres://ada@127.0.0.1/a/b\"}", "", "E1462"),
        (
            "{:base-url \"postgres://127.0.0.1/shop\"}",
            "",
            "E1462 the connection has no user",
        ),
        (
            "{:base-url \"http://127.0.0.1/\"}",
            ":database :postgres",
            "E1460 there is no database `:http`",
        ),
        (
            "{:base-url \"mysql://ada@127.0.0.1/shop\"}",
            ":database :postgres",
            "E1462 the step asks for `:postgres`, and the connection `:shop` is one of `:mysql`",
        ),
        (
            "{:backend :postgres}",
            "",
            "E1462 the connection `:shop` has no `:base-url`",
        ),
        ("{:base-url \"sqlite:///tmp/a.db\"}", "", "E1462"),
        ("{:base-url \"sqlite::memory:\"}", "", "E1462"),
        (
            "{:base-url \"postgres://ada@127.0.0.1/shop\" :auth {:type :bearer :secret-ref :shop-password}}",
            "",
            "E1462 a database takes a user and a password",
        ),
        (
            "{:base-url \"postgres://ada@127.0.0.1/shop\" :tls :maybe}",
            "",
            "E1462",
        ),
        (
            "{:base-url \"postgres://ada@169.254.169.254/shop\"}",
            "",
            "E0731",
        ),
        (
            "{:base-url \"postgres://ada@127.0.0.1:1/shop\"}",
            ":retry {:max-attempts 1}",
            "E1465 127.0.0.1:1 cannot be reached",
        ),
    ];
    for (connection, step, expected) in cases {
        contains(&with(connection, step), expected);
    }
}
