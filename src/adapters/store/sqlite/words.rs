//! The words of chunks, kept in the file: for each word, blocks of the chunks in
//! which it stands.
//!
//! A block holds the places of a word from its own number up to the next block's,
//! and is no larger than a page allows. After any changes, the places are those
//! that the same chunks counted afresh would have.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow, QueryBuilder, Row as _};

use crate::adapters::store::sqlite::{meta, postings, rows};
use crate::adapters::store::words::{
    self, Analyser, Collection, Group, Language, Names, Occurrences, Posting, columns,
};

/// The table, and what finds the languages of an index without reading every
/// document.
pub(super) const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS chunk_words (
        word TEXT NOT NULL,
        first INTEGER NOT NULL,
        places INTEGER NOT NULL,
        postings BLOB NOT NULL,
        PRIMARY KEY (word, first)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS documents_by_language ON documents (language);
";

/// Words that one statement looks up, and rows that one writes.
const WORDS: usize = 1024;
const ROWS: usize = 128;

/// Chunks that are counted together when all are counted afresh.
const CHUNKS: i64 = 4096;

/// Chunks of a document of which its language is read at most.
const SAMPLED: i64 = 64;

/// What ids are reduced by before they are added up, so that no sum overflows: a
/// prime.
const ID_MODULUS: i64 = 1_000_003;

/// The most places that a query reads: words that stand almost everywhere decide
/// nothing, and are left out where rarer ones are there.
const PLACES: u64 = 400_000;

/// A chunk whose words come or go.
struct Text {
    id: i64,
    language: Language,
    /// Heading, context, content.
    columns: [String; 3],
}

/// What a transaction changes, as long as it is not written down.
#[derive(Default)]
pub(super) struct Changes {
    added: BTreeMap<i64, Text>,
    removed: BTreeMap<i64, Text>,
}

/// Words and where they come or go, counted.
#[derive(Default)]
struct Counted {
    /// For each word, by chunk: how it stands there from now on; none if it does
    /// not.
    words: BTreeMap<String, BTreeMap<i64, Option<Posting>>>,
    totals: Totals,
}

/// How many chunks were counted, how many words they have, and a sum over their
/// ids, which tells whether another program changed the chunks since.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    chunks: i64,
    words: i64,
    ids: i64,
}

impl Totals {
    const KEYS: [&'static str; 3] = [meta::WORD_CHUNKS, meta::WORD_TOTAL, meta::WORD_IDS];

    async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let [chunks, words, ids] = Self::KEYS;
        Ok(Self {
            chunks: meta::number(connection, chunks).await?,
            words: meta::number(connection, words).await?,
            ids: meta::number(connection, ids).await?,
        })
    }

    async fn write(self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for (key, number) in Self::KEYS.into_iter().zip([self.chunks, self.words, self.ids]) {
            meta::set(connection, key, &number.to_string()).await?;
        }
        Ok(())
    }

    fn count(&mut self, id: i64, words: u32, sign: i64) {
        self.chunks += sign;
        self.words += sign * i64::from(words);
        self.ids += sign * (id % ID_MODULUS);
    }
}

impl Changes {
    /// Notes a chunk that comes.
    pub(super) fn add(&mut self, id: i64, language: Language, columns: [String; 3]) {
        self.added.insert(id, Text { id, language, columns });
    }

    /// Notes all chunks of a document as they are, which are about to go or to
    /// be named otherwise.
    pub(super) async fn remove_all(
        &mut self,
        connection: &mut SqliteConnection,
        document: i64,
    ) -> Result<(), sqlx::Error> {
        for text in texts(connection, document).await? {
            if self.added.remove(&text.id).is_none() {
                self.removed.insert(text.id, text);
            }
        }
        Ok(())
    }

    /// Notes all chunks of a document as they are, which have been named
    /// otherwise.
    pub(super) async fn add_all(
        &mut self,
        connection: &mut SqliteConnection,
        document: i64,
    ) -> Result<(), sqlx::Error> {
        let texts = texts(connection, document).await?;
        self.added.extend(texts.into_iter().map(|text| (text.id, text)));
        Ok(())
    }

