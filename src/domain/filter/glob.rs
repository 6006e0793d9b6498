//! Patterns over a document's path.

/// A pattern over whole paths, case-sensitive, in characters.
///
/// `*` stands for any text and `?` for any character, both with `/` among them;
/// `**/` at the head of a pattern, of an alternative or after a `/` for any
/// folders or none; `[a-z]` for one character of the ranges and `[!a-z]` for
/// one of all others; `{a,b}` for either pattern. A `\` takes its meaning from
/// the character that follows it.
///
/// Matching takes time in proportion to the pattern's length times the path's,
/// whatever the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    program: Vec<Step>,
    prefix: String,
    is_linear: bool,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidGlob {
    #[error("a `[` is never closed")]
    UnclosedClass,
    #[error("the range {0}-{1} is empty")]
    EmptyRange(char, char),
    #[error("a `{{` is never closed")]
    UnclosedAlternatives,
    #[error("a `}}` closes nothing")]
    UnopenedAlternatives,
    #[error("nothing follows the last `\\`")]
    DanglingEscape,
}

/// One step of a match; the next step follows it unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Takes this character.
    One(char),
    /// Takes any character.
    Any,
    /// Takes a character inside the ranges, or outside of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
    /// Takes any number of characters.
    Star,
    /// Goes on with the next step, and with this one.
    Fork(usize),
    /// Goes on with this step.
    Jump(usize),
}

impl Step {
    /// Whether the step takes this character and is done.
    fn takes(&self, character: char) -> bool {
        match self {
            Self::One(expected) => *expected == character,
            Self::Any => true,
            Self::Class { negated, ranges } => {
                let inside = ranges.iter().any(|&(from, to)| (from..=to).contains(&character));
                inside != *negated
            }
            Self::Star | Self::Fork(_) | Self::Jump(_) => false,
        }
    }
}

impl Glob {
    /// Reads a pattern.
    ///
    /// - `escapes`: whether `\` is an escape; otherwise it is a separator, as
    ///   it is on Windows.
    pub(super) fn new(pattern: &str, escapes: bool) -> Result<Self, InvalidGlob> {
        let program = Reader::new(pattern, escapes).read()?;
        let prefix = program
            .iter()
            .map_while(|step| match step {
                Step::One(character) => Some(*character),
                _ => None,
            })
            .collect();
        let is_linear = !program.iter().any(|step| matches!(step, Step::Fork(_) | Step::Jump(_)));
        Ok(Self { program, prefix, is_linear })
    }

    /// Whether the pattern describes the whole path.
    pub(super) fn matches(&self, path: &str) -> bool {
        path.starts_with(&self.prefix)
            && if self.is_linear { self.matches_in_line(path) } else { self.matches_in_step(path) }
    }

    /// Without alternatives, only the last `*` can have taken too little.
    fn matches_in_line(&self, path: &str) -> bool {
        let mut rest = path.chars();
        let mut at = 0;
        let mut resume = None;
        loop {
            let step = self.program.get(at);
            if matches!(step, Some(Step::Star)) {
                at += 1;
                resume = Some((at, rest.clone()));
                continue;
            }
            let mut ahead = rest.clone();
            match (step, ahead.next()) {
                (None, None) => return true,
                (Some(step), Some(character)) if step.takes(character) => {
                    rest = ahead;
                    at += 1;
                }
                _ => {
                    let Some((after_star, from)) = &mut resume else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    rest = from.clone();
                    at = *after_star;
                }
            }
        }
    }

