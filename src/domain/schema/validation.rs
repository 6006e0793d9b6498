//! Holding the frontmatter of a document against a schema.

use std::collections::BTreeMap;

use crate::domain::document::{FieldValue, OpaqueShape};
use crate::domain::frontmatter::{self, Field};
use crate::domain::schema::{FieldRules, Schema, Shape};

/// The field that a violation of the whole block names.
const FRONTMATTER: &str = "frontmatter";

/// Something in the frontmatter of a document that its schema forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key; of a block that cannot be read, `frontmatter`.
    pub field: String,
    /// The line of the file in which the key stands, counted from 1; the first
    /// for a key that is not there.
    pub line: usize,
    /// What is wrong.
    pub kind: Kind,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key has to be there with a value.
    MissingRequired,
    /// The value has another shape than the rules can read.
    TypeMismatch {
        /// The shape that the rules ask for.
        expected: &'static str,
        /// The shape of the value.
        actual: &'static str,
    },
    /// A text does not match the pattern anywhere.
    PatternMismatch {
        /// The pattern as the schema has it.
        pattern: String,
        /// The text.
        actual: String,
    },
    /// A text is none of those that are allowed.
    NotInEnum {
        /// The text.
        actual: String,
        /// What is allowed, in the order of the schema.
        allowed: Vec<String>,
    },
    /// A text has too few or too many characters, or a list elements. Of the two
    /// bounds only the one is named that does not hold.
    LengthOutOfRange {
        /// How many there are.
        actual: usize,
        /// The least.
        min: Option<usize>,
        /// The most.
        max: Option<usize>,
    },
    /// The schema does not name the key.
    UndeclaredField,
    /// The block is no YAML that the index reads.
    FrontmatterUnparsed {
        /// Why.
        reason: String,
    },
}

impl Kind {
    /// The word for it in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::MissingRequired => "missing_required",
            Self::TypeMismatch { .. } => "type_mismatch",
            Self::PatternMismatch { .. } => "pattern_mismatch",
            Self::NotInEnum { .. } => "not_in_enum",
            Self::LengthOutOfRange { .. } => "length_out_of_range",
            Self::UndeclaredField => "undeclared_field",
            Self::FrontmatterUnparsed { .. } => "frontmatter_unparsed",
        }
    }
}

/// What is wrong with one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its key.
    pub path: String,
    /// At least one.
    pub violations: Vec<Violation>,
}

/// What is wrong with a knowledge base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// The documents that were looked at, those that could not be read among
    /// them.
    pub scanned: usize,
    /// The documents with violations, in ascending order of path.
    pub files: Vec<Checked>,
}

impl Schema {
    /// Holds a Markdown text against the rules.
    ///
    /// Violations come in the order of field names; of one field first its
    /// shape, then its length, the pattern, and what is allowed; keys that are
    /// not declared come last, in their order. A shape that does not fit, and a
    /// value that is missing, are the only violation of their field, and a block
    /// that cannot be read the only one of its document.
    ///
    /// ```
    /// use grooveseek::domain::schema::{Kind, Schema};
    ///
    /// let schema = Schema::parse("[fields.status]\nenum = [\"draft\", \"done\"]").unwrap();
    /// assert!(schema.violations("---\nstatus: done\n---\n").is_empty());
    ///
    /// let found = schema.violations("---\ntitle: A\nstatus: gone\n---\n");
    /// assert_eq!((found[0].field.as_str(), found[0].line), ("status", 3));
    /// assert!(matches!(found[0].kind, Kind::NotInEnum { .. }));
    /// ```
    pub fn violations(&self, text: &str) -> Vec<Violation> {
        let fields = match frontmatter::fields(text) {
            Ok(fields) => fields,
            Err(frontmatter::Unreadable { reason, line }) => {
                let kind = Kind::FrontmatterUnparsed { reason };
                return vec![Violation { field: FRONTMATTER.to_owned(), line, kind }];
            }
        };
        let mut violations: Vec<Violation> =
            self.fields.iter().flat_map(|(name, rules)| rules.violations(name, &fields)).collect();
        if !self.allow_unknown_fields {
            let undeclared = fields.iter().filter(|(name, _)| !self.is_declared(name));
            violations.extend(undeclared.map(|(name, field)| Violation {
                field: name.clone(),
                line: field.line,
                kind: Kind::UndeclaredField,
            }));
        }
        violations
    }
}

impl FieldRules {
    /// What is wrong with the value of one key.
    fn violations(&self, name: &str, fields: &BTreeMap<String, Field>) -> Vec<Violation> {
        let field = fields.get(name);
        let kinds = match field.map(|field| &field.value) {
            None | Some(FieldValue::Opaque(OpaqueShape::Null)) => {
                self.required.then_some(Kind::MissingRequired).into_iter().collect()
            }
            Some(value) => self.kinds(value),
        };
        let line = field.map_or(1, |field| field.line);
        let violation = |kind| Violation { field: name.to_owned(), line, kind };
        kinds.into_iter().map(violation).collect()
    }

    fn kinds(&self, value: &FieldValue) -> Vec<Kind> {
        let (shape, texts, length) = match value {
            FieldValue::Scalar(text) => {
                (Shape::String, std::slice::from_ref(text), text.chars().count())
            }
            FieldValue::List(texts) => (Shape::Array, texts.as_slice(), texts.len()),
            FieldValue::Opaque(shape) => return self.mismatch(opaque(*shape)),
        };
        if self.shape.is_some_and(|expected| expected != shape) {
            return self.mismatch(shape.as_str());
        }
        if length == 0 && self.required && !self.allow_empty {
            return vec![Kind::MissingRequired];
        }
        let mut kinds = self.lengths(length);
        if let Some(pattern) = &self.pattern {
            let failing = texts.iter().filter(|text| !pattern.is_match(text));
            kinds.extend(failing.map(|text| Kind::PatternMismatch {
                pattern: pattern.as_str().to_owned(),
                actual: text.clone(),
            }));
        }
        if let Some(allowed) = &self.allowed {
            let failing = texts.iter().filter(|text| !allowed.contains(text));
            kinds.extend(
                failing
                    .map(|text| Kind::NotInEnum { actual: text.clone(), allowed: allowed.clone() }),
            );
        }
        kinds
    }

    /// A shape that the rules do not read; none if no rule would.
    fn mismatch(&self, actual: &'static str) -> Vec<Kind> {
        let is_read = self.shape.is_some()
            || self.pattern.is_some()
            || self.allowed.is_some()
            || self.min_length.is_some()
            || self.max_length.is_some();
        let expected = self.shape.map_or("string or array", Shape::as_str);
        is_read.then_some(Kind::TypeMismatch { expected, actual }).into_iter().collect()
    }

    fn lengths(&self, actual: usize) -> Vec<Kind> {
        let short = self.min_length.filter(|&min| actual < min);
        let long = self.max_length.filter(|&max| actual > max);
        let short = short.map(|min| Kind::LengthOutOfRange { actual, min: Some(min), max: None });
        let long = long.map(|max| Kind::LengthOutOfRange { actual, min: None, max: Some(max) });
        short.into_iter().chain(long).collect()
    }
}

/// The word for a value that has no text.
fn opaque(shape: OpaqueShape) -> &'static str {
    match shape {
        OpaqueShape::Mapping => "mapping",
        OpaqueShape::NestedSequence => "nested sequence",
        OpaqueShape::Binary => "binary",
        OpaqueShape::Null => "null",
    }
}

#[cfg(test)]
mod tests;