    /// Writes all down.
    pub(super) async fn write(self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        if self.added.is_empty() && self.removed.is_empty() {
            return Ok(());
        }
        let counted = tokio::task::spawn_blocking(move || self.count())
            .await
            .map_err(|error| sqlx::Error::Decode(error.into()))?;
        let Counted { words, totals } = counted;
        let before = Totals::read(connection).await?;
        change(connection, words).await?;
        let after = Totals {
            chunks: before.chunks + totals.chunks,
            words: before.words + totals.words,
            ids: before.ids + totals.ids,
        };
        after.write(connection).await
    }

    fn count(self) -> Counted {
        let mut analysers: BTreeMap<Language, Analyser> = BTreeMap::new();
        let mut counted = Counted::default();
        let mut words_of = |text: &Text| {
            let analyser =
                analysers.entry(text.language).or_insert_with(|| Analyser::new(text.language));
            words::count(analyser, text.columns.each_ref().map(String::as_str))
        };
        for text in self.removed.into_values() {
            let (counts, length) = words_of(&text);
            counted.totals.count(text.id, length, -1);
            for (word, _) in counts {
                counted.words.entry(word).or_default().insert(text.id, None);
            }
        }
        for text in self.added.into_values() {
            let (counts, length) = words_of(&text);
            counted.totals.count(text.id, length, 1);
            for (word, counts) in counts {
                let posting = Posting { id: text.id, counts, length };
                counted.words.entry(word).or_default().insert(text.id, Some(posting));
            }
        }
        counted
    }
}

/// A block to be written.
struct Row {
    word: String,
    first: i64,
    places: i64,
    bytes: Vec<u8>,
}

/// Cuts postings into blocks.
///
/// - `first`: the number of the first block, if that is decided.
fn blocks(word: &str, first: Option<i64>, postings: &[Posting]) -> Vec<Row> {
    let mut blocks: Vec<Row> = Vec::new();
    let mut before = 0;
    for posting in postings {
        if let Some(block) = blocks.last_mut().filter(|block| block.bytes.len() < postings::FULL) {
            postings::push(&mut block.bytes, before, posting);
            block.places += 1;
        } else {
            let first = first.filter(|_| blocks.is_empty()).unwrap_or(posting.id);
            let mut bytes = Vec::new();
            postings::push(&mut bytes, first, posting);
            blocks.push(Row { word: word.to_owned(), first, places: 1, bytes });
        }
        before = posting.id;
    }
    blocks
}

/// Where a change begins: the word, the number of the block that its chunk
/// belongs to with its bytes, and the number of the block after that.
type Found = (String, Option<i64>, Option<Vec<u8>>, Option<i64>);

