//! The socket prompt: text in, text out, as that of Clojure.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;

use flowstone_lang::session::split_typed;

use super::bencode::{Bencode, Dict};
use super::connection::Client;
use super::host::Target;
use super::reply::Address;
use super::sessions::{ClientSession, Hub, Request};

/// The operation that evaluates for a socket; no message of nREPL can name it.
pub const OP: &str = "socket/eval";

/// Maximum size of a form in bytes.
const FORM_MAX: usize = 4 << 20;
/// What Ctrl-C sends, where a client passes it on.
const INTERRUPT: u8 = 3;

/// Sends the prompt.
pub fn prompt(target: &Target, namespace: &str) {
    target.client.send(format!("{namespace}=> ").into_bytes());
}

/// Reads forms until the client leaves. While one is evaluated, lines are its input.
pub fn read(mut stream: TcpStream, client: &Arc<Client>, hub: &Arc<Hub>) {
    let Some(session) = hub.add(client).and_then(|id| hub.session(&id)) else {
        client.send(b"there are too many sessions\n".to_vec());
        return;
    };
    client.send(b"user=> ".to_vec());
    let (forms_hub, forms_client, forms_session) = (hub.clone(), client.clone(), session.clone());
    let reader = std::thread::spawn(move || forms(&forms_session, &forms_client, &forms_hub));
    let mut piece = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        let bytes = &piece[..count];
        if bytes.contains(&INTERRUPT) {
            hub.interrupt_session(&session.id);
        }
        let kept: Vec<u8> = bytes
            .iter()
            .copied()
            .filter(|byte| *byte != INTERRUPT)
            .collect();
        if !session.input.push(&kept) {
            client.send(b"the input is too long\n".to_vec());
            break;
        }
    }
    session.input.end();
    let _ = reader.join();
    hub.forget(&session.id);
}

/// Collects lines to forms and has them evaluated, one after the other.
fn forms(session: &Arc<ClientSession>, client: &Arc<Client>, hub: &Arc<Hub>) {
    let mut text = String::new();
    loop {
        let line = session
            .input
            .line(|| client.is_gone() || hub.is_over(), || ());
        let Some(line) = line else { break };
        text.push_str(&line);
        if text.trim() == ":repl/quit" {
            break;
        }
        if text.len() > FORM_MAX {
            client.send(b"the form is too long\n".to_vec());
            break;
        }
        match split_typed(&text) {
            Err(error) if error.at_end => continue,
            Ok(forms) if forms.is_empty() => text.clear(),
            Ok(_) | Err(_) => {
                let code = std::mem::take(&mut text);
                if !evaluate(session, client, hub, code) {
                    break;
                }
            }
        }
    }
    client.leave_after_writing();
}

/// Has a text evaluated, and waits until it is. Returns false if the server ends.
fn evaluate(
    session: &Arc<ClientSession>,
    client: &Arc<Client>,
    hub: &Arc<Hub>,
    code: String,
) -> bool {
    session.set_busy();
    let is_passed = hub.pass(Request {
        client: client.clone(),
        session: session.clone(),
        address: Address {
            id: None,
            session: Some(session.id.clone()),
        },
        op: OP.to_owned(),
        message: Dict::from([("code".to_owned(), Bencode::from(code))]),
    });
    if !is_passed {
        client.send(b"there are too many requests\n".to_vec());
        return true;
    }
    session.wait_free(|| hub.is_over())
}
