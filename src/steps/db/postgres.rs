//! PostgreSQL: one statement in one transaction, over a connection of its own.
//!
//! The messages are those of the crate `postgres-protocol`; the conversation is ours, because it has to hold limits
//! before memory is taken, and to ask for values as text, in which every type of the server can be read.

mod types;

use std::sync::atomic::Ordering;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use flowstone_flow::ports::Secret;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{
    AuthenticationSaslBody, ErrorFields, Header, Message, RowDescriptionBody,
};
use postgres_protocol::message::frontend;

use super::cell::{Answer, Cell};
use super::error::DbError;
use super::query::{Meter, Query, Server};
use super::sql;
use crate::socket::Socket;

/// Executes a statement.
pub(super) async fn execute(server: &Server, query: &Query) -> Result<Answer, DbError> {
    let (sql, placeholders) = sql::numbered(&query.sql).map_err(DbError::Parameter)?;
    query.check_count(placeholders)?;
    let mut session = Session {
        socket: Socket::open(&server.address, query.limits.bytes).await?,
        received: Vec::new(),
    };
    session.begin(server, query).await?;
    let answer = session.statement(&sql, query).await;
    let end = match (&answer, query.is_read_only) {
        (Ok(_), false) => "COMMIT",
        // The transaction ends with the connection.
        _ => {
            session.leave().await;
            return answer;
        }
    };
    session.simple(end).await?;
    session.leave().await;
    answer
}

struct Session {
    socket: Socket,
    received: Vec<u8>,
}

/// A column of the answer.
struct Column {
    name: String,
    type_: u32,
}

impl Session {
    fn broken(&self, cause: impl Into<String>) -> DbError {
        DbError::Protocol {
            place: self.socket.place().to_owned(),
            wanted: "PostgreSQL",
            cause: cause.into(),
        }
    }

    fn unreadable(&self, error: &std::io::Error) -> DbError {
        self.broken(error.to_string())
    }

    /// Logs in, and begins the transaction.
    async fn begin(&mut self, server: &Server, query: &Query) -> Result<(), DbError> {
        if self.socket.wants_tls() {
            self.start_tls(server).await?;
        }
        let mut out = BytesMut::new();
        let settings = [
            ("user", server.user.as_str()),
            ("database", server.database.as_str()),
            ("application_name", "flowstone"),
            ("client_encoding", "UTF8"),
        ];
        let given = settings.into_iter().filter(|(_, value)| !value.is_empty());
        frontend::startup_message(given, &mut out).map_err(|error| DbError::Config {
            message: format!(
                "the user or the database of the connection has a wrong name: {error}"
            ),
            hint: "they cannot contain the character NUL".to_owned(),
        })?;
        self.socket.send(&out).await?;
        self.log_in(server).await?;
        let mode = match query.is_read_only {
            true => "READ ONLY",
            false => "READ WRITE",
        };
        let millis = query.limits.time.as_millis().clamp(1, 2_000_000_000);
        // Once there was a query, the transaction cannot become one that writes.
        self.simple(&format!(
            "BEGIN TRANSACTION {mode}; SET LOCAL statement_timeout = {millis}; SET LOCAL TimeZone = 'UTC'; \
             SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = 'iso_8601'; \
             SET LOCAL bytea_output = 'hex'; SELECT 1"
        ))
        .await
    }

    async fn start_tls(&mut self, server: &Server) -> Result<(), DbError> {
        let mut out = BytesMut::new();
        frontend::ssl_request(&mut out);
        self.socket.send(&out).await?;
        let mut answer = Vec::new();
        self.socket.read(&mut answer, 1).await?;
        match answer.as_slice() {
            b"S" => Ok(self.socket.secure(&server.address).await?),
            b"N" => Err(DbError::NoTls {
                place: self.socket.place().to_owned(),
            }),
            _ => Err(self.broken("its answer to a request for TLS is wrong")),
        }
    }

    async fn log_in(&mut self, server: &Server) -> Result<(), DbError> {
        loop {
            let message = self.next().await?;
            match message {
                Message::AuthenticationOk
                | Message::BackendKeyData(_)
                | Message::ParameterStatus(_) => {}
                Message::ReadyForQuery(_) => return Ok(()),
                Message::AuthenticationCleartextPassword => {
                    if !self.socket.is_private() {
                        return Err(self.login("it asks for the password in clear text"));
                    }
                    let password = self.password(server)?.clone();
                    self.send_password(password.reveal().as_bytes()).await?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let password = self.password(server)?;
                    let hash = md5_hash(
                        server.user.as_bytes(),
                        password.reveal().as_bytes(),
                        body.salt(),
                    );
                    self.send_password(hash.as_bytes()).await?;
                }
                Message::AuthenticationSasl(body) => self.scram(server, &body).await?,
                Message::ErrorResponse(body) => {
                    return Err(match self.refusal(body.fields()) {
                        DbError::Statement { message, state, .. }
                            if matches!(state.get(..2), Some("28" | "3D")) =>
                        {
                            self.login(message)
                        }
                        other => other,
                    });
                }
                Message::AuthenticationGss
                | Message::AuthenticationKerberosV5
                | Message::AuthenticationScmCredential
                | Message::AuthenticationSspi => {
                    return Err(self.login("it asks for a kind of login other than a password"));
                }
                _ => return Err(self.broken("an unexpected message during the login")),
            }
        }
    }

