//! Markdown as HTML: without raw HTML, without pictures from elsewhere, and with links to the web and to mail only.

use flowstone_engine::viewer::View;
use maud::{Markup, html};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
};

use super::{drawn, shown};

/// The language of a code block that names a resource.
const BLOCK: &str = "breyta-resource";
/// Schemes of links that are kept.
const SCHEMES: &[&str] = &["http://", "https://", "mailto:"];

/// What links tell the servers that they lead to, and search engines: nothing.
const REL: &str = "noopener noreferrer nofollow";

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns views in which each `breyta-resource` block of a Markdown text is a view of its own.
pub(crate) fn expanded(view: View) -> View {
    match view {
        View::Markdown { text, is_guess } => split(&text, is_guess),
        View::Group(views) => View::Group(views.into_iter().map(expanded).collect()),
        View::Titled(title, view) => View::Titled(title, Box::new(expanded(*view))),
        other => other,
    }
}

fn split(text: &str, is_guess: bool) -> View {
    let markdown = |text: &str| View::Markdown {
        text: text.to_owned(),
        is_guess,
    };
    let mut views = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if depth == 0 && language.trim() == BLOCK =>
            {
                depth += 1;
                let block = text.get(range.clone()).unwrap_or_default();
                let inside = block.split_once('\n').map_or("", |(_, rest)| rest);
                let inside = inside.trim_end().trim_end_matches(['`', '~']);
                if let Some(view) = View::of_block(inside) {
                    views.push(markdown(text.get(start..range.start).unwrap_or_default()));
                    views.push(view);
                    start = range.end;
                }
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if views.is_empty() {
        return markdown(text);
    }
    views.push(markdown(text.get(start..).unwrap_or_default()));
    View::Group(views)
}

/// Returns a Markdown text as HTML. With `is_guess`, line breaks are kept.
pub(super) fn markup(text: &str, is_guess: bool) -> Markup {
    let text = shown(text);
    let mut cleaner = Cleaner {
        is_guess,
        links: Vec::new(),
        images: 0,
    };
    let events = Parser::new_ext(&text, options()).filter_map(|event| cleaner.event(event));
    let mut out = String::new();
    push_html(&mut out, events);
    drawn(out)
}

/// Takes out of a text what a page must not hold.
struct Cleaner {
    is_guess: bool,
    /// Whether each open link is kept.
    links: Vec<bool>,
    /// Pictures that are open; their text remains.
    images: usize,
}

impl Cleaner {
    fn event<'t>(&mut self, event: Event<'t>) -> Option<Event<'t>> {
        Some(match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::SoftBreak if self.is_guess => Event::HardBreak,
            Event::Start(Tag::Image { .. }) => {
                self.images += 1;
                Event::Text("[picture: ".into())
            }
            Event::End(TagEnd::Image) => {
                self.images = self.images.saturating_sub(1);
                Event::Text("]".into())
            }
            Event::Start(Tag::Link {
                dest_url,
                link_type,
                ..
            }) => {
                let address = match link_type {
                    LinkType::Email => format!("mailto:{dest_url}"),
                    _ => dest_url.to_string(),
                };
                let is_kept = is_allowed(&address);
                self.links.push(is_kept);
                if !is_kept {
                    return None;
                }
                let open = format!("<a href=\"{}\" rel=\"{REL}\">", attribute(&address));
                Event::InlineHtml(CowStr::from(open))
            }
            Event::End(TagEnd::Link) => match self.links.pop() {
                Some(true) => Event::InlineHtml("</a>".into()),
                _ => return None,
            },
            Event::Start(Tag::Heading {
                level,
                id,
                classes,
                attrs,
            }) => Event::Start(Tag::Heading {
                level: below(level),
                id,
                classes,
                attrs,
            }),
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
            Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => return None,
            other => other,
        })
    }
}

/// Returns the level of a heading below those of the page.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

/// Tells whether a link may lead to an address.
pub(super) fn is_allowed(address: &str) -> bool {
    let start = address.trim_start().to_ascii_lowercase();
    SCHEMES.iter().any(|scheme| start.starts_with(scheme))
}

/// Returns an address as the value of an attribute.
fn attribute(address: &str) -> String {
    html! { (address) }.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn_html(text: &str) -> String {
        markup(text, false).into_string()
    }

    #[test]
    fn raw_html_and_dangerous_links_do_not_reach_the_page() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](//evil.example)",
            "![x](https://evil.example/pixel.png)",
            "<javascript:alert(1)>",
            "[x](https://a.test/\"onclick=\"alert(1))",
            "[x]: javascript:alert(1)\n\n[x]",
            "```\"><script>alert(1)</script>\nx\n```",
            "| a |\n|---|\n| <b onclick=x> |",
        ] {
            let page = drawn_html(text);
            let lower = page.to_lowercase();
            for bad in [
                "<script",
                "<img",
                "<b ",
                "href=\"javascript",
                "href=\"data",
                "href=\"//",
                "\"onclick",
            ] {
                assert!(!lower.contains(bad), "{text} gives {page}");
            }
        }
    }

    #[test]
    fn links_to_the_web_and_to_mail_are_kept() {
        assert_eq!(
            drawn_html("[a](https://a.test/?b=1&c=2) <me@a.test>"),
            "<p><a href=\"https://a.test/?b=1&amp;c=2\" rel=\"noopener noreferrer nofollow\">a</a> \
             <a href=\"mailto:me@a.test\" rel=\"noopener noreferrer nofollow\">me@a.test</a></p>\n"
        );
        assert_eq!(
            drawn_html("[a](/local) ![b](c.png)"),
            "<p>a [picture: b]</p>\n"
        );
        assert_eq!(markup("a\nb", true).into_string(), "<p>a<br />\nb</p>\n");
    }

    #[test]
    fn headings_are_below_those_of_the_page() {
        assert_eq!(drawn_html("# a\n\n###### b"), "<h3>a</h3>\n<h6>b</h6>\n");
    }

    #[test]
    fn blocks_that_name_resources_are_views_of_their_own() {
        let text = "# T\n\n```breyta-resource\n{:uri \"res://v1/ws/local/file/a\" :view :image}\n```\n\nend\n\n```clj\n1\n```\n";
        let view = expanded(View::Markdown {
            text: text.to_owned(),
            is_guess: false,
        });
        let View::Group(views) = view else {
            panic!("{view:?}");
        };
        assert_eq!(views.len(), 3);
        assert_eq!(views[1].resources(), ["res://v1/ws/local/file/a"]);
    }
}
