//! The text of models while it is produced, in memory.
//!
//! Each text is stored once, however many readers it has. A reader records how much of it it has received, so that
//! nothing waits for a slow reader and nothing is queued for it.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstone_model::ids::RunId;
use flowstone_model::ports::{Live, LiveText, TextPiece};
use tokio::sync::watch;

/// Maximum size of one text in bytes; only the end of a longer one is kept.
const TEXT_MAX: usize = 1 << 20;

/// The texts in progress of all runs.
#[derive(Clone, Default)]
pub(crate) struct LiveTexts(Arc<Mutex<HashMap<RunId, Arc<RunTexts>>>>);

/// The texts of one run, and its readers.
struct RunTexts {
    texts: Mutex<BTreeMap<String, Text>>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Text {
    /// Distinguishes the text from an earlier one at the same path.
    generation: u64,
    /// Number of bytes and characters before the kept text.
    dropped: Length,
    kept: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Length {
    bytes: usize,
    chars: usize,
}

impl Text {
    fn add(&mut self, text: &str) {
        self.kept.push_str(text);
        if self.kept.len() > TEXT_MAX {
            // Half of the text is dropped at a time, so that a long text is not moved for each piece.
            let mut cut = self.kept.len() - TEXT_MAX / 2;
            while !self.kept.is_char_boundary(cut) {
                cut += 1;
            }
            self.dropped.bytes += cut;
            self.dropped.chars += self.kept[..cut].chars().count();
            self.kept.drain(..cut);
        }
    }

    /// Returns the text that a reader has not received, with the number of characters before it.
    fn after(&self, has: Length) -> Option<(usize, &str)> {
        let from = match has.bytes >= self.dropped.bytes {
            true => has,
            false => self.dropped,
        };
        let text = self.kept.get(from.bytes - self.dropped.bytes..)?;
        (!text.is_empty()).then_some((from.chars, text))
    }
}

impl LiveTexts {
    fn run(&self, run: &RunId) -> Arc<RunTexts> {
        let mut runs = lock(&self.0);
        // Runs without texts and readers are forgotten.
        if runs.len() > 64 {
            runs.retain(|_, run| !run.is_idle());
        }
        let texts = runs.entry(run.clone()).or_insert_with(|| {
            Arc::new(RunTexts {
                texts: Mutex::default(),
                changes: watch::Sender::new(0),
            })
        });
        texts.clone()
    }

    fn found(&self, run: &RunId) -> Option<Arc<RunTexts>> {
        lock(&self.0).get(run).cloned()
    }
}

impl RunTexts {
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
            && self.changes.receiver_count() == 0
            && lock(&self.texts).is_empty()
    }
}

impl Live for LiveTexts {
    fn add(&self, run: &RunId, path: &str, text: &str) {
        let run = self.run(run);
        let generation = *run.changes.borrow();
        let mut texts = lock(&run.texts);
        let found = texts.entry(path.to_owned()).or_insert_with(|| Text {
            generation,
            ..Text::default()
        });
        found.add(text);
        drop(texts);
        run.changes.send_modify(|count| *count += 1);
    }

    fn clear(&self, run: &RunId, path: &str) {
        if let Some(run) = self.found(run) {
            lock(&run.texts).remove(path);
        }
    }

    fn clear_run(&self, run: &RunId) {
        let mut runs = lock(&self.0);
        if let Some(texts) = runs.get(run) {
            lock(&texts.texts).clear();
            if texts.is_idle() {
                runs.remove(run);
            }
        }
    }

    fn join(&self, run: &RunId) -> Box<dyn LiveText> {
        let run = self.run(run);
        let changes = run.changes.subscribe();
        Box::new(Reader {
            run,
            changes,
            has: BTreeMap::new(),
        })
    }
}

/// A reader of a run's texts.
struct Reader {
    run: Arc<RunTexts>,
    changes: watch::Receiver<u64>,
    /// The length that the reader has received of each text, by path, with the generation of the text.
    has: BTreeMap<String, (u64, Length)>,
}

impl LiveText for Reader {
    fn pieces(&mut self) -> Vec<TextPiece> {
        self.changes.borrow_and_update();
        let texts = lock(&self.run.texts);
        self.has.retain(|path, _| texts.contains_key(path));
        let mut pieces = Vec::new();
        for (path, text) in texts.iter() {
            let has = self.has.entry(path.clone()).or_default();
            if has.0 != text.generation {
                *has = (text.generation, Length::default());
            }
            if let Some((offset, added)) = text.after(has.1) {
                pieces.push(TextPiece {
                    path: path.clone(),
                    offset: offset as u64,
                    text: added.to_owned(),
                });
                has.1 = Length {
                    bytes: text.dropped.bytes + text.kept.len(),
                    chars: offset + added.chars().count(),
                };
            }
        }
        pieces
    }

    fn changed(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            // Fails when the store is closed; then every operation fails.
            let _ = self.changes.changed().await;
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reader: &mut Box<dyn LiveText>) -> Vec<(u64, String)> {
        let pieces = reader.pieces().into_iter();
        pieces.map(|piece| (piece.offset, piece.text)).collect()
    }

    #[test]
    fn a_reader_gets_the_text_so_far_and_then_what_is_added() {
        let (live, run) = (LiveTexts::default(), RunId::from_text("r"));
        live.add(&run, "a/turn", "Gr\u{fc}");
        let mut reader = live.join(&run);
        assert_eq!(shown(&mut reader), [(0, "Gr\u{fc}".to_owned())]);
        assert_eq!(shown(&mut reader), []);
        live.add(&run, "a/turn", "\u{df}e");
        live.add(&run, "a/turn", "!");
        assert_eq!(shown(&mut reader), [(3, "\u{df}e!".to_owned())]);
    }

    #[test]
    fn a_text_that_begins_again_has_offset_0() {
        let (live, run) = (LiveTexts::default(), RunId::from_text("r"));
        let mut reader = live.join(&run);
        live.add(&run, "a/turn", "one");
        assert_eq!(shown(&mut reader), [(0, "one".to_owned())]);
        live.clear(&run, "a/turn");
        live.add(&run, "a/turn", "other");
        assert_eq!(shown(&mut reader), [(0, "other".to_owned())]);
    }

    #[test]
    fn only_the_end_of_a_very_long_text_is_kept() {
        let (live, run) = (LiveTexts::default(), RunId::from_text("r"));
        let piece = "\u{e4}".repeat(1000);
        for _ in 0..2000 {
            live.add(&run, "a/turn", &piece);
        }
        let found = live.join(&run).pieces();
        let [piece] = &found[..] else {
            panic!("one piece: {}", found.len());
        };
        assert!(piece.text.len() <= TEXT_MAX, "{}", piece.text.len());
        assert_eq!(piece.offset + piece.text.chars().count() as u64, 2_000_000);
    }

    #[test]
    fn the_texts_of_a_run_are_dropped_when_it_is_no_longer_executed() {
        let (live, run) = (LiveTexts::default(), RunId::from_text("r"));
        live.add(&run, "a/turn", "text");
        live.clear_run(&run);
        assert!(lock(&live.0).is_empty());
    }
}
