//! Rules for the frontmatter of a knowledge base, as its own
//! `groove-schema.toml` states them.

mod validation;

pub use validation::{Checked, Kind, Validation, Violation};

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use toml::de::{DeTable, DeValue};

/// The keys that always have a place, whether a schema names them or not.
pub const ALWAYS_DECLARED: [&str; 5] = ["title", "date", "topic", "depth", "tags"];

/// What the frontmatter of every document has to look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The rules of each declared key, in order of name.
    pub fields: BTreeMap<String, FieldRules>,
    /// Whether a document may have keys that are not declared.
    pub allow_unknown_fields: bool,
}

/// What holds for one key. The default declares it and checks nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldRules {
    /// Whether the key has to be there with a value.
    pub required: bool,
    /// The shape that a value has to have.
    pub shape: Option<Shape>,
    /// What a string, or every element of a list, has to match somewhere.
    pub pattern: Option<Pattern>,
    /// What a string, or every element of a list, has to be one of.
    pub allowed: Option<Vec<String>>,
    /// The least characters of a string or elements of a list.
    pub min_length: Option<usize>,
    /// The most characters of a string or elements of a list.
    pub max_length: Option<usize>,
    /// Whether an empty string or list satisfies `required`.
    pub allow_empty: bool,
}

/// The shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    String,
    /// A list of values.
    Array,
}

impl Shape {
    /// The word of the schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Array => "array",
        }
    }
}

/// A regular expression that is matched anywhere in a text.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Tells whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// Why the text of a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchema {
    /// It is not TOML.
    #[error("line {line}: not valid TOML: {reason}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// What the reader says.
        reason: String,
    },
    /// A name that means nothing where it stands.
    #[error("line {line}: unknown {what} {name:?}; known: {known}")]
    Unknown {
        /// The line, counted from 1.
        line: usize,
        /// What kind of name it would be.
        what: String,
        /// The name.
        name: String,
        /// The names that mean something there.
        known: String,
    },
    /// A rule or option with a value that it does not take.
    #[error("line {line}: {place} {reason}")]
    Value {
        /// The line, counted from 1.
        line: usize,
        /// The field with its rule, or the option.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

const RULES: &str = "required, type, pattern, enum, min_length, max_length, allow_empty";

impl Schema {
    /// Reads the text of a schema file.
    ///
    /// # Errors
    ///
    /// [`InvalidSchema`] names the field and the rule that stand first among
    /// those that cannot be used.
    ///
    /// ```
    /// use grooveseek::domain::schema::Schema;
    ///
    /// let schema = Schema::parse("[fields.status]\nenum = [\"draft\", \"done\"]").unwrap();
    /// assert!(schema.declared_fields().contains("status"));
    ///
    /// let error = Schema::parse("[fields.status]\nenm = []").unwrap_err();
    /// assert!(error.to_string().starts_with("line 2: unknown rule of field status \"enm\""));
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidSchema> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let table = DeTable::parse(text).map_err(|error| InvalidSchema::Syntax {
            line: line_at(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().lines().collect::<Vec<_>>().join("; "),
        })?;
        let mut schema = Self { fields: BTreeMap::new(), allow_unknown_fields: true };
        for (name, line, value) in in_order(text, table.get_ref()) {
            match (name, value) {
                ("fields", DeValue::Table(fields)) => {
                    for (name, line, rules) in in_order(text, fields) {
                        let DeValue::Table(rules) = rules else {
                            return Err(wrong(line, &format!("field {name}"), "a table of rules"));
                        };
                        schema.fields.insert(name.to_owned(), FieldRules::read(text, name, rules)?);
                    }
                }
                ("options", DeValue::Table(options)) => {
                    for (name, line, value) in in_order(text, options) {
                        if name != "allow_unknown_fields" {
                            return Err(unknown(
                                line,
                                "key of [options]",
                                name,
                                "allow_unknown_fields",
                            ));
                        }
                        schema.allow_unknown_fields = flag(value, line, "allow_unknown_fields")?;
                    }
                }
                ("fields" | "options", _) => return Err(wrong(line, name, "a section")),
                _ => return Err(unknown(line, "section", name, "fields, options")),
            }
        }
        Ok(schema)
    }

    /// The keys whose values an index keeps: the declared ones without those
    /// that always have a place of their own.
    ///
    /// ```
    /// use grooveseek::domain::schema::Schema;
    ///
    /// let schema = Schema::parse("[fields.title]\nrequired = true\n[fields.owner]").unwrap();
    /// assert!(schema.declared_fields().into_iter().eq(["owner"]));
    /// ```
    pub fn declared_fields(&self) -> BTreeSet<String> {
        self.fields
            .keys()
            .filter(|name| !ALWAYS_DECLARED.contains(&name.as_str()))
            .cloned()
            .collect()
    }

    /// Tells whether a document may have this key when it may have no others.
    pub fn is_declared(&self, name: &str) -> bool {
        ALWAYS_DECLARED.contains(&name) || self.fields.contains_key(name)
    }
}

impl FieldRules {
    fn read(text: &str, field: &str, table: &DeTable<'_>) -> Result<Self, InvalidSchema> {
        let mut rules = Self::default();
        for (name, line, value) in in_order(text, table) {
            let place = format!("field {field}, rule {name}:");
            match name {
                "required" => rules.required = flag(value, line, &place)?,
                "allow_empty" => rules.allow_empty = flag(value, line, &place)?,
                "type" => rules.shape = Some(shape(value, line, &place)?),
                "pattern" => rules.pattern = Some(pattern(value, line, &place)?),
                "enum" => rules.allowed = Some(strings(value, line, &place)?),
                "min_length" => rules.min_length = Some(length(value, line, &place)?),
                "max_length" => rules.max_length = Some(length(value, line, &place)?),
                _ => return Err(unknown(line, &format!("rule of field {field}"), name, RULES)),
            }
        }
        Ok(rules)
    }
}

/// The members of a table in the order of the text, with their lines.
fn in_order<'a>(text: &str, table: &'a DeTable<'_>) -> Vec<(&'a str, usize, &'a DeValue<'a>)> {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(name, _)| name.span().start);
    members
        .into_iter()
        .map(|(name, value)| {
            (name.get_ref().as_ref(), line_at(text, name.span().start), value.get_ref())
        })
        .collect()
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

