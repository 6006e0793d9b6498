//! Leaving out documents that are named, or whose paths match.

use super::admission::Filter;
use super::glob::Glob;
use super::request::{InvalidFilter, check_list, malformed};

impl Filter {
    /// The same filter without documents of some keys.
    ///
    /// ```
    /// use grooveseek::domain::filter::Filter;
    ///
    /// let filter = Filter::default().without(["a.md"]);
    /// assert!(!filter.admits_every_document());
    /// ```
    #[must_use]
    pub fn without<'a>(mut self, keys: impl IntoIterator<Item = &'a str>) -> Self {
        self.documents.without.extend(keys.into_iter().map(str::to_owned));
        self
    }

    /// The same without documents of the keys that a caller lists.
    ///
    /// - `parameter`: what the list is called.
    /// - `keys`: up to 64, up to 1024 bytes each; compared byte for byte.
    ///
    /// # Errors
    ///
    /// [`InvalidFilter`] if the list or one of its entries is too long.
    pub fn without_listed(self, parameter: &str, keys: &[String]) -> Result<Self, InvalidFilter> {
        check_list(parameter, keys)?;
        Ok(self.without(keys.iter().map(String::as_str)))
    }

    /// The same without documents whose paths match one of a caller's globs.
    ///
    /// - `parameter`: what the list is called.
    /// - `globs`: up to 64, up to 1024 bytes each.
    ///
    /// # Errors
    ///
    /// [`InvalidFilter`] if the list or one of its entries is too long, or an
    /// entry is no glob or starts with `!`.
    pub fn without_matching(
        mut self,
        parameter: &str,
        globs: &[String],
    ) -> Result<Self, InvalidFilter> {
        check_list(parameter, globs)?;
        for pattern in globs {
            if pattern.starts_with('!') {
                let reason = "all that this list matches is left out, so leave the `!` out";
                return Err(malformed(parameter, pattern, reason));
            }
            let glob = Glob::new(pattern, cfg!(not(windows)))
                .map_err(|error| malformed(parameter, pattern, &error.to_string()))?;
            self.documents.excluded_paths.push(glob);
        }
        Ok(self)
    }
}
