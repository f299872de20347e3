//! MySQL and MariaDB: one prepared statement in one transaction, over a connection of its own.
//!
//! The protocol is spoken here: the clients there are read on to the end of an answer when they are dropped, which
//! lets a server that sends without end hold them forever, and take memory for a value before it can be refused.

mod login;
mod packet;
mod values;

use std::sync::atomic::Ordering;

use super::cell::Answer;
use super::error::DbError;
use super::query::{Meter, Query, Server};
use crate::socket::Socket;
use login::Greeting;
use packet::Reader;
use values::Column;

/// Executes a statement.
pub(super) async fn execute(server: &Server, query: &Query) -> Result<Answer, DbError> {
    let mut session = Session {
        socket: Socket::open(&server.address, query.limits.bytes).await?,
        sequence: 0,
    };
    let greeting = session.log_in(server).await?;
    session.begin(&greeting, query).await?;
    let answer = session.statement(query).await?;
    if !query.is_read_only {
        session.simple("COMMIT").await?;
    }
    // Whether the goodbye arrives does not matter. A transaction that only read ends with the connection.
    session.command(QUIT, &[]).await.ok();
    Ok(answer)
}

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// Largest content of one packet. A longer one is continued in the next.
const PACKET_MAX: usize = 0xff_ff_ff;

pub(super) struct Session {
    socket: Socket,
    sequence: u8,
}

impl Session {
    fn broken(&self, cause: impl Into<String>) -> DbError {
        DbError::Protocol {
            place: self.socket.place().to_owned(),
            wanted: "MySQL",
            cause: cause.into(),
        }
    }

    /// Reads the next packet. Its length is checked before memory is taken for it.
    async fn next(&mut self) -> Result<Vec<u8>, DbError> {
        let mut content = Vec::new();
        loop {
            let mut head = Vec::with_capacity(4);
            self.socket.read(&mut head, 4).await?;
            let length =
                usize::from(head[0]) | (usize::from(head[1]) << 8) | (usize::from(head[2]) << 16);
            if head[3] != self.sequence {
                return Err(self.broken("its packets are out of order"));
            }
            self.sequence = self.sequence.wrapping_add(1);
            self.socket.read(&mut content, length).await?;
            if length < PACKET_MAX {
                return Ok(content);
            }
        }
    }

    async fn send(&mut self, content: &[u8]) -> Result<(), DbError> {
        if content.len() >= PACKET_MAX {
            return Err(DbError::Parameter(
                "the statement and its parameters are larger than 16 MB".to_owned(),
            ));
        }
        let length = u32::try_from(content.len())
            .unwrap_or_default()
            .to_le_bytes();
        let mut packet = vec![length[0], length[1], length[2], self.sequence];
        self.sequence = self.sequence.wrapping_add(1);
        packet.extend_from_slice(content);
        Ok(self.socket.send(&packet).await?)
    }

    async fn command(&mut self, command: u8, content: &[u8]) -> Result<(), DbError> {
        self.sequence = 0;
        let mut packet = vec![command];
        packet.extend_from_slice(content);
        self.send(&packet).await
    }

    /// Executes a statement of our own, which has no rows.
    async fn simple(&mut self, sql: &str) -> Result<(), DbError> {
        self.command(QUERY, sql.as_bytes()).await?;
        let answer = self.next().await?;
        match answer.first() {
            Some(0x00) => Ok(()),
            Some(0xff) => Err(self.refusal(&answer)),
            _ => Err(self.broken("an unexpected packet")),
        }
    }

    async fn begin(&mut self, greeting: &Greeting, query: &Query) -> Result<(), DbError> {
        let millis = query.limits.time.as_millis().clamp(1, 2_000_000_000);
        let limit = match greeting.is_mariadb() {
            true => format!(
                "max_statement_time = {}.{:03}",
                millis / 1000,
                millis % 1000
            ),
            false => format!("max_execution_time = {millis}"),
        };
        self.simple(&format!(
            "SET SESSION time_zone = '+00:00', SESSION {limit}"
        ))
        .await?;
        self.simple("SET NAMES utf8mb4").await?;
        if query.is_read_only {
            self.simple("SET SESSION TRANSACTION READ ONLY").await?;
            self.simple("START TRANSACTION READ ONLY").await
        } else {
            self.simple("START TRANSACTION").await
        }
    }