/// Changes where words stand. Of a word whose places lie in several blocks, one
/// block after the other is written.
async fn change(
    connection: &mut SqliteConnection,
    mut words: BTreeMap<String, BTreeMap<i64, Option<Posting>>>,
) -> Result<(), sqlx::Error> {
    while !words.is_empty() {
        let wanted: Vec<(&String, i64)> = words
            .iter()
            .filter_map(|(word, places)| Some((word, *places.first_key_value()?.0)))
            .take(WORDS)
            .collect();
        let found: Vec<Found> = sqlx::query_as(
            "WITH wanted AS (SELECT value ->> 0 AS word, value ->> 1 AS id FROM json_each(?))
             SELECT wanted.word, b.first, b.postings,
                (SELECT min(first) FROM chunk_words WHERE word = wanted.word AND first > wanted.id)
             FROM wanted LEFT JOIN chunk_words AS b ON b.word = wanted.word AND b.first =
                (SELECT max(first) FROM chunk_words WHERE word = wanted.word AND first <= wanted.id)",
        )
        .bind(serde_json::to_string(&wanted).unwrap_or_default())
        .fetch_all(&mut *connection)
        .await?;
        let mut written = Vec::new();
        let mut emptied: Vec<(String, i64)> = Vec::new();
        for (word, first, bytes, next) in found {
            let Some(places) = words.get_mut(&word) else { continue };
            let later = next.map(|next| places.split_off(&next)).unwrap_or_default();
            let changed = std::mem::replace(places, later);
            if places.is_empty() {
                words.remove(&word);
            }
            let mut kept = Vec::new();
            if let (Some(first), Some(bytes)) = (first, bytes) {
                postings::read(&bytes, first, &mut kept);
            }
            kept.retain(|posting| !changed.contains_key(&posting.id));
            kept.extend(changed.into_values().flatten());
            kept.sort_unstable_by_key(|posting| posting.id);
            if kept.is_empty() {
                emptied.extend(first.map(|first| (word, first)));
            } else {
                written.extend(blocks(&word, first, &kept));
            }
        }
        if !emptied.is_empty() {
            sqlx::query(
                "DELETE FROM chunk_words WHERE (word, first) IN
                 (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
            )
            .bind(serde_json::to_string(&emptied).unwrap_or_default())
            .execute(&mut *connection)
            .await?;
        }
        write(connection, written).await?;
    }
    Ok(())
}

async fn write(connection: &mut SqliteConnection, blocks: Vec<Row>) -> Result<(), sqlx::Error> {
    for blocks in blocks.chunks(ROWS) {
        let mut statement = QueryBuilder::new(
            "INSERT OR REPLACE INTO chunk_words (word, first, places, postings) ",
        );
        statement.push_values(blocks, |mut row, block| {
            row.push_bind(&block.word)
                .push_bind(block.first)
                .push_bind(block.places)
                .push_bind(&block.bytes);
        });
        statement.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Forgets every word.
pub(super) async fn clear(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM chunk_words").execute(&mut *connection).await?;
    Totals::default().write(connection).await?;
    meta::set(connection, meta::WORD_RULES, words::RULES).await
}

/// Whether the words that are kept are those of the chunks that are there, by
/// the rules of this program.
pub(super) async fn are_current(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let counted = Totals::read(connection).await?;
    let (chunks, ids): (i64, i64) = sqlx::query_as(
        "SELECT count(*), coalesce(sum(id % ?), 0) FROM chunks
         WHERE document_id IN (SELECT id FROM documents)",
    )
    .bind(ID_MODULUS)
    .fetch_one(&mut *connection)
    .await?;
    Ok(follow_rules(connection).await? && (counted.chunks, counted.ids) == (chunks, ids))
}

/// How many chunks are there whose words were not counted, at the least.
pub(super) async fn uncounted(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let counted = Totals::read(connection).await?.chunks;
    let chunks: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM chunks WHERE document_id IN (SELECT id FROM documents)",
    )
    .fetch_one(connection)
    .await?;
    Ok((chunks - counted).max(0))
}

/// Whether there is a table of words.
pub(super) async fn are_there(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) > 0 FROM sqlite_master WHERE name = 'chunk_words'")
        .fetch_one(connection)
        .await
}

/// Whether they were counted by the rules of this program.
pub(super) async fn follow_rules(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let rules: Option<String> =
        sqlx::query_scalar("SELECT CAST(value AS TEXT) FROM index_meta WHERE key = ?")
            .bind(meta::WORD_RULES)
            .fetch_optional(connection)
            .await?;
    Ok(rules.as_deref() == Some(words::RULES))
}

/// Counts the words of all chunks afresh, within a transaction; returns how many
/// chunks that were.
pub(super) async fn recount(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    clear(connection).await?;
    sqlx::query("UPDATE documents SET language = NULL").execute(&mut *connection).await?;
    // The chunks of a document follow one another.
    let mut current: Option<(i64, Language, Option<String>)> = None;
    let mut after = 0;
    let mut counted = 0;
    loop {
        let chunks: Vec<Chunk> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "{CHUNK} WHERE c.id > ? ORDER BY c.id LIMIT {CHUNKS}"
        )))
        .bind(after)
        .fetch_all(&mut *connection)
        .await?;
        let Some(last) = chunks.last() else { return Ok(counted) };
        after = last.id;
        counted += chunks.len() as u64;
        let mut changes = Changes::default();
        for chunk in chunks {
            let document = chunk.document;
            let known = current.take().filter(|(known, ..)| *known == document);
            let (_, language, beginning) = if let Some(known) = known {
                current.insert(known)
            } else {
                let (language, beginning) = recognise(connection, document).await?;
                current.insert((document, language, beginning))
            };
            let text = chunk.text(*language, beginning.as_deref());
            changes.add(text.id, text.language, text.columns);
        }
        changes.write(connection).await?;
    }
}

