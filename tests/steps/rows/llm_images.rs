//! The rows of `tests/coverage/llm.tsv` about images: how stored images reach a model.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_engine::resources::Upload;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageEncoder as _, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::Value as Json;

use crate::project::Project;
use crate::server::{Say, Server, events};

fn answers() -> Say {
    events(&[
        r#"{"choices":[{"delta":{"content":"A picture."},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ])
}

struct Bench {
    project: Project,
    server: Server,
}

impl Bench {
    fn new(connection: &str, settings: &str) -> Bench {
        let server = Server::start(vec![answers()]);
        let connection = connection.replace("URL", &server.url);
        let project = Project::with_secrets(
            &format!("{{:connections {{:ai {connection}}} {settings}}}"),
            &[("ai-key", "s3cret")],
        );
        Bench { project, server }
    }

    fn openai() -> Bench {
        Bench::new(OPENAI, "")
    }

    /// Stores a file and returns its name.
    fn store(&self, name: &str, content_type: Option<&str>, bytes: &[u8]) -> String {
        let upload = Upload {
            name: name.to_owned(),
            content_type: content_type.map(str::to_owned),
            ..Upload::default()
        };
        let row = self
            .project
            .block_on(self.project.engine.upload(&upload, bytes));
        row.expect("stored").uri
    }

    /// Asks the model about an image, and returns the flow's result.
    fn ask(&self, part: &str) -> String {
        self.project.eval(&format!(
            "(:content (flow/step :llm :see {{:connection :ai :retry {{:max-attempts 1}} :messages [{{:role :user :content [\"What?\" {part}]}}]}}))"
        ))
    }

    /// Returns the image of the last request.
    #[track_caller]
    fn image(&self, part: &str) -> Json {
        let shown = self.ask(part);
        let count = self.server.requests().len();
        assert!(count > 0, "{shown}");
        self.server.body(count - 1)["messages"][0]["content"][1]["image_url"].clone()
    }

    /// Returns the bytes of an image that was sent inline.
    #[track_caller]
    fn sent(&self, part: &str) -> (String, DynamicImage) {
        let image = self.image(part);
        let url = image["url"].as_str().expect("an address");
        let (kind, data) = url.split_once(";base64,").expect("a data address");
        let bytes = STANDARD.decode(data).expect("Base64");
        (
            kind.to_owned(),
            image::load_from_memory(&bytes).expect("an image"),
        )
    }

    #[track_caller]
    fn refused(&self, part: &str, problem: &str) {
        let before = self.server.requests().len();
        let shown = self.ask(part);
        assert!(shown.contains(problem), "{shown}");
        assert_eq!(self.server.requests().len(), before, "{shown}");
    }
}

const OPENAI: &str = "{:backend :openai :base-url \"URL/v1\" :model \"gpt-5.4\" :auth {:type :api-key :secret-ref :ai-key}}";

pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let picture = RgbImage::from_pixel(width, height, Rgb([200, 30, 30]));
    picture.write_to(&mut out, ImageFormat::Png).expect("a PNG");
    out.into_inner()
}

/// A rotated JPEG: its left half is black, and its EXIF data say how to turn it.
fn turned() -> Vec<u8> {
    let picture = RgbImage::from_fn(40, 20, |x, _| Rgb([if x < 20 { 0 } else { 255 }; 3]));
    let mut exif = b"MM\0*\0\0\0\x08\0\x01".to_vec();
    exif.extend_from_slice(&[0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]);
    let mut out = Vec::new();
    let mut encoder = JpegEncoder::new(&mut out);
    encoder.set_exif_metadata(exif).expect("EXIF data");
    encoder
        .write_image(&picture, 40, 20, image::ExtendedColorType::Rgb8)
        .expect("a JPEG");
    out
}

fn part(uri: &str, rest: &str) -> String {
    format!("{{:type :image-resource :resource \"{uri}\" {rest}}}")
}

#[test]
fn image_resource() {
    let bench = Bench::openai();
    let uri = bench.store("a.png", None, &png(4, 2));
    let (kind, picture) = bench.sent(&part(&uri, ""));
    assert_eq!(
        (kind.as_str(), picture.width(), picture.height()),
        ("data:image/png", 4, 2)
    );
    // A reference works like its name.
    bench.sent(&format!(
        "{{:type :image-resource :resource {{:type :resource-ref :uri \"{uri}\"}}}}"
    ));
    // The stored content must match its content type, and be an image.
    let lies = bench.store("b.jpg", Some("image/jpeg"), &png(4, 2));
    bench.refused(
        &part(&lies, ""),
        "its content type is `image/jpeg`, but its first bytes are those of `image/png`",
    );
    let text = bench.store("c.png", Some("image/png"), b"hello");
    bench.refused(
        &part(&text, ""),
        "its first bytes are not those of an image",
    );
    let cut = bench.store("d.png", None, &png(4, 2)[..20]);
    bench.refused(&part(&cut, ""), "cannot be read as an image");
    // Only images from the project's own stores are read.
    bench.refused(&part("https://example.com/a.png", ""), "not a reference");
    bench.refused(&part("/etc/passwd", ""), "not a reference");
    bench.refused(&part("res://v1/ws/local/file/none", ""), "there is no blob");
    // A picture of ten gigapixels in a few bytes is not decoded.
    let mut bomb = png(4, 2);
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let checksum = crc(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    let bomb = bench.store("e.png", None, &bomb);
    bench.refused(
        &part(&bomb, ":processing {:max-width 10}"),
        "is 100000 by 100000 pixels, but the limit is 50000000",
    );
    // A model without vision is not called.
    let blind = Bench::new(&OPENAI.replace("gpt-5.4", "gpt-3.5-turbo"), "");
    let uri = blind.store("a.png", None, &png(4, 2));
    blind.refused(
        &part(&uri, ""),
        "`gpt-3.5-turbo` of `:openai` does not accept images",
    );
    // Unless the connection declares that it accepts images.
    let said = OPENAI
        .replace("gpt-5.4", "gpt-3.5-turbo")
        .replace(":model", ":capabilities #{:vision :streaming} :model");
    let sees = Bench::new(&said, "");
    let uri = sees.store("a.png", None, &png(4, 2));
    sees.sent(&part(&uri, ""));
}

/// Returns the checksum of a chunk of a PNG.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            1 => (crc >> 1) ^ 0xedb8_8320,
            _ => crc >> 1,
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn image_detail() {
    let bench = Bench::openai();
    let uri = bench.store("a.png", None, &png(4, 2));
    assert_eq!(bench.image(&part(&uri, ":detail :high"))["detail"], "high");
    let image = bench.image("{:type :image :url \"https://example.com/a.png\" :detail :low}");
    assert_eq!(image["detail"], "low");
    bench.refused(
        &part(&uri, ":detail :most"),
        "an image has no `:detail :most`",
    );
    bench.refused(
        "{:type :image :url \"data:image/png;base64,aGVsbG8=\"}",
        "its first bytes are not those of an image",
    );
    bench.refused(
        "{:type :image :url \"file:///etc/passwd\"}",
        "is an `https:` or a `data:` address",
    );
}

#[test]
fn image_transport() {
    let bench = Bench::new(OPENAI, ":server {:url \"https://flows.example.com\"}");
    let uri = bench.store("a.png", None, &png(4, 2));
    let image = bench.image(&part(&uri, ":transport :signed-url"));
    let url = image["url"].as_str().expect("an address");
    assert!(
        url.starts_with("https://flows.example.com/api/resources/content?uri=")
            && url.contains("&signature="),
        "{url}"
    );
    bench.sent(&part(&uri, ":transport :data-url"));
    bench.refused(&part(&uri, ":transport :pigeon"), "by `:transport :pigeon`");
    bench.refused(
        &part(&uri, ":transport :signed-url :processing {:max-width 1}"),
        "an image with `:processing` cannot be sent by `:transport :signed-url`",
    );
    let nowhere = Bench::openai();
    let uri = nowhere.store("a.png", None, &png(4, 2));
    nowhere.refused(
        &part(&uri, ":transport :signed-url"),
        "no public URL is set for this project",
    );
    let ollama = Bench::new(
        "{:backend :ollama :base-url \"URL/v1\" :model \"gemma3\"}",
        ":server {:url \"https://flows.example.com\"}",
    );
    let uri = ollama.store("a.png", None, &png(4, 2));
    ollama.refused(
        &part(&uri, ":transport :signed-url"),
        "`:ollama` does not fetch images from an address",
    );
    ollama.sent(&part(&uri, ""));
}

#[test]
fn image_processing() {
    let bench = Bench::openai();
    let uri = bench.store("a.png", None, &png(80, 40));
    let (kind, picture) = bench.sent(&part(
        &uri,
        ":processing {:max-width 20 :max-height 1600 :format :jpeg :quality 85}",
    ));
    assert_eq!(
        (kind.as_str(), picture.width(), picture.height()),
        ("data:image/jpeg", 20, 10)
    );
    let (kind, picture) = bench.sent(&part(&uri, ":processing {:max-height 100 :format :webp}"));
    assert_eq!(
        (kind.as_str(), picture.width(), picture.height()),
        ("data:image/webp", 80, 40)
    );
    let (kind, _) = bench.sent(&part(&uri, ":processing {:max-width 8}"));
    assert_eq!(kind, "data:image/png");
    // Transparent pixels become white, not black.
    let mut clear = Cursor::new(Vec::new());
    let picture = RgbaImage::from_pixel(8, 8, Rgba([0, 0, 0, 0]));
    picture
        .write_to(&mut clear, ImageFormat::Png)
        .expect("a PNG");
    let uri = bench.store("clear.png", None, &clear.into_inner());
    let (_, picture) = bench.sent(&part(&uri, ":processing {:format :jpeg}"));
    assert!(
        picture
            .to_rgb8()
            .get_pixel(4, 4)
            .0
            .iter()
            .all(|it| *it > 250)
    );
    // A picture is sent the right way up.
    let uri = bench.store("turned.jpg", None, &turned());
    let (_, picture) = bench.sent(&part(&uri, ":processing {:format :png}"));
    assert_eq!((picture.width(), picture.height()), (20, 40));
    let picture = picture.to_rgb8();
    assert!(picture.get_pixel(10, 4).0[0] < 50 && picture.get_pixel(10, 36).0[0] > 200);
    for (processing, problem) in [
        (
            "{:max-width 0}",
            "`:processing :max-width` must be from 1 to 16384",
        ),
        ("{:format :tiff}", "`:processing` has no `:format :tiff`"),
        (
            "{:format :png :quality 5}",
            "`:quality` of `:processing` is only for `:format :jpeg`",
        ),
        (
            "{:quality 101}",
            "`:processing :quality` must be from 1 to 100",
        ),
        ("{:maxwidth 5}", "`:processing` has no key `:maxwidth`"),
    ] {
        bench.refused(&part(&uri, &format!(":processing {processing}")), problem);
    }
}