    /// Follows all ways through the program at once.
    fn matches_in_step(&self, path: &str) -> bool {
        let mut now = Places::new(self.program.len());
        let mut next = Places::new(self.program.len());
        now.add(&self.program, 0);
        for character in path.chars() {
            next.clear();
            for &place in &now.list {
                match self.program.get(place) {
                    Some(Step::Star) => next.add(&self.program, place),
                    Some(step) if step.takes(character) => next.add(&self.program, place + 1),
                    _ => {}
                }
            }
            if next.list.is_empty() {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.holds[self.program.len()]
    }
}

/// A set of places in a program.
struct Places {
    list: Vec<usize>,
    holds: Vec<bool>,
    pending: Vec<usize>,
}

impl Places {
    fn new(steps: usize) -> Self {
        Self { list: Vec::new(), holds: vec![false; steps + 1], pending: Vec::new() }
    }

    fn clear(&mut self) {
        for place in self.list.drain(..) {
            self.holds[place] = false;
        }
    }

    /// Adds a place and all that it leads to without a character.
    fn add(&mut self, program: &[Step], place: usize) {
        self.pending.push(place);
        while let Some(place) = self.pending.pop() {
            if std::mem::replace(&mut self.holds[place], true) {
                continue;
            }
            self.list.push(place);
            match program.get(place) {
                Some(Step::Star) => self.pending.push(place + 1),
                Some(Step::Jump(target)) => self.pending.push(*target),
                Some(Step::Fork(target)) => self.pending.extend([place + 1, *target]),
                _ => {}
            }
        }
    }
}

/// Reads a pattern into a program, from left to right.
struct Reader<'a> {
    rest: &'a str,
    escapes: bool,
    program: Vec<Step>,
    open: Vec<Alternatives>,
    /// Whether `**/` may stand for folders here.
    at_head: bool,
}

/// Alternatives that are still open.
struct Alternatives {
    /// The step that tries the next one.
    fork: usize,
    /// The steps that leave those read so far.
    exits: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn new(pattern: &'a str, escapes: bool) -> Self {
        Self { rest: pattern, escapes, program: Vec::new(), open: Vec::new(), at_head: true }
    }

    fn read(mut self) -> Result<Vec<Step>, InvalidGlob> {
        while let Some(character) = self.bump() {
            match character {
                '*' => self.stars(),
                '?' => self.push(Step::Any),
                '[' => {
                    let class = self.class()?;
                    self.push(class);
                }
                '{' => self.open_alternatives(),
                ',' if !self.open.is_empty() => self.next_alternative(),
                '}' => self.close_alternatives()?,
                '\\' => {
                    let literal = self.escaped()?;
                    self.push(Step::One(literal));
                }
                _ => self.push(Step::One(character)),
            }
        }
        if self.open.is_empty() { Ok(self.program) } else { Err(InvalidGlob::UnclosedAlternatives) }
    }

    fn bump(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    fn push(&mut self, step: Step) {
        self.at_head = step == Step::One('/');
        self.program.push(step);
    }

    /// What a `\` that was just read stands for.
    fn escaped(&mut self) -> Result<char, InvalidGlob> {
        if self.escapes { self.bump().ok_or(InvalidGlob::DanglingEscape) } else { Ok('/') }
    }

    /// Reads on after a `*`.
    fn stars(&mut self) {
        let more = self.rest.len() - self.rest.trim_start_matches('*').len();
        self.rest = &self.rest[more..];
        match self.rest.strip_prefix('/') {
            Some(rest) if more == 1 && self.at_head => {
                self.rest = rest;
                // Before a `*`, which takes folders as well, `**/` says nothing.
                if !rest.starts_with('*') {
                    let after = self.program.len() + 3;
                    self.program.extend([Step::Fork(after), Step::Star, Step::One('/')]);
                }
                self.at_head = true;
            }
            _ => self.push(Step::Star),
        }
    }

    /// Reads on after a `[`.
    fn class(&mut self) -> Result<Step, InvalidGlob> {
        let negated = self.rest.starts_with(['!', '^']);
        if negated {
            self.bump();
        }
        let mut ranges = Vec::new();
        loop {
            let from = match self.bump().ok_or(InvalidGlob::UnclosedClass)? {
                ']' if !ranges.is_empty() => return Ok(Step::Class { negated, ranges }),
                '\\' => self.escaped()?,
                character => character,
            };
            let mut ahead = self.rest.chars();
            let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
            let to = if is_range {
                self.bump();
                match self.bump().ok_or(InvalidGlob::UnclosedClass)? {
                    '\\' => self.escaped()?,
                    character => character,
                }
            } else {
                from
            };
            if from > to {
                return Err(InvalidGlob::EmptyRange(from, to));
            }
            ranges.push((from, to));
        }
    }

    fn open_alternatives(&mut self) {
        self.open.push(Alternatives { fork: self.program.len(), exits: Vec::new() });
        self.start_alternative();
    }

    /// Starts an alternative with a step that skips it, whose target is set
    /// once the next one starts.
    fn start_alternative(&mut self) {
        self.at_head = true;
        self.program.push(Step::Fork(self.program.len() + 1));
    }

    fn next_alternative(&mut self) {
        let exit = self.program.len();
        self.program.push(Step::Jump(exit));
        let next = self.program.len();
        if let Some(alternatives) = self.open.last_mut() {
            alternatives.exits.push(exit);
            self.program[alternatives.fork] = Step::Fork(next);
            alternatives.fork = next;
        }
        self.start_alternative();
    }

    fn close_alternatives(&mut self) -> Result<(), InvalidGlob> {
        // The last alternative's fork goes on with the alternative either way.
        let alternatives = self.open.pop().ok_or(InvalidGlob::UnopenedAlternatives)?;
        let end = self.program.len();
        for exit in alternatives.exits {
            self.program[exit] = Step::Jump(end);
        }
        self.at_head = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::new(pattern, true).unwrap().matches(path)
    }

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for path in matching {
            assert!(matches(pattern, path), "{pattern} should match {path}");
        }
        for path in others {
            assert!(!matches(pattern, path), "{pattern} should not match {path}");
        }
    }

