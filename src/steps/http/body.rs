//! Request bodies: converts plain data to bytes with their content type.

use flowstone_flow::codec::digest_bytes;

/// An encoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub content_type: String,
}

impl Body {
    pub fn new(bytes: impl Into<Vec<u8>>, content_type: impl Into<String>) -> Body {
        Body {
            bytes: bytes.into(),
            content_type: content_type.into(),
        }
    }

    /// Returns a JSON document.
    pub fn json(text: String) -> Body {
        Body::new(text, "application/json")
    }

    /// Returns a body like that of a web form.
    pub fn form(pairs: &[(String, String)]) -> Body {
        let mut url = reqwest::Url::parse("http://form/").expect("the address is written here");
        url.query_pairs_mut().extend_pairs(pairs);
        Body::new(
            url.query().unwrap_or_default(),
            "application/x-www-form-urlencoded",
        )
    }

    /// Returns a multipart body. The boundary depends on the contents alone, so the same request always has the same
    /// bytes.
    pub fn multipart(parts: &[Part]) -> Body {
        let all: Vec<u8> = parts
            .iter()
            .flat_map(|part| part.bytes.iter().copied())
            .collect();
        let mut boundary = format!("flowstone-{}", &digest_bytes(&all)[..32]);
        while memchr::memmem::find(&all, boundary.as_bytes()).is_some() {
            boundary = format!("flowstone-{}", &digest_bytes(boundary.as_bytes())[..32]);
        }
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(format!("--{boundary}\r\n{}\r\n\r\n", part.head()).as_bytes());
            bytes.extend_from_slice(&part.bytes);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Body::new(bytes, format!("multipart/form-data; boundary={boundary}"))
    }
}

/// A part of a multipart body.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    pub bytes: Vec<u8>,
}

impl Part {
    fn head(&self) -> String {
        let mut head = format!(
            "Content-Disposition: form-data; name=\"{}\"",
            escaped(&self.name)
        );
        if let Some(filename) = &self.filename {
            head.push_str(&format!("; filename=\"{}\"", escaped(filename)));
        }
        if let Some(content_type) = &self.content_type {
            let clean: String = content_type.chars().filter(|it| !it.is_control()).collect();
            head.push_str(&format!("\r\nContent-Type: {clean}"));
        }
        head
    }
}

/// As in browsers, characters that would end the name or the line are percent-encoded.
fn escaped(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