const CHUNK: &str = "SELECT c.id, c.document_id AS document, c.heading, c.context_text AS context,
        c.content, d.title, d.path, d.language
     FROM chunks AS c JOIN documents AS d ON d.id = c.document_id";

/// What is counted of a chunk, as it is in the file.
struct Chunk {
    id: i64,
    document: i64,
    heading: Option<String>,
    context: Option<String>,
    content: String,
    title: Option<String>,
    path: String,
    language: Option<String>,
}

impl FromRow<'_, SqliteRow> for Chunk {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get_unchecked("id")?,
            document: row.try_get_unchecked("document")?,
            heading: row.try_get_unchecked("heading")?,
            context: row.try_get_unchecked("context")?,
            content: row.try_get_unchecked::<Option<String>, _>("content")?.unwrap_or_default(),
            title: row.try_get_unchecked("title")?,
            path: row.try_get_unchecked("path")?,
            language: row.try_get_unchecked("language")?,
        })
    }
}

impl Chunk {
    /// - `beginning`: the content of its document's first chunk.
    fn text(self, language: Language, beginning: Option<&str>) -> Text {
        let names = Names::new(self.title.as_deref(), beginning, &self.path);
        let (heading, context) = (self.heading.as_deref(), self.context.as_deref());
        let columns = columns(heading, context, &self.content, names);
        Text { id: self.id, language, columns }
    }
}

/// The chunks of a document.
async fn texts(connection: &mut SqliteConnection, document: i64) -> Result<Vec<Text>, sqlx::Error> {
    let statement = format!("{CHUNK} WHERE c.document_id = ? ORDER BY c.chunk_index");
    let chunks: Vec<Chunk> =
        sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(document).fetch_all(connection).await?;
    let beginning = chunks.first().map(|chunk| chunk.content.clone());
    let text = |chunk: Chunk| {
        let language = Language::from_code(chunk.language.as_deref().unwrap_or_default());
        chunk.text(language, beginning.as_deref())
    };
    Ok(chunks.into_iter().map(text).collect())
}

/// Reads the language of a document off its chunks, and records it; returns the
/// first of them, too.
async fn recognise(
    connection: &mut SqliteConnection,
    document: i64,
) -> Result<(Language, Option<String>), sqlx::Error> {
    let texts: Vec<String> = sqlx::query_scalar(
        "SELECT coalesce(content, '') FROM chunks WHERE document_id = ?
         ORDER BY chunk_index LIMIT ?",
    )
    .bind(document)
    .bind(SAMPLED)
    .fetch_all(&mut *connection)
    .await?;
    let language = Language::detect(texts.iter().map(String::as_str));
    record_language(connection, document, language).await?;
    Ok((language, texts.into_iter().next()))
}

/// Recognises the language of a document that comes, by its chunks in order.
pub(super) fn language_of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Language {
    Language::detect(texts.into_iter().take(usize::try_from(SAMPLED).unwrap_or(usize::MAX)))
}

/// Records the language of a document.
pub(super) async fn record_language(
    connection: &mut SqliteConnection,
    document: i64,
    language: Language,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE documents SET language = ? WHERE id = ?")
        .bind(language.code())
        .bind(document)
        .execute(connection)
        .await?;
    Ok(())
}

/// What a query has to know of all words.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    pub(super) collection: Collection,
    pub(super) languages: Vec<Language>,
}

/// Reads it; none if the words were not counted, or by other rules.
pub(super) async fn vocabulary(
    connection: &mut SqliteConnection,
) -> Result<Option<Vocabulary>, sqlx::Error> {
    if !follow_rules(connection).await? {
        return Ok(None);
    }
    let totals = Totals::read(connection).await?;
    let codes: Vec<Option<String>> = sqlx::query_scalar(
        "WITH RECURSIVE codes (code) AS (
            SELECT min(language) FROM documents
            UNION ALL
            SELECT (SELECT min(language) FROM documents WHERE language > code)
            FROM codes WHERE code IS NOT NULL)
         SELECT code FROM codes",
    )
    .fetch_all(connection)
    .await?;
    let collection = Collection {
        chunks: u64::try_from(totals.chunks).unwrap_or(0),
        words: u64::try_from(totals.words).unwrap_or(0),
    };
    let languages = codes.iter().flatten().map(|code| Language::from_code(code)).collect();
    Ok(Some(Vocabulary { collection, languages }))
}