    // SRCH-94
    #[test]
    fn a_star_takes_separators_too() {
        check("docs/*", &["docs/a.md", "docs/a/b.md"], &["docs", "xdocs/a.md", "Docs/a.md"]);
        check("*.md", &["a.md", "a/b.md", "日本/語.md"], &["a.mdx", "a.MD"]);
        check("a*b*c", &["abc", "a/b/c", "abbbcbc"], &["ab", "acb", "abcd"]);
    }

    // SRCH-94
    #[test]
    fn a_question_mark_takes_one_character_of_any_kind() {
        check("a?c", &["abc", "a/c", "a語c"], &["ac", "abbc"]);
        check("???.md", &["日本語.md", "abc.md"], &["日.md", "abcd.md"]);
    }

    // SRCH-94
    #[test]
    fn two_stars_stand_for_folders_or_none() {
        check("docs/**", &["docs/a.md", "docs/a/b.md"], &["docs", "notes/docs/a.md"]);
        check("**/*.rs", &["a.rs", "src/a.rs", "src/x/a.rs"], &["a.rsx"]);
        check("**/a.md", &["a.md", "x/a.md", "x/y/a.md"], &["ba.md", "x/ba.md"]);
        check(
            "x/**/a.md",
            &["x/a.md", "x/y/a.md", "x/y/z/a.md"],
            &["xa.md", "x/ya.md", "x/y/ba.md"],
        );
        check("**/**/a.md", &["a.md", "x/a.md"], &["ba.md"]);
        check("{x/**/a,b}.md", &["x/a.md", "x/y/a.md", "b.md"], &["xa.md", "y/b.md"]);
        check("**", &["a", "a/b"], &[]);
    }

    // SRCH-94
    #[test]
    fn a_class_takes_one_character_in_or_out_of_its_ranges() {
        check("[a-cx]1", &["a1", "c1", "x1"], &["d1", "-1", "1"]);
        check("[!a]b", &["cb", "/b", "語b"], &["ab", "b"]);
        check("[あ-ん]*", &["か.md"], &["カ.md"]);
        check("[]a][a-]", &["]-", "aa"], &["b-"]);
        check("[!]]", &["a"], &["]"]);
        check("[*]", &["*"], &["a"]);
        check("[\\]\\\\]", &["]", "\\"], &["a"]);
    }

    // SRCH-94
    #[test]
    fn braces_hold_alternatives() {
        check("{a,b}.md", &["a.md", "b.md"], &["c.md", "ab.md", ".md"]);
        check("x{a*,{b,c}?}y", &["xay", "xazzy", "xb1y", "xc/y"], &["xby", "xy"]);
        check("a{,.bak}", &["a", "a.bak"], &["ab"]);
        check("{docs,notes}/**", &["docs/a", "notes/b/c"], &["other/a"]);
        check("a,b", &["a,b"], &["a"]);
    }