fn unknown(line: usize, what: &str, name: &str, known: &str) -> InvalidSchema {
    InvalidSchema::Unknown {
        line,
        what: what.to_owned(),
        name: name.to_owned(),
        known: known.to_owned(),
    }
}

fn wrong(line: usize, place: &str, expected: &str) -> InvalidSchema {
    InvalidSchema::Value { line, place: place.to_owned(), reason: format!("has to be {expected}") }
}

fn flag(value: &DeValue<'_>, line: usize, place: &str) -> Result<bool, InvalidSchema> {
    value.as_bool().ok_or_else(|| wrong(line, place, "true or false"))
}

fn strings(value: &DeValue<'_>, line: usize, place: &str) -> Result<Vec<String>, InvalidSchema> {
    value
        .as_array()
        .and_then(|list| {
            list.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        })
        .ok_or_else(|| wrong(line, place, "a list of strings"))
}

fn length(value: &DeValue<'_>, line: usize, place: &str) -> Result<usize, InvalidSchema> {
    value
        .as_integer()
        .and_then(|number| usize::from_str_radix(number.as_str(), number.radix()).ok())
        .ok_or_else(|| wrong(line, place, "a whole number from 0 up"))
}

fn shape(value: &DeValue<'_>, line: usize, place: &str) -> Result<Shape, InvalidSchema> {
    match value.as_str() {
        Some("string") => Ok(Shape::String),
        Some("array") => Ok(Shape::Array),
        Some(kind @ ("integer" | "date")) => Err(InvalidSchema::Value {
            line,
            place: place.to_owned(),
            reason: format!(
                "there is no type {kind:?}, because every value is read as text; say what the \
                 text looks like with `pattern`"
            ),
        }),
        Some("bool" | "boolean") => Err(InvalidSchema::Value {
            line,
            place: place.to_owned(),
            reason: "there is no type for a switch; write enum = [\"true\", \"false\"]".to_owned(),
        }),
        _ => Err(wrong(line, place, "\"string\" or \"array\"")),
    }
}

fn pattern(value: &DeValue<'_>, line: usize, place: &str) -> Result<Pattern, InvalidSchema> {
    let text = value.as_str().ok_or_else(|| wrong(line, place, "a regular expression"))?;
    Regex::new(text).map(Pattern).map_err(|error| InvalidSchema::Value {
        line,
        place: place.to_owned(),
        reason: format!("{text:?} is no valid regular expression: {}", last_line(&error)),
    })
}