    fn login(&self, message: impl Into<String>) -> DbError {
        DbError::Login {
            place: self.socket.place().to_owned(),
            message: message.into(),
        }
    }

    fn password<'a>(&self, server: &'a Server) -> Result<&'a Secret, DbError> {
        let password = server.password.as_ref();
        password
            .ok_or_else(|| self.login("it asks for a password, and the connection names no secret"))
    }

    async fn send_password(&mut self, password: &[u8]) -> Result<(), DbError> {
        let mut out = BytesMut::new();
        frontend::password_message(password, &mut out)
            .map_err(|error| self.login(error.to_string()))?;
        Ok(self.socket.send(&out).await?)
    }

    /// Proves the password without sending it, and lets the server prove that it knows it.
    async fn scram(
        &mut self,
        server: &Server,
        offered: &AuthenticationSaslBody,
    ) -> Result<(), DbError> {
        let mut mechanisms = offered.mechanisms();
        let mut is_offered = false;
        while let Some(name) = mechanisms.next().map_err(|error| self.unreadable(&error))? {
            is_offered |= name == SCRAM_SHA_256;
        }
        if !is_offered {
            return Err(self.login("it asks for a kind of login other than SCRAM-SHA-256"));
        }
        let password = self.password(server)?.clone();
        let failed = |session: &Session, error: &std::io::Error| session.login(error.to_string());
        let mut scram =
            ScramSha256::new(password.reveal().as_bytes(), ChannelBinding::unsupported());
        let mut out = BytesMut::new();
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut out)
            .map_err(|error| failed(self, &error))?;
        self.socket.send(&out).await?;
        let Message::AuthenticationSaslContinue(body) = self.next_of_login().await? else {
            return Err(self.broken("an unexpected message during the login"));
        };
        scram
            .update(body.data())
            .map_err(|error| failed(self, &error))?;
        out.clear();
        frontend::sasl_response(scram.message(), &mut out).map_err(|error| failed(self, &error))?;
        self.socket.send(&out).await?;
        let Message::AuthenticationSaslFinal(body) = self.next_of_login().await? else {
            return Err(self.broken("an unexpected message during the login"));
        };
        scram
            .finish(body.data())
            .map_err(|error| failed(self, &error))
    }

    async fn next_of_login(&mut self) -> Result<Message, DbError> {
        match self.next().await? {
            Message::ErrorResponse(body) => {
                let text = self.refusal(body.fields()).to_string();
                let text = text.rsplit(": ").next().unwrap_or_default().to_owned();
                Err(self.login(text))
            }
            message => Ok(message),
        }
    }

    /// Reads the next message, apart from notices. Its length is checked before memory is taken for it.
    async fn next(&mut self) -> Result<Message, DbError> {
        loop {
            self.received.clear();
            let mut bytes = std::mem::take(&mut self.received);
            self.socket.read(&mut bytes, 5).await?;
            let header = Header::parse(&bytes).map_err(|error| self.unreadable(&error))?;
            let length = header.and_then(|header| usize::try_from(header.len()).ok());
            let length = length.ok_or_else(|| self.broken("a message has a wrong length"))?;
            if !b"1235ACcDdEGHIKNnRsStTVvWZ".contains(&bytes[0]) {
                return Err(self.broken("its answer is not a message"));
            }
            self.socket.read(&mut bytes, length - 4).await?;
            let mut whole = BytesMut::from(bytes.as_slice());
            self.received = bytes;
            let message = Message::parse(&mut whole).map_err(|error| self.unreadable(&error))?;
            match message {
                Some(
                    Message::NoticeResponse(_)
                    | Message::NotificationResponse(_)
                    | Message::ParameterStatus(_),
                ) => {}
                Some(message) => return Ok(message),
                None => return Err(self.broken("a message ends too early")),
            }
        }
    }

    /// Executes statements of our own.
    async fn simple(&mut self, sql: &str) -> Result<(), DbError> {
        let mut out = BytesMut::new();
        frontend::query(sql, &mut out).map_err(|error| self.unreadable(&error))?;
        self.socket.send(&out).await?;
        let mut refusal = None;
        loop {
            match self.next().await? {
                Message::ErrorResponse(body) => refusal = Some(self.refusal(body.fields())),
                Message::ReadyForQuery(_) => break,
                Message::CommandComplete(_) | Message::RowDescription(_) | Message::DataRow(_) => {}
                _ => return Err(self.broken("an unexpected message")),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Executes the statement of the flow.
    async fn statement(&mut self, sql: &str, query: &Query) -> Result<Answer, DbError> {
        let mut out = BytesMut::new();
        frontend::parse("", sql, [], &mut out).map_err(|error| {
            DbError::Parameter(format!("the statement cannot be sent: {error}"))
        })?;
        frontend::describe(b'S', "", &mut out).map_err(|error| self.unreadable(&error))?;
        frontend::sync(&mut out);
        self.socket.send(&out).await?;
        let (types, columns) = self.described().await?;
        let types = types
            .iter()
            .copied()
            .map(Some)
            .chain(std::iter::repeat(None));
        let params = query.params.iter().zip(types);
        out.clear();
        let bound = frontend::bind(
            "",
            "",
            [],
            params,
            |(cell, type_), out| match types::write(cell, type_.unwrap_or(0)) {
                Some(text) => {
                    out.extend_from_slice(text.as_bytes());
                    Ok(IsNull::No)
                }
                None => Ok(IsNull::Yes),
            },
            [0],
            &mut out,
        );
        if bound.is_err() {
            return Err(DbError::Parameter("a parameter is too large".to_owned()));
        }
        // One row more than allowed tells that there are too many.
        let most = i32::try_from(query.limits.rows.saturating_add(1)).unwrap_or(i32::MAX);
        frontend::execute("", most, &mut out).map_err(|error| self.unreadable(&error))?;
        frontend::sync(&mut out);
        query.is_sent.store(true, Ordering::Relaxed);
        self.socket.send(&out).await?;
        self.rows(columns, query).await
    }

    /// Returns the types of the parameters, and the columns of the answer.
    async fn described(&mut self) -> Result<(Vec<u32>, Vec<Column>), DbError> {
        let (mut types, mut columns, mut refusal) = (Vec::new(), Vec::new(), None);
        loop {
            match self.next().await? {
                Message::ParameterDescription(body) => {
                    types = body
                        .parameters()
                        .collect()
                        .map_err(|error| self.unreadable(&error))?;
                }
                Message::RowDescription(body) => columns = self.columns(&body)?,
                Message::ParseComplete | Message::NoData => {}
                Message::ErrorResponse(body) => refusal = Some(self.refusal(body.fields())),
                Message::ReadyForQuery(_) => break,
                _ => return Err(self.broken("an unexpected message")),
            }
        }
        refusal.map_or(Ok((types, columns)), Err)
    }

    fn columns(&self, body: &RowDescriptionBody) -> Result<Vec<Column>, DbError> {
        let columns = body.fields().map(|field| {
            Ok(Column {
                name: field.name().to_owned(),
                type_: field.type_oid(),
            })
        });
        columns.collect().map_err(|error| self.unreadable(&error))
    }

    async fn rows(&mut self, columns: Vec<Column>, query: &Query) -> Result<Answer, DbError> {
        let mut answer = Answer {
            columns: columns.iter().map(|column| column.name.clone()).collect(),
            ..Answer::default()
        };
        let mut meter = Meter::new(query.limits);
        let mut refusal = None;
        loop {
            match self.next().await? {
                Message::DataRow(row) => {
                    let ranges: Vec<_> = row
                        .ranges()
                        .collect()
                        .map_err(|error| self.unreadable(&error))?;
                    if ranges.len() != columns.len() {
                        return Err(self.broken("a row does not have the columns of the answer"));
                    }
                    let mut cells = Vec::with_capacity(columns.len());
                    for (range, column) in ranges.into_iter().zip(&columns) {
                        cells.push(match range {
                            None => Cell::Null,
                            Some(range) => types::read(&row.buffer()[range], column.type_)
                                .map_err(|cause| {
                                    DbError::Unfit(format!("column `{}`: {cause}", column.name))
                                })?,
                        });
                    }
                    meter.row(&cells)?;
                    answer.rows.push(cells);
                }
                Message::CommandComplete(body) => {
                    let tag = body.tag().map_err(|error| self.unreadable(&error))?;
                    answer.affected = affected(tag);
                }
                Message::BindComplete | Message::EmptyQueryResponse | Message::PortalSuspended => {}
                Message::ErrorResponse(body) => refusal = Some(self.refusal(body.fields())),
                Message::ReadyForQuery(_) => break,
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(DbError::Parameter(
                        "`copy` with a client needs a stream, which a step does not have"
                            .to_owned(),
                    ));
                }
                _ => return Err(self.broken("an unexpected message")),
            }
        }
        refusal.map_or(Ok(answer), Err)
    }

    /// Says goodbye; whether it arrives does not matter.
    async fn leave(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        self.socket.send(&out).await.ok();
    }

    fn refusal(&self, mut fields: ErrorFields<'_>) -> DbError {
        let (mut message, mut state, mut detail) = (String::new(), String::new(), Vec::new());
        while let Ok(Some(field)) = fields.next() {
            let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'M' => message = text,
                b'C' => state = text,
                b'D' | b'H' => detail.push(text),
                _ => {}
            }
        }
        if state == "25006" {
            return DbError::ReadOnly(format!("the database refuses it: {message}"));
        }
        DbError::Statement {
            place: self.socket.place().to_owned(),
            message,
            state,
            number: None,
            detail,
        }
    }
}

/// Returns the number of changed rows in the tag of a command, such as `INSERT 0 5`.
fn affected(tag: &str) -> u64 {
    let mut words = tag.split(' ');
    match words.next() {
        Some("INSERT" | "UPDATE" | "DELETE" | "MERGE" | "COPY") => words
            .next_back()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0),
        _ => 0,
    }
}
