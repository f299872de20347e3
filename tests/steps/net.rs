//! A project with a server beside it: flows send requests, and tests inspect the requests and the results.

use crate::project::Project;
use crate::server::{Say, Server, reply};

pub struct Net {
    pub project: Project,
    pub server: Server,
}

impl Net {
    /// Starts a server that gives these responses in order, and then repeats the last.
    pub fn new(answers: Vec<Say>) -> Net {
        Net::with(answers, &[])
    }

    /// The same with these files of the project. `URL` in their texts stands for the server's address.
    pub fn with(answers: Vec<Say>, files: &[(&str, &str)]) -> Net {
        let server = Server::start(answers);
        let texts: Vec<(&str, String)> = files
            .iter()
            .map(|(name, text)| (*name, text.replace("URL", &server.url)))
            .collect();
        let files: Vec<(&str, &str)> = texts
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        Net {
            project: Project::with_files(&files),
            server,
        }
    }

    /// Starts a server that accepts every request.
    pub fn quiet() -> Net {
        Net::new(vec![reply("204 No Content", &[], "")])
    }

    /// Runs a body in which `URL` stands for the server's address.
    pub fn eval(&self, body: &str) -> String {
        let found = self.project.eval(&body.replace("URL", &self.server.url));
        self.server.clean(&found)
    }

    /// Performs one `:http` step, and returns the expression `take` over its value.
    pub fn take(&self, take: &str, config: &str) -> String {
        self.eval(&format!("(let [r (flow/step :http :it {config})] {take})"))
    }

    /// Performs one `:http` step, and returns the body of its value.
    pub fn body(&self, config: &str) -> String {
        self.take("(:body r)", config)
    }

    /// Performs one `:http` step, and returns the request.
    pub fn sent(&self, config: &str) -> String {
        let before = self.server.requests().len();
        let found = self.take("r", config);
        let requests = self.server.requests();
        requests.get(before).cloned().unwrap_or(found)
    }

    /// Performs one `:http` step, and returns only the body of the request.
    pub fn sent_body(&self, config: &str) -> String {
        let sent = self.sent(config);
        match sent.split_once("\n\n") {
            Some((_, body)) => body.replace("\r\n", "\n"),
            None => sent,
        }
    }

    /// Performs one `:http` step, and returns only one header of the request.
    pub fn sent_header(&self, name: &str, config: &str) -> String {
        let sent = self.sent(config);
        let found = sent
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(it, _)| *it == name);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.to_owned())
    }

    /// Checks that the store holds nothing of an incomplete response.
    #[track_caller]
    pub fn keeps_no_blob(&self) {
        let folder = self.project.folder().join(".flowstone/blobs");
        let mut files = Vec::new();
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.is_dir() => open.push(path),
                    path if !path.ends_with(".lock") => files.push(path),
                    _ => {}
                }
            }
        }
        assert!(files.is_empty(), "{files:?}");
    }
}

/// Returns a response with a content type.
pub fn typed(content_type: &str, body: impl AsRef<[u8]>) -> Say {
    reply("200 OK", &[&format!("content-type: {content_type}")], body)
}

#[track_caller]
pub fn contains(found: &str, words: &str) {
    assert!(found.contains(words), "expected {words}\nfound {found}");
}