/// The part of a many-lined message that says what is wrong.
fn last_line(error: &regex::Error) -> String {
    let message = error.to_string();
    let line = message.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> FieldRules {
        Schema::parse(&format!("[fields.x]\n{text}")).unwrap().fields.remove("x").unwrap()
    }

    fn refusal(text: &str) -> String {
        Schema::parse(text).unwrap_err().to_string()
    }

    // CFG-87
    #[test]
    fn an_empty_table_declares_a_key_without_checking_it() {
        let schema = Schema::parse("[fields.owner]\n[fields.\"due date\"]\n").unwrap();
        assert_eq!(schema.fields["owner"], FieldRules::default());
        assert!(schema.is_declared("due date") && !schema.is_declared("other"));
    }

    // CFG-87 IDX-94
    #[test]
    fn five_keys_are_declared_anyway_and_no_index_keeps_them_as_fields() {
        let text = ALWAYS_DECLARED.map(|name| format!("[fields.{name}]\n")).concat();
        let schema = Schema::parse(&format!("{text}[fields.owner]\n[fields.Title]\n")).unwrap();
        assert!(schema.declared_fields().into_iter().eq(["Title", "owner"]));
        let empty = Schema::parse("").unwrap();
        assert!(ALWAYS_DECLARED.iter().all(|name| empty.is_declared(name)));
        assert!(empty.declared_fields().is_empty());
    }

    // CFG-88a CFG-88b CFG-88c CFG-88d CFG-88e CFG-88f
    #[test]
    fn every_rule_is_read() {
        let all = rules(
            "required = true\ntype = \"array\"\npattern = '^a'\nenum = [\"a\", \"ab\"]\n\
             min_length = 1\nmax_length = 0x10\nallow_empty = true",
        );
        assert!(all.required && all.allow_empty);
        assert_eq!(all.shape, Some(Shape::Array));
        assert_eq!(all.allowed, Some(vec!["a".to_owned(), "ab".to_owned()]));
        assert_eq!((all.min_length, all.max_length), (Some(1), Some(16)));
        assert_eq!(all.pattern.map(|pattern| pattern.as_str().to_owned()).as_deref(), Some("^a"));
        assert_eq!(rules("type = \"string\"").shape, Some(Shape::String));
    }

    // CFG-88c
    #[test]
    fn a_pattern_matches_anywhere_unless_it_is_anchored() {
        assert!(rules("pattern = 'b'").pattern.unwrap().is_match("abc"));
        assert!(!rules("pattern = '^b$'").pattern.unwrap().is_match("abc"));
    }

    // CFG-88
    #[test]
    fn an_unknown_rule_or_option_is_refused_with_its_field() {
        for (text, parts) in [
            ("[fields.x]\nreqired = true", ["line 2", "field x", "\"reqired\"", "required, type"]),
            ("[options]\nstrict = true", ["line 2", "[options]", "strict", "allow_unknown_fields"]),
            ("[field.x]\n", ["line 1", "section", "\"field\"", "fields, options"]),
            ("fields.x = 1", ["line 1", "field x", "table", "rules"]),
            ("fields = 1", ["line 1", "fields", "has to be", "a section"]),
        ] {
            let message = refusal(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }

    // CFG-88
    #[test]
    fn a_rule_with_a_value_that_it_does_not_take_is_refused() {
        for (text, expected) in [
            ("required = \"yes\"", "true or false"),
            ("allow_empty = 1", "true or false"),
            ("type = 3", "\"string\" or \"array\""),
            ("type = \"number\"", "\"string\" or \"array\""),
            ("type = \"integer\"", "`pattern`"),
            ("type = \"date\"", "`pattern`"),
            ("type = \"bool\"", "enum = [\"true\", \"false\"]"),
            ("pattern = '('", "regular expression: unclosed group"),
            ("pattern = 5", "a regular expression"),
            ("enum = \"a\"", "a list of strings"),
            ("enum = [1]", "a list of strings"),
            ("min_length = -1", "a whole number from 0 up"),
            ("max_length = 1.5", "a whole number from 0 up"),
        ] {
            let message = refusal(&format!("[fields.owner]\n{text}"));
            let rule = text.split(' ').next().unwrap();
            assert!(
                message.starts_with(&format!("line 2: field owner, rule {rule}: ")),
                "{message}"
            );
            assert!(message.contains(expected), "{message}");
        }
    }

    // CFG-88g
    #[test]
    fn undeclared_keys_are_allowed_unless_the_option_says_otherwise() {
        assert!(Schema::parse("").unwrap().allow_unknown_fields);
        let strict = Schema::parse("[options]\nallow_unknown_fields = false").unwrap();
        assert!(!strict.allow_unknown_fields);
        assert!(refusal("[options]\nallow_unknown_fields = 0").contains("true or false"));
    }

    // CFG-86
    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        assert!(refusal("[fields.x]\nrequired = \n").starts_with("line 2: not valid TOML: "));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]a-z._= \"'\n0-9{}]{0,80}") {
            let _outcome = Schema::parse(&text);
        }

        // IDX-94
        #[test]
        fn what_is_declared_is_what_the_text_names(
            names in proptest::collection::btree_set("[a-z]{1,6}|title|tags", 0..6)
        ) {
            let sections: Vec<String> =
                names.iter().map(|name| format!("[fields.{name}]\n")).collect();
            let declared = Schema::parse(&sections.concat()).unwrap().declared_fields();
            let expected = names
                .into_iter()
                .filter(|name| !ALWAYS_DECLARED.contains(&name.as_str()))
                .collect();
            proptest::prop_assert_eq!(declared, expected);
        }
    }
}