/// Where the words of a query stand.
pub(super) struct Places {
    /// The blocks of each word that was read; of one that was left out as too
    /// frequent, none.
    blocks: HashMap<String, Vec<(i64, Vec<u8>)>>,
    /// For each group, whether any of its words stands anywhere.
    pub(super) known: Vec<bool>,
}

impl Places {
    /// Reads the blocks of a group.
    pub(super) fn occurrences(&self, group: &Group) -> Occurrences {
        let postings = |blocks: &Vec<(i64, Vec<u8>)>| {
            let mut postings = Vec::new();
            for (first, bytes) in blocks {
                postings::read(bytes, *first, &mut postings);
            }
            postings
        };
        let blocks = group.stems.iter().filter_map(|stem| self.blocks.get(stem));
        Occurrences { weight: group.weight, stems: blocks.map(postings).collect() }
    }
}

/// Looks up where words stand.
pub(super) async fn places(
    connection: &mut SqliteConnection,
    groups: &[Group],
    collection: Collection,
) -> Result<Places, sqlx::Error> {
    let all: BTreeSet<&String> = groups.iter().flat_map(|group| &group.stems).collect();
    let counts = if collection.chunks.saturating_mul(all.len() as u64) > PLACES {
        Some(frequencies(connection, &all).await?)
    } else {
        None
    };
    let read = match &counts {
        Some(counts) => rarest(groups, counts),
        None => all,
    };
    let mut blocks: HashMap<String, Vec<(i64, Vec<u8>)>> = HashMap::new();
    let rows: Vec<(String, i64, Vec<u8>)> = sqlx::query_as(
        "SELECT word, first, postings FROM chunk_words
         WHERE word IN (SELECT value FROM json_each(?)) ORDER BY word, first",
    )
    .bind(rows::json_words(read))
    .fetch_all(connection)
    .await?;
    for (word, first, bytes) in rows {
        blocks.entry(word).or_default().push((first, bytes));
    }
    let is_known = |stem: &String| {
        counts.as_ref().map_or(blocks.contains_key(stem), |counts| counts.contains_key(stem))
    };
    let known = groups.iter().map(|group| group.stems.iter().any(is_known)).collect();
    Ok(Places { blocks, known })
}

/// In how many chunks each word stands; those that stand nowhere are left out.
async fn frequencies(
    connection: &mut SqliteConnection,
    words: &BTreeSet<&String>,
) -> Result<HashMap<String, u64>, sqlx::Error> {
    let counts: Vec<(String, i64)> = sqlx::query_as(
        "SELECT word, sum(places) FROM chunk_words
         WHERE word IN (SELECT value FROM json_each(?)) GROUP BY word",
    )
    .bind(rows::json_words(words.iter().copied()))
    .fetch_all(connection)
    .await?;
    let counted = |(word, count)| (word, u64::try_from(count).unwrap_or(0));
    Ok(counts.into_iter().map(counted).collect())
}

/// The rarest words, as long as they do not stand in too many places; at least
/// one.
fn rarest<'a>(groups: &'a [Group], counts: &HashMap<String, u64>) -> BTreeSet<&'a String> {
    let count = |group: &Group| group.stems.iter().filter_map(|stem| counts.get(stem)).sum::<u64>();
    let mut by_count: Vec<(u64, &Group)> =
        groups.iter().map(|group| (count(group), group)).filter(|&(count, _)| count > 0).collect();
    by_count.sort_by(|(a, left), (b, right)| a.cmp(b).then_with(|| left.stems.cmp(&right.stems)));
    let mut total = 0_u64;
    let affordable = by_count.into_iter().take_while(|&(count, _)| {
        let first = total == 0;
        total = total.saturating_add(count);
        first || total <= PLACES
    });
    affordable.flat_map(|(_, group)| &group.stems).collect()
}
