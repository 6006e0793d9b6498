//! Icons, drawn as small pictures that need no network.

use rmcp::model::Icon;

/// What the server is shown as: a record with its groove.
pub(super) const SERVER: &str = "<circle cx='12' cy='12' r='10'/><circle cx='12' cy='12' r='6'/>\
                                 <circle cx='12' cy='12' r='1'/>";
pub(super) const SEARCH: &str = "<circle cx='10' cy='10' r='7'/><path d='M15 15l6 6'/>";
pub(super) const DOCUMENT: &str = "<path d='M6 2h9l4 4v16H6zM9 11h7M9 15h7'/>";
pub(super) const GRAPH: &str = "<circle cx='5' cy='12' r='3'/><circle cx='19' cy='5' r='3'/>\
                                <circle cx='19' cy='19' r='3'/><path d='M8 11l8-5M8 13l8 5'/>";
pub(super) const LIST: &str = "<path d='M9 6h12M9 12h12M9 18h12M3 6h1M3 12h1M3 18h1'/>";
pub(super) const FILTER: &str = "<path d='M3 4h18l-7 9v7l-4-2v-5z'/>";
pub(super) const PRACTICE: &str =
    "<path d='M12 2l3 7 7 .5-5.500 4.500L18 21l-6-4-6 4 1.500-7L2 9.500 9 9z'/>";
pub(super) const QUOTE: &str = "<path d='M4 7h6v6q0 4-4 5M14 7h6v6q0 4-4 5'/>";
pub(super) const REBUILD: &str = "<path d='M20 12a8 8 0 1 1-3-6l3 2M20 3v5h-5'/>";

/// A drawing of lines on 24 by 24 units, as a data URI.
pub(super) fn icon(drawing: &str) -> Vec<Icon> {
    let picture = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='#2a7' \
         stroke-width='2'>{drawing}</svg>"
    );
    let escaped = picture.replace('#', "%23").replace('<', "%3C").replace('>', "%3E");
    let uri = format!("data:image/svg+xml,{}", escaped.replace(' ', "%20"));
    vec![Icon::new(uri).with_mime_type("image/svg+xml").with_sizes(vec!["any".to_owned()])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icon_is_a_small_address_that_holds_its_picture() {
        for drawing in [SERVER, SEARCH, DOCUMENT, GRAPH, LIST, FILTER, PRACTICE, QUOTE, REBUILD] {
            let icons = icon(drawing);
            let uri = &icons[0].src;
            assert!(uri.starts_with("data:image/svg+xml,%3Csvg%20xmlns="), "{uri}");
            assert!(uri.len() < 600 && uri.is_ascii() && !uri.contains(['<', '>', '#', ' ', '"']));
        }
    }
}
