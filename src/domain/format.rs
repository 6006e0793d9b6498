//! Formats: which file extension is read by which parser.

/// A family of formats that share size limits and treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Prose in UTF-8.
    Text,
    /// Source code in UTF-8.
    Code,
    /// Everything that is not text in itself.
    Binary,
}

/// One format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The word that switches its parser on.
    pub id: &'static str,
    /// The file extension, in lower case, without the dot.
    pub extension: &'static str,
    /// Its family.
    pub class: Class,
}

/// Markdown, the format that is on by default.
pub const MARKDOWN: Format = Format { id: "md", extension: "md", class: Class::Text };

/// The formats whose parsers this build holds.
pub const SUPPORTED: &[Format] = &[MARKDOWN];

/// A language whose grammar is not part of any build: it comes as a shared
/// library that its user places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginLanguage {
    /// The word that switches its parser on, and the file extension.
    pub id: &'static str,
    /// The language's name, as file names spell it.
    pub name: &'static str,
}

/// The languages that come as plugins.
pub const PLUGIN_LANGUAGES: [PluginLanguage; 2] =
    [PluginLanguage { id: "py", name: "python" }, PluginLanguage { id: "php", name: "php" }];

impl PluginLanguage {
    /// The language of a parser id, compared without case.
    pub fn of_id(id: &str) -> Option<Self> {
        PLUGIN_LANGUAGES.into_iter().find(|language| language.id.eq_ignore_ascii_case(id))
    }
}

/// The formats that are switched on, each extension once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnabledFormats(Vec<Format>);

/// A list of parser ids that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFormats {
    /// No id at all.
    #[error("[parsers].enabled is empty, so nothing would be indexed; name at least \"md\"")]
    Empty,
    /// An id twice.
    #[error("[parsers].enabled names {id:?} twice")]
    Duplicate {
        /// The id.
        id: String,
    },
    /// An id that this build does not know.
    #[error(
        "[parsers].enabled names the unknown parser {id:?}; with a grammar plugin: {}; supported: \
         {supported}",
        plugin_ids()
    )]
    Unknown {
        /// The id.
        id: String,
        /// The ids that work, separated by commas.
        supported: String,
    },
    /// The legacy Excel format, which was withdrawn.
    #[error(
        "[parsers].enabled names \"xls\": the old Excel format is not read, because opening it \
         cannot be bounded in memory; convert the workbook to .xlsx; supported: {supported}"
    )]
    LegacyExcel {
        /// The ids that work, separated by commas.
        supported: String,
    },
}

/// The ids of plugin languages, quoted.
fn plugin_ids() -> String {
    PLUGIN_LANGUAGES.map(|language| format!("{:?}", language.id)).join(", ")
}

impl EnabledFormats {
    /// Switches on the formats of these ids, compared without case.
    ///
    /// # Errors
    ///
    /// [`InvalidFormats`] says which id is at fault.
    ///
    /// ```
    /// use grooveseek::domain::format::EnabledFormats;
    ///
    /// let formats = EnabledFormats::new(&["MD"]).unwrap();
    /// assert!(formats.of_extension("Md").is_some());
    /// assert!(EnabledFormats::new(&["rst"]).is_err());
    /// ```
    pub fn new<Id: AsRef<str>>(ids: &[Id]) -> Result<Self, InvalidFormats> {
        if ids.is_empty() {
            return Err(InvalidFormats::Empty);
        }
        let mut enabled: Vec<Format> = Vec::new();
        for id in ids.iter().map(AsRef::as_ref) {
            let Some(format) = SUPPORTED.iter().find(|format| format.id.eq_ignore_ascii_case(id))
            else {
                let supported =
                    SUPPORTED.iter().map(|format| format.id).collect::<Vec<_>>().join(", ");
                return Err(if id.eq_ignore_ascii_case("xls") {
                    InvalidFormats::LegacyExcel { supported }
                } else {
                    InvalidFormats::Unknown { id: id.to_owned(), supported }
                });
            };
            if enabled.contains(format) {
                return Err(InvalidFormats::Duplicate { id: id.to_owned() });
            }
            enabled.push(*format);
        }
        Ok(Self(enabled))
    }

    /// No format of this build: all that is read needs plugins.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Formats for a test, which may be such as this build cannot read.
    #[cfg(test)]
    pub(crate) fn of(formats: &[Format]) -> Self {
        Self(formats.to_vec())
    }

    /// The format that claims an extension, compared without ASCII case.
    pub fn of_extension(&self, extension: &str) -> Option<Format> {
        self.0.iter().find(|format| format.extension.eq_ignore_ascii_case(extension)).copied()
    }

    /// The enabled formats, in the order in which they were named.
    pub fn iter(&self) -> impl Iterator<Item = Format> + '_ {
        self.0.iter().copied()
    }
}

impl Default for EnabledFormats {
    /// Markdown alone.
    fn default() -> Self {
        Self(vec![MARKDOWN])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FMT-GEN-01 FMT-GEN-05
    #[test]
    fn ids_are_compared_without_case_and_each_may_stand_once() {
        assert_eq!(EnabledFormats::new::<&str>(&[]), Err(InvalidFormats::Empty));
        assert!(matches!(
            EnabledFormats::new(&["md", "MD"]),
            Err(InvalidFormats::Duplicate { .. })
        ));
        assert_eq!(EnabledFormats::new(&["Md"]), Ok(EnabledFormats::default()));
    }

    // FMT-GEN-01 CLI-224
    #[test]
    fn an_unknown_id_is_answered_with_the_supported_ones_last() {
        let message = EnabledFormats::new(&["rst"]).unwrap_err().to_string();
        assert!(message.contains("\"rst\"") && message.ends_with("md"), "{message}");
        assert!(message.contains("plugin: \"py\", \"php\"; supported"), "{message}");
        let message = EnabledFormats::new(&["xls"]).unwrap_err().to_string();
        assert!(message.contains(".xlsx"), "{message}");
    }
}