    async fn statement(&mut self, query: &Query) -> Result<Answer, DbError> {
        self.command(PREPARE, query.sql.as_bytes()).await?;
        let prepared = self.next().await?;
        let mut reader = Reader::new(&prepared);
        let short = || self.broken("a packet is too short");
        match reader.byte().ok_or_else(short)? {
            0x00 => {}
            0xff => return Err(self.refusal(&prepared)),
            _ => return Err(self.broken("an unexpected packet")),
        }
        let id = reader.int(4).ok_or_else(short)?;
        let columns = reader.int(2).ok_or_else(short)?;
        let params = reader.int(2).ok_or_else(short)?;
        for count in [params, columns] {
            self.definitions(count).await?;
        }
        query.check_count(usize::try_from(params).unwrap_or(usize::MAX))?;
        let mut content = Vec::new();
        content.extend_from_slice(&id.to_le_bytes()[..4]);
        // No cursor, one execution.
        content.extend_from_slice(&[0, 1, 0, 0, 0]);
        values::write(&mut content, &query.params).map_err(DbError::Parameter)?;
        query.is_sent.store(true, Ordering::Relaxed);
        self.command(EXECUTE, &content).await?;
        self.answer(query).await
    }

    /// Reads the definitions of columns, or of parameters, up to their end.
    async fn definitions(&mut self, count: u64) -> Result<Vec<Column>, DbError> {
        let mut columns = Vec::new();
        if count == 0 {
            return Ok(columns);
        }
        for _ in 0..count {
            let packet = self.next().await?;
            if packet.first() == Some(&0xff) {
                return Err(self.refusal(&packet));
            }
            columns.push(
                Column::read(&packet).ok_or_else(|| self.broken("a column is not well formed"))?,
            );
        }
        match self.next().await?.first() {
            Some(0xfe) => Ok(columns),
            _ => Err(self.broken("the columns have no end")),
        }
    }

    async fn answer(&mut self, query: &Query) -> Result<Answer, DbError> {
        let first = self.next().await?;
        let mut reader = Reader::new(&first);
        let short = || self.broken("a packet is too short");
        let count = match first.first() {
            Some(0x00) => {
                reader.byte();
                let affected = reader.number().ok_or_else(short)?;
                let id = reader.number().ok_or_else(short)?;
                return Ok(Answer {
                    affected,
                    last_id: i64::try_from(id).ok().filter(|id| *id != 0),
                    ..Answer::default()
                });
            }
            Some(0xff) => return Err(self.refusal(&first)),
            Some(0xfb) => return Err(self.broken("it asks for a file of this machine")),
            _ => reader.number().ok_or_else(short)?,
        };
        if count > 4096 {
            return Err(self.broken("it sends more columns than a table can have"));
        }
        let columns = self.definitions(count).await?;
        let mut meter = Meter::new(query.limits);
        let mut answer = Answer {
            columns: columns.iter().map(|column| column.name.clone()).collect(),
            ..Answer::default()
        };
        loop {
            let packet = self.next().await?;
            match packet.first() {
                Some(0x00) => {
                    let cells = values::row(&packet, &columns)
                        .ok_or_else(|| self.broken("a row is not well formed"))?
                        .map_err(DbError::Unfit)?;
                    meter.row(&cells)?;
                    answer.rows.push(cells);
                }
                Some(0xfe) if packet.len() < 9 => return Ok(answer),
                Some(0xff) => return Err(self.refusal(&packet)),
                _ => return Err(self.broken("an unexpected packet")),
            }
        }
    }

    fn refusal(&self, packet: &[u8]) -> DbError {
        let mut reader = Reader::new(packet);
        reader.byte();
        let number = reader.int(2).unwrap_or_default();
        let rest = reader.rest();
        let (state, message) = match rest.first() {
            Some(b'#') if rest.len() >= 6 => (&rest[1..6], &rest[6..]),
            _ => (&[][..], rest),
        };
        let message = String::from_utf8_lossy(message).into_owned();
        // A transaction that may only read, or a server that may.
        if number == 1792 {
            return DbError::ReadOnly(format!("the database refuses it: {message}"));
        }
        DbError::Statement {
            place: self.socket.place().to_owned(),
            message,
            state: String::from_utf8_lossy(state).into_owned(),
            number: i64::try_from(number).ok(),
            detail: Vec::new(),
        }
    }
}
