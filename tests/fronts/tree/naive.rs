//! A second way to tick a tree, as plain as possible: each node keeps its own state, and clears its children itself.

/// A node.
#[derive(Debug, Clone)]
pub enum Shape {
    Sequence(Vec<Tree>),
    Selector(Vec<Tree>),
    Parallel(Vec<Tree>),
    /// For each step, whether it is an `evaluate`.
    Action(Vec<bool>),
    Cycle,
}

/// A node, its retries, and its state.
#[derive(Debug, Clone)]
pub struct Tree {
    pub shape: Shape,
    pub retries: u32,
    pub ended: Option<bool>,
    pub step: usize,
    pub used: u32,
}

/// What a tick gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tick {
    Done,
    Failure,
    /// The path of the action, and its step.
    Ask(Vec<usize>, usize),
}

impl Tree {
    pub fn new(shape: Shape, retries: u32) -> Tree {
        Tree {
            shape,
            retries,
            ended: None,
            step: 0,
            used: 0,
        }
    }

    pub fn tick(&mut self) -> Tick {
        loop {
            let result = match self.ended {
                Some(true) => Tick::Done,
                Some(false) => Tick::Failure,
                None => self.visit(),
            };
            match result {
                Tick::Failure if self.used < self.retries => {
                    self.used += 1;
                    self.clear();
                }
                Tick::Failure => {
                    self.ended = Some(false);
                    return Tick::Failure;
                }
                Tick::Done => {
                    self.ended = Some(true);
                    return Tick::Done;
                }
                ask => return ask,
            }
        }
    }

    fn visit(&mut self) -> Tick {
        let step = self.step;
        match &mut self.shape {
            Shape::Cycle => Tick::Failure,
            Shape::Action(steps) if step < steps.len() => Tick::Ask(Vec::new(), step),
            Shape::Action(_) => Tick::Done,
            Shape::Sequence(children) => {
                for (idx, child) in children.iter_mut().enumerate() {
                    match child.tick() {
                        Tick::Done => {}
                        other => return below(idx, other),
                    }
                }
                Tick::Done
            }
            Shape::Selector(children) => {
                for (idx, child) in children.iter_mut().enumerate() {
                    match child.tick() {
                        Tick::Failure => {}
                        other => return below(idx, other),
                    }
                }
                Tick::Failure
            }
            Shape::Parallel(children) => {
                let mut first = None;
                for (idx, child) in children.iter_mut().enumerate() {
                    match child.tick() {
                        Tick::Done => {}
                        Tick::Failure => return Tick::Failure,
                        ask => first = first.or(Some(below(idx, ask))),
                    }
                }
                first.unwrap_or(Tick::Done)
            }
        }
    }

    /// Clears the state of the node and of all below it. Used retries stay used.
    fn clear(&mut self) {
        self.ended = None;
        self.step = 0;
        if let Shape::Sequence(children) | Shape::Selector(children) | Shape::Parallel(children) =
            &mut self.shape
        {
            children.iter_mut().for_each(Tree::clear);
        }
    }

    /// Takes the answer to a request of a place.
    pub fn answer(&mut self, path: &[usize], is_well: bool) {
        match (&mut self.shape, path) {
            (Shape::Action(steps), []) => {
                let is_evaluate = steps[self.step];
                let is_last = self.step + 1 == steps.len();
                match (is_well, is_evaluate || !is_last) {
                    (false, _) => self.ended = Some(false),
                    (true, true) => self.step += 1,
                    (true, false) => self.ended = Some(true),
                }
            }
            (
                Shape::Sequence(children) | Shape::Selector(children) | Shape::Parallel(children),
                [first, rest @ ..],
            ) => children[*first].answer(rest, is_well),
            (shape, path) => panic!("nothing is asked at {path:?} of {shape:?}"),
        }
    }

    /// Returns all used retries, by path.
    pub fn used(&self, path: &str, found: &mut Vec<(String, u32)>) {
        if self.used > 0 {
            found.push((path.to_owned(), self.used));
        }
        if let Shape::Sequence(children) | Shape::Selector(children) | Shape::Parallel(children) =
            &self.shape
        {
            for (idx, child) in children.iter().enumerate() {
                let path = match path {
                    "" => idx.to_string(),
                    path => format!("{path}.{idx}"),
                };
                child.used(&path, found);
            }
        }
    }

    /// Returns the tree as the data of a flow, in EDN.
    pub fn edn(&self) -> String {
        let retries = match self.retries {
            0 => String::new(),
            retries => format!(" :retries {retries}"),
        };
        let list = |kind: &str, children: &[Tree]| {
            let children: Vec<String> = children.iter().map(Tree::edn).collect();
            let children = children.join(" ");
            format!("{{:type \"{kind}\" :name \"N\"{retries} :children [{children}]}}")
        };
        match &self.shape {
            Shape::Cycle => "{:type \"ref\" :ref \"#\"}".to_owned(),
            Shape::Sequence(children) => list("sequence", children),
            Shape::Selector(children) => list("selector", children),
            Shape::Parallel(children) => list("parallel", children),
            Shape::Action(steps) => {
                let steps = steps.iter().map(|is_evaluate| match is_evaluate {
                    true => "{:evaluate \"x\"}",
                    false => "{:instruct \"x\"}",
                });
                let steps = steps.collect::<Vec<_>>().join(" ");
                format!("{{:type \"action\" :name \"A\"{retries} :steps [{steps}]}}")
            }
        }
    }
}

fn below(idx: usize, tick: Tick) -> Tick {
    match tick {
        Tick::Ask(mut path, step) => {
            path.insert(0, idx);
            Tick::Ask(path, step)
        }
        other => other,
    }
}