    // SRCH-94
    #[test]
    fn a_backslash_takes_the_meaning_from_what_follows() {
        check("\\*.md", &["*.md"], &["a.md"]);
        check("a\\{b\\,c\\}\\?\\[\\\\", &["a{b,c}?[\\"], &["ab?[\\"]);
        check("\\a", &["a"], &["\\a"]);
    }

    // SRCH-94w
    #[test]
    fn where_a_backslash_is_a_separator_it_is_no_escape() {
        let glob = Glob::new("docs\\*", false).unwrap();
        assert!(glob.matches("docs/a.md"));
        assert!(!glob.matches("docs*"));
    }

    // SRCH-94
    #[test]
    fn a_pattern_is_anchored_at_both_ends() {
        check("a", &["a"], &["ab", "ba", "a/b", "b/a", "A"]);
        check("", &[], &["a"]);
    }

    // SRCH-95
    #[test]
    fn a_malformed_pattern_is_refused() {
        let error = |pattern| Glob::new(pattern, true).unwrap_err();
        assert_eq!(error("[abc"), InvalidGlob::UnclosedClass);
        assert_eq!(error("[]"), InvalidGlob::UnclosedClass);
        assert_eq!(error("[z-a]"), InvalidGlob::EmptyRange('z', 'a'));
        assert_eq!(error("{a,b"), InvalidGlob::UnclosedAlternatives);
        assert_eq!(error("a}"), InvalidGlob::UnopenedAlternatives);
        assert_eq!(error("a\\"), InvalidGlob::DanglingEscape);
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let path = "a".repeat(1000);
        for pattern in [
            format!("{}b", "*a".repeat(500)),
            format!("{}b", "{a,*}".repeat(200)),
            format!("{}{}b", "{a,".repeat(250), "}".repeat(250)),
            format!("{}b", "**/a/".repeat(200)),
        ] {
            // Exponential time would not end.
            assert!(!matches(&pattern, &path));
        }
    }

    /// The plain meaning, by trying everything: a pattern of alternatives is
    /// either of its readings.
    fn plainly_matches(pattern: &[char], path: &[char]) -> bool {
        match pattern {
            [] => path.is_empty(),
            ['*', rest @ ..] => (0..=path.len()).any(|n| plainly_matches(rest, &path[n..])),
            ['?', rest @ ..] => !path.is_empty() && plainly_matches(rest, &path[1..]),
            ['{', rest @ ..] => {
                let end = rest.iter().position(|&c| c == '}').unwrap();
                rest[..end].split(|&c| c == ',').any(|alternative| {
                    plainly_matches(&[alternative, &rest[end + 1..]].concat(), path)
                })
            }
            [c, rest @ ..] => path.first() == Some(c) && plainly_matches(rest, &path[1..]),
        }
    }

    proptest! {
        // SRCH-94
        #[test]
        fn matching_is_what_trying_everything_finds(
            pattern in "([ab/語?]|\\*[ab]?|\\{[ab*?]{0,3}(,[ab*?]{0,2}){0,2}\\}){0,6}",
            path in "[ab/語]{0,8}",
        ) {
            // Two stars mean folders; their cases stand above.
            prop_assume!(!pattern.contains("**"));
            let symbols: Vec<char> = pattern.chars().collect();
            let characters: Vec<char> = path.chars().collect();
            let expected = plainly_matches(&symbols, &characters);
            prop_assert_eq!(matches(&pattern, &path), expected, "{} on {}", pattern, path);
        }

        #[test]
        fn no_text_makes_a_pattern_panic(
            pattern in prop_oneof![any::<String>(), "[\\[\\]{},*?!^/\\\\a-c-]{0,24}"],
            path in any::<String>(),
            escapes in any::<bool>(),
        ) {
            if let Ok(glob) = Glob::new(&pattern, escapes) {
                let _answer: bool = glob.matches(&path);
            }
        }

        // SRCH-94
        #[test]
        fn a_path_without_operators_matches_itself(path in "[a-z語/. _-]{1,20}") {
            prop_assert!(matches(&path, &path));
        }
    }
}
