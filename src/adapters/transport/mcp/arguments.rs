//! Reads the arguments of a tool call one by one.

use std::collections::BTreeMap;

use rmcp::model::ErrorData;
use rmcp::model::JsonObject;
use serde_json::Value;

/// The arguments of one call. An explicit null counts as not given, and what
/// nobody asks for is ignored.
pub(super) struct Arguments(JsonObject);

/// What JSON calls an argument's type, for an error message.
type Kind = &'static str;

impl Arguments {
    /// Takes over the arguments of a call, which may have none.
    pub(super) fn new(arguments: Option<JsonObject>) -> Self {
        Self(arguments.unwrap_or_default())
    }

    /// The names of the arguments that nobody has asked for.
    pub(super) fn unread(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A string that has to be there.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, ErrorData> {
        self.text(name)?.ok_or_else(|| {
            ErrorData::invalid_params(format!("missing required argument `{name}`"), None)
        })
    }

    /// A string.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ErrorData> {
        self.take(name, "a string", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    /// An array of strings.
    pub(super) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, ErrorData> {
        self.take(name, "an array of strings", strings)
    }

    /// An object whose values are arrays of strings.
    pub(super) fn text_lists(
        &mut self,
        name: &str,
    ) -> Result<BTreeMap<String, Vec<String>>, ErrorData> {
        let lists = self.take(name, "an object of arrays of strings", |value| match value {
            Value::Object(members) => members
                .into_iter()
                .map(|(key, value)| strings(value).map(|list| (key, list)))
                .collect(),
            _ => None,
        });
        Ok(lists?.unwrap_or_default())
    }

    /// True or false.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, ErrorData> {
        self.take(name, "a boolean", |value| value.as_bool())
    }

    /// Any number.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, ErrorData> {
        self.take(name, "a number", |value| value.as_f64())
    }

    /// An integer from 0 to 4294967295; JSON knows no difference between 5 and
    /// 5.0.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, ErrorData> {
        self.take(name, "an integer from 0 to 4294967295", |value| match value.as_u64() {
            Some(whole) => u32::try_from(whole).ok(),
            None => value.as_f64().and_then(whole),
        })
    }

    fn take<T>(
        &mut self,
        name: &str,
        kind: Kind,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, ErrorData> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| {
                ErrorData::invalid_params(format!("argument `{name}` must be {kind}"), None)
            }),
        }
    }
}

fn strings(value: Value) -> Option<Vec<String>> {
    let Value::Array(values) = value else {
        return None;
    };
    values
        .into_iter()
        .map(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
        .collect()
}

fn whole(number: f64) -> Option<u32> {
    if number.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&number) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is whole and lies in the range of the type"
    )]
    let whole = number as u32;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;
    use serde_json::json;

    fn arguments(value: Value) -> Arguments {
        Arguments::new(Some(rmcp::model::object(value)))
    }

    // SRCH-27 MCP-13
    #[test]
    fn null_and_absence_are_the_same() {
        let mut given = arguments(json!({
            "text": null, "texts": null, "lists": null, "flag": null, "number": null, "count": null,
        }));
        assert_eq!(given.text("text"), Ok(None));
        assert_eq!(given.texts("texts"), Ok(None));
        assert_eq!(given.text_lists("lists"), Ok(BTreeMap::new()));
        assert_eq!(given.flag("flag"), Ok(None));
        assert_eq!(given.number("number"), Ok(None));
        assert_eq!(given.count("count"), Ok(None));
        assert_eq!(Arguments::new(None).text("text"), Ok(None));
    }

    // MCP-12 SRCH-183
    #[test]
    fn a_wrong_type_names_the_argument_and_what_it_must_be() {
        let error = arguments(json!({ "limit": "5" })).count("limit").unwrap_err();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert_eq!(error.message, "argument `limit` must be an integer from 0 to 4294967295");
        for value in [json!(1), json!(true), json!([]), json!({})] {
            assert!(arguments(json!({ "x": value })).text("x").is_err(), "{value}");
        }
        for value in [json!(0), json!("true")] {
            assert!(arguments(json!({ "x": value })).flag("x").is_err(), "{value}");
        }
        for value in [json!("0.5"), json!([0.5])] {
            assert!(arguments(json!({ "x": value })).number("x").is_err(), "{value}");
        }
        for value in [json!("a"), json!(["a", 1]), json!([null]), json!({})] {
            assert!(arguments(json!({ "x": value })).texts("x").is_err(), "{value}");
        }
    }

    // MCP-12
    #[test]
    fn null_does_not_stand_in_for_a_required_argument() {
        for value in [json!({}), json!({ "query": null })] {
            let error = arguments(value).required_text("query").unwrap_err();
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
            assert_eq!(error.message, "missing required argument `query`");
        }
    }

    // SRCH-104
    #[test]
    fn a_bare_string_is_no_list_of_values() {
        let error = arguments(json!({ "fields": { "status": "open" } }));
        assert!({ error }.text_lists("fields").is_err());
        let lists = arguments(json!({ "fields": { "b": ["1"], "a": [] } }));
        assert_eq!(
            { lists }.text_lists("fields"),
            Ok(BTreeMap::from([("a".into(), vec![]), ("b".into(), vec!["1".into()])]))
        );
    }

    // MCP-12 MCP-13
    #[test]
    fn a_count_is_a_whole_number_of_32_bits() {
        for (value, count) in
            [(json!(0), 0), (json!(5), 5), (json!(5.0), 5), (json!(u32::MAX), u32::MAX)]
        {
            assert_eq!(arguments(json!({ "x": value })).count("x"), Ok(Some(count)));
        }
        for value in [json!(-1), json!(1.5), json!(4_294_967_296_u64), json!(1e300), json!(-0.5)] {
            assert!(arguments(json!({ "x": value })).count("x").is_err(), "{value}");
        }
    }
}
