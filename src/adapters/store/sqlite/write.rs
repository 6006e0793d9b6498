//! Changes, all or none.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, QueryBuilder};

use crate::adapters::store::sqlite::resident::{Added, Delta};
use crate::adapters::store::sqlite::statistics::{self, Totals};
use crate::adapters::store::sqlite::{cannot_write, meta, rows, schema, vectors, words};
use crate::adapters::store::words::{Names, columns};
use crate::domain::chunk::{ChunkId, TextHash};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::chunk_store::{Change, Document, NewChunk, StoreError};

/// Where a new file begins to count: at the time, so that a file which was
/// deleted and made anew under a running process is never taken for the old one.
async fn first_generation(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)")
        .fetch_one(connection)
        .await
}

/// Raises the number of the commit; returns it.
pub(super) async fn next_generation(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let generation = match meta::number(connection, meta::GENERATION).await?.max(0) {
        0 => first_generation(connection).await?,
        recorded => recorded + 1,
    };
    meta::set(connection, meta::GENERATION, &generation.to_string()).await?;
    Ok(generation.unsigned_abs())
}

/// How many rows a statement writes at most: each statement is handed to another
/// thread, which costs more than a row.
const ROWS: usize = 32;

/// How much a checkpoint insists.
#[derive(Clone, Copy)]
pub(super) enum Checkpoint {
    /// It does what is possible without waiting.
    Passing,
    /// It waits for readers and leaves an empty log.
    Emptying,
}

/// Moves what is in the write-ahead log into the file; returns whether somebody
/// kept it from moving all.
pub(super) async fn checkpoint(
    connection: &mut SqliteConnection,
    kind: Checkpoint,
) -> Result<bool, sqlx::Error> {
    let statement = match kind {
        Checkpoint::Passing => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Emptying => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let busy: i64 = sqlx::query_scalar(statement).fetch_one(connection).await?;
    Ok(busy != 0)
}

/// Makes changes in one transaction. Returns the generation that they made and
/// what a resident copy has to know of them.
pub(super) async fn apply(
    connection: &mut SqliteConnection,
    changes: Vec<Change>,
) -> Result<(u64, Delta), StoreError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(cannot_write)?;
    let made = match Batch::run(&mut transaction, changes).await {
        Ok(made) => made,
        Err(Failure(error)) => {
            // The caller is told why the changes were refused. Dropping the
            // transaction would undo them as well, only later.
            if let Err(undo) = transaction.rollback().await {
                tracing::warn!(error = %undo, "cannot undo a refused change at once");
            }
            return Err(error);
        }
    };
    transaction.commit().await.map_err(cannot_write)?;
    Ok(made)
}

/// A failure of either kind, so that `?` works for both.
struct Failure(StoreError);

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self(cannot_write(error))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

/// A transaction under way.
struct Batch<'a> {
    connection: &'a mut SqliteConnection,
    last_chunk: i64,
    /// Of the vector table, or the one that it will have.
    dimension: Option<usize>,
    /// Whether there is a vector table.
    has_vectors: bool,
    /// What left the full-text table.
    gone: Totals,
    /// Whose words come or go.
    words: words::Changes,
    delta: Delta,
    /// Documents that a resident copy has to read again.
    touched: Vec<i64>,
    /// How many vectors that were to come a document has got, by its number; less
    /// than 0 where more were taken away.
    embedded: BTreeMap<i64, i64>,
}

impl<'a> Batch<'a> {
    async fn run(
        connection: &'a mut SqliteConnection,
        changes: Vec<Change>,
    ) -> Result<(u64, Delta), Failure> {
        let recorded = meta::number(connection, meta::LAST_CHUNK).await?;
        let highest: Option<i64> =
            sqlx::query_scalar("SELECT max(id) FROM chunks").fetch_one(&mut *connection).await?;
        let last_chunk = recorded.max(highest.unwrap_or(0));
        let declared = schema::declared_dimension(connection).await?;
        let identity = meta::number(connection, meta::DIMENSION).await?;
        let dimension = declared.or(usize::try_from(identity).ok().filter(|&number| number > 0));
        let mut batch = Self {
            has_vectors: vectors::exist(connection).await?,
            connection,
            last_chunk,
            dimension,
            gone: Totals::default(),
            words: words::Changes::default(),
            delta: Delta::default(),
            touched: Vec::new(),
            embedded: BTreeMap::new(),
        };
        let mut changes = changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            let Change::Embed { chunk, embedding } = change else {
                batch.make(change).await?;
                continue;
            };
            // Vectors come by the hundred, and are cheaper together.
            let mut vectors = BTreeMap::from([(chunk.0, embedding)]);
            while let Some(Change::Embed { chunk, embedding }) =
                changes.next_if(|next| matches!(next, Change::Embed { .. }))
            {
                vectors.insert(chunk.0, embedding);
            }
            batch.embed(vectors).await?;
        }
        if batch.last_chunk != recorded {
            let last_chunk = batch.last_chunk.to_string();
            meta::set(batch.connection, meta::LAST_CHUNK, &last_chunk).await?;
        }
        batch.finish().await
    }

    async fn finish(self) -> Result<(u64, Delta), Failure> {
        let Self { connection, gone, words, mut delta, mut touched, dimension, embedded, .. } =
            self;
        for (document, vectors) in embedded {
            sqlx::query("UPDATE documents SET pending = max(pending - ?, 0) WHERE id = ?")
                .bind(vectors)
                .bind(document)
                .execute(&mut *connection)
                .await?;
        }
        if !gone.is_empty() {
            statistics::settle(connection, &gone).await?;
        }
        words.write(connection).await?;
        touched.sort_unstable();
        touched.dedup();
        let mut documents =
            rows::documents(connection, rows::json_numbers(touched.iter().copied())).await?;
        delta.documents = touched.into_iter().map(|id| (id, documents.remove(&id))).collect();
        delta.dimension = dimension;
        Ok((next_generation(connection).await?, delta))
    }

    async fn make(&mut self, change: Change) -> Result<(), Failure> {
        match change {
            Change::Put { document, chunks } => self.put(&document, chunks).await,
            Change::Describe(document) => {
                let Some(id) = self.find(&document.path).await? else { return Ok(()) };
                let title: Option<String> =
                    sqlx::query_scalar("SELECT title FROM documents WHERE id = ?")
                        .bind(id)
                        .fetch_one(&mut *self.connection)
                        .await?;
                if title == document.title {
                    return self.describe(id, &document).await;
                }
                self.words.remove_all(self.connection, id).await?;
                self.describe(id, &document).await?;
                Ok(self.words.add_all(self.connection, id).await?)
            }
            Change::Rename { from, to } => self.rename(&from, to).await,
            Change::Resize { path, size_bytes } => {
                let Some(id) = self.find(&path).await? else { return Ok(()) };
                sqlx::query("UPDATE documents SET size_bytes = ? WHERE id = ?")
                    .bind(signed(size_bytes))
                    .bind(id)
                    .execute(&mut *self.connection)
                    .await?;
                self.touched.push(id);
                Ok(())
            }
            Change::Remove(path) => self.remove(&path).await,
            Change::Embed { chunk, embedding } => self.embed([(chunk.0, embedding)].into()).await,
            Change::Unembed(chunk) => self.unembed(chunk).await,
            Change::Score { chunk, quality } => self.score(chunk, quality).await,
            Change::Empty(identity) => self.empty(&identity).await,
            Change::Identify(identity) => self.identify(&identity).await,
            Change::BelongTo(root) => Ok(meta::set(self.connection, meta::ROOT, &root).await?),
            Change::Judge(rules) => {
                Ok(meta::set(self.connection, meta::QUALITY_RULES, &rules).await?)
            }
            Change::EmbedLongTexts(way) => {
                Ok(meta::set(self.connection, meta::LONG_TEXTS, &way).await?)
            }
            Change::UseContext(mode) => {
                Ok(meta::set(self.connection, meta::CONTEXT_MODE, mode.as_str()).await?)
            }
            Change::Declare(None) => {
                Ok(meta::remove(self.connection, meta::DECLARED_FIELDS).await?)
            }
            Change::Declare(Some(fields)) => {
                let fields = rows::json_words(&fields);
                Ok(meta::set(self.connection, meta::DECLARED_FIELDS, &fields).await?)
            }
        }
    }

    async fn put(&mut self, document: &Document, chunks: Vec<NewChunk>) -> Result<(), Failure> {
        let pending = chunks.iter().filter(|chunk| chunk.embedding.is_none()).count();
        let id = if let Some(id) = self.find(&document.path).await? {
            self.clear(id).await?;
            id
        } else {
            sqlx::query_scalar(
                "INSERT INTO documents (path, content_hash, last_indexed) VALUES (?, '', '')
                 RETURNING id",
            )
            .bind(document.path.as_str())
            .fetch_one(&mut *self.connection)
            .await?
        };
        self.describe(id, document).await?;
        self.embedded.remove(&id);
        sqlx::query("UPDATE documents SET pending = ?1 WHERE id = ?2 AND pending <> ?1")
            .bind(i64::try_from(pending).unwrap_or(i64::MAX))
            .bind(id)
            .execute(&mut *self.connection)
            .await?;
        self.add(id, document, chunks).await
    }

    async fn describe(&mut self, id: i64, document: &Document) -> Result<(), Failure> {
        sqlx::query(
            "UPDATE documents SET title = ?, topic = ?, category = ?, depth = ?, tags = ?,
                date = ?, content_hash = ?, last_indexed = ?, size_bytes = ?, recipe = ?
             WHERE id = ?",
        )
        .bind(&document.title)
        .bind(&document.topic)
        .bind(&document.category)
        .bind(&document.depth)
        .bind(rows::json_words(&document.tags))
        .bind(&document.date)
        .bind(document.hash.as_str())
        .bind(&document.indexed_at)
        .bind(document.size_bytes.map(signed))
        .bind(&document.recipe)
        .bind(id)
        .execute(&mut *self.connection)
        .await?;
        sqlx::query("DELETE FROM document_fields WHERE document_id = ?")
            .bind(id)
            .execute(&mut *self.connection)
            .await?;
        for (key, values) in &document.fields {
            for value in values {
                sqlx::query(
                    "INSERT INTO document_fields (document_id, key, value) VALUES (?, ?, ?)",
                )
                .bind(id)
                .bind(key)
                .bind(value)
                .execute(&mut *self.connection)
                .await?;
            }
        }
        self.touched.push(id);
        Ok(())
    }

    /// Adds the chunks of a document that has none.
    async fn add(
        &mut self,
        owner: i64,
        document: &Document,
        chunks: Vec<NewChunk>,
    ) -> Result<(), Failure> {
        if chunks.is_empty() {
            return Ok(());
        }
        for embedding in chunks.iter().filter_map(|chunk| chunk.embedding.as_ref()) {
            self.fit(embedding.dimension())?;
        }
        let first = self.last_chunk + 1;
        for (rows, index) in chunks.chunks(ROWS).zip((0_i64..).step_by(ROWS)) {
            self.write_chunks(owner, index, rows).await?;
        }
        sqlx::query(
            "INSERT INTO fts_chunks (rowid, heading, context, content)
             SELECT id, heading, context_text, content FROM chunks
             WHERE id BETWEEN ? AND ? ORDER BY id",
        )
        .bind(first)
        .bind(self.last_chunk)
        .execute(&mut *self.connection)
        .await?;
        let vectors: Vec<(i64, &[f32])> = (first..)
            .zip(&chunks)
            .filter_map(|(id, chunk)| Some((id, chunk.embedding.as_ref()?.as_slice())))
            .collect();
        self.write_vectors(&vectors).await?;
        let beginning = chunks.first().map(|new| new.chunk.content.clone());
        let names =
            Names::new(document.title.as_deref(), beginning.as_deref(), document.path.as_str());
        let texts = chunks.iter().map(|new| new.chunk.content.as_str());
        let language = words::language_of_texts(texts);
        words::record_language(self.connection, owner, language).await?;
        for (id, NewChunk { chunk, quality, embedding }) in (first..).zip(chunks) {
            let (heading, context) = (chunk.heading.as_deref(), chunk.context.as_deref());
            self.words.add(id, language, columns(heading, context, &chunk.content, names));
            let vector = embedding.map(|embedding| embedding.as_slice().to_vec());
            self.delta.add(Added { id, owner, quality, vector });
        }
        Ok(())
    }

    /// Writes rows of chunks, which get the numbers after the last one.
    ///
    /// - `index`: the place of the first of them in its document.
    async fn write_chunks(
        &mut self,
        owner: i64,
        index: i64,
        chunks: &[NewChunk],
    ) -> Result<(), Failure> {
        let mut statement = QueryBuilder::new(
            "INSERT INTO chunks (id, document_id, chunk_index, heading, level, content,
                token_count, quality_score, context_text, start_line, end_line, symbol_kind,
                table_rows, text_hash) ",
        );
        let numbered = (index..).zip(chunks);
        statement.push_values(numbered, |mut row, (index, NewChunk { chunk, quality, .. })| {
            self.last_chunk += 1;
            row.push_bind(self.last_chunk)
                .push_bind(owner)
                .push_bind(index)
                .push_bind(&chunk.heading)
                .push_bind(chunk.level.map(i64::from))
                .push_bind(&chunk.content)
                .push_bind(i64::from(chunk.token_count()))
                .push_bind(f64::from(*quality))
                .push_bind(&chunk.context)
                .push_bind(chunk.lines.map(|lines| i64::from(lines.start)))
                .push_bind(chunk.lines.map(|lines| i64::from(lines.end)))
                .push_bind(&chunk.symbol_kind)
                .push_bind(rows::json_spans(&chunk.table_rows))
                .push_bind(TextHash::of(&chunk.embedding_text()).as_bytes().to_vec());
        });
        statement.build().execute(&mut *self.connection).await?;
        Ok(())
    }

    async fn rename(&mut self, from: &DocumentPath, to: DocumentPath) -> Result<(), Failure> {
        let id = self.known(from).await?;
        if self.find(&to).await?.is_some() {
            return Err(StoreError::Exists { path: to }.into());
        }
        self.words.remove_all(self.connection, id).await?;
        sqlx::query("UPDATE documents SET path = ? WHERE id = ?")
            .bind(to.as_str())
            .bind(id)
            .execute(&mut *self.connection)
            .await?;
        self.words.add_all(self.connection, id).await?;
        self.touched.push(id);
        Ok(())
    }

    async fn remove(&mut self, path: &DocumentPath) -> Result<(), Failure> {
        let Some(id) = self.find(path).await? else { return Ok(()) };
        self.clear(id).await?;
        for statement in [
            "DELETE FROM document_fields WHERE document_id = ?",
            "DELETE FROM documents WHERE id = ?",
        ] {
            sqlx::query(statement).bind(id).execute(&mut *self.connection).await?;
        }
        self.touched.push(id);
        Ok(())
    }

    /// Adds the vectors of chunks, or puts them in place of others.
    async fn embed(&mut self, mut vectors: BTreeMap<i64, Embedding>) -> Result<(), Failure> {
        let ids = rows::json_numbers(vectors.keys().copied());
        let owners: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT id, document_id FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
        )
        .bind(&ids)
        .fetch_all(&mut *self.connection)
        .await?;
        let owners: BTreeMap<i64, i64> = owners.into_iter().collect();
        vectors.retain(|id, _| owners.contains_key(id));
        for embedding in vectors.values() {
            self.fit(embedding.dimension())?;
        }
        let replaced: BTreeSet<i64> = if self.has_vectors {
            let replaced: Vec<i64> = sqlx::query_scalar(
                "SELECT rowid FROM vec_chunks_rowids
                 WHERE rowid IN (SELECT value FROM json_each(?))",
            )
            .bind(&ids)
            .fetch_all(&mut *self.connection)
            .await?;
            replaced.into_iter().filter(|id| owners.contains_key(id)).collect()
        } else {
            BTreeSet::new()
        };
        if !replaced.is_empty() {
            sqlx::query(
                "DELETE FROM vec_chunks WHERE chunk_id IN (SELECT value FROM json_each(?))",
            )
            .bind(rows::json_numbers(replaced.iter().copied()))
            .execute(&mut *self.connection)
            .await?;
        }
        let written: Vec<(i64, &[f32])> =
            vectors.iter().map(|(&id, embedding)| (id, embedding.as_slice())).collect();
        self.write_vectors(&written).await?;
        for (id, embedding) in vectors {
            self.delta.embed(id, embedding.as_slice().to_vec());
            if let (Some(&owner), false) = (owners.get(&id), replaced.contains(&id)) {
                *self.embedded.entry(owner).or_default() += 1;
            }
        }
        Ok(())
    }

    async fn unembed(&mut self, chunk: ChunkId) -> Result<(), Failure> {
        let owner: Option<i64> = sqlx::query_scalar("SELECT document_id FROM chunks WHERE id = ?")
            .bind(chunk.0)
            .fetch_optional(&mut *self.connection)
            .await?;
        if let Some(owner) = owner
            && self.drop_vector(chunk).await?
        {
            *self.embedded.entry(owner).or_default() -= 1;
            self.delta.make_void();
        }
        Ok(())
    }

    /// Takes a vector away; returns whether there was one.
    async fn drop_vector(&mut self, chunk: ChunkId) -> Result<bool, Failure> {
        if !self.has_vectors {
            return Ok(false);
        }
        let there: bool =
            sqlx::query_scalar("SELECT count(*) > 0 FROM vec_chunks_rowids WHERE rowid = ?")
                .bind(chunk.0)
                .fetch_one(&mut *self.connection)
                .await?;
        if there {
            sqlx::query("DELETE FROM vec_chunks WHERE chunk_id = ?")
                .bind(chunk.0)
                .execute(&mut *self.connection)
                .await?;
        }
        Ok(there)
    }

    async fn score(&mut self, chunk: ChunkId, quality: f32) -> Result<(), Failure> {
        sqlx::query("UPDATE chunks SET quality_score = ? WHERE id = ?")
            .bind(f64::from(quality))
            .bind(chunk.0)
            .execute(&mut *self.connection)
            .await?;
        self.delta.make_void();
        Ok(())
    }

    async fn empty(&mut self, identity: &ModelIdentity) -> Result<(), Failure> {
        sqlx::raw_sql(
            "DELETE FROM document_fields;
             DELETE FROM chunks;
             DELETE FROM documents;
             INSERT INTO fts_chunks (fts_chunks) VALUES ('delete-all');",
        )
        .execute(&mut *self.connection)
        .await?;
        self.create_vectors(identity.dimension).await?;
        for key in
            [meta::CONTEXT_MODE, meta::DECLARED_FIELDS, meta::QUALITY_RULES, meta::LONG_TEXTS]
        {
            meta::remove(self.connection, key).await?;
        }
        words::clear(self.connection).await?;
        self.gone = Totals::default();
        self.words = words::Changes::default();
        self.touched.clear();
        self.embedded.clear();
        self.delta = Delta::emptied();
        self.record(identity).await
    }

    async fn identify(&mut self, identity: &ModelIdentity) -> Result<(), Failure> {
        if self.has_vectors {
            let used: bool = sqlx::query_scalar("SELECT count(*) > 0 FROM vec_chunks_rowids")
                .fetch_one(&mut *self.connection)
                .await?;
            if used {
                self.fit(identity.dimension)?;
            } else if self.dimension != Some(identity.dimension) {
                self.create_vectors(identity.dimension).await?;
            }
        } else {
            self.create_vectors(identity.dimension).await?;
        }
        self.record(identity).await
    }

    async fn record(&mut self, identity: &ModelIdentity) -> Result<(), Failure> {
        meta::set(self.connection, meta::MODEL, &identity.model).await?;
        meta::set(self.connection, meta::DIMENSION, &identity.dimension.to_string()).await?;
        self.dimension = Some(identity.dimension);
        Ok(())
    }

    /// Takes all chunks from a document.
    async fn clear(&mut self, document: i64) -> Result<(), Failure> {
        let ids: Vec<i64> = sqlx::query_scalar("SELECT id FROM chunks WHERE document_id = ?")
            .bind(document)
            .fetch_all(&mut *self.connection)
            .await?;
        let list = rows::json_numbers(ids.iter().copied());
        self.words.remove_all(self.connection, document).await?;
        let left = statistics::of_rows(self.connection, &list).await?;
        self.gone.add(&left);
        sqlx::query("DELETE FROM fts_chunks WHERE rowid IN (SELECT value FROM json_each(?))")
            .bind(&list)
            .execute(&mut *self.connection)
            .await?;
        if self.has_vectors {
            sqlx::query(
                "DELETE FROM vec_chunks WHERE chunk_id IN (SELECT value FROM json_each(?))",
            )
            .bind(&list)
            .execute(&mut *self.connection)
            .await?;
        }
        sqlx::query("DELETE FROM chunks WHERE document_id = ?")
            .bind(document)
            .execute(&mut *self.connection)
            .await?;
        self.delta.remove(ids);
        Ok(())
    }

    async fn write_vectors(&mut self, vectors: &[(i64, &[f32])]) -> Result<(), Failure> {
        if let (false, Some((_, first))) = (self.has_vectors, vectors.first()) {
            self.create_vectors(first.len()).await?;
        }
        for vectors in vectors.chunks(ROWS) {
            let mut statement = QueryBuilder::new("INSERT INTO vec_chunks (chunk_id, embedding) ");
            statement.push_values(vectors, |mut row, (id, values)| {
                row.push_bind(*id).push_bind(vectors::encode(values));
            });
            statement.build().execute(&mut *self.connection).await?;
        }
        Ok(())
    }

    async fn create_vectors(&mut self, dimension: usize) -> Result<(), Failure> {
        schema::create_vectors(self.connection, dimension).await?;
        self.has_vectors = true;
        Ok(())
    }

    fn fit(&mut self, actual: usize) -> Result<(), StoreError> {
        let expected = *self.dimension.get_or_insert(actual);
        if expected == actual {
            Ok(())
        } else {
            Err(StoreError::WrongDimension { expected, actual })
        }
    }

    async fn find(&mut self, path: &DocumentPath) -> Result<Option<i64>, Failure> {
        Ok(sqlx::query_scalar("SELECT id FROM documents WHERE path = ?")
            .bind(path.as_str())
            .fetch_optional(&mut *self.connection)
            .await?)
    }

    async fn known(&mut self, path: &DocumentPath) -> Result<i64, Failure> {
        match self.find(path).await? {
            Some(id) => Ok(id),
            None => Err(StoreError::NotFound { path: path.clone() }.into()),
        }
    }
}

/// A size as SQLite can hold it.
fn signed(size_bytes: u64) -> i64 {
    i64::try_from(size_bytes).unwrap_or(i64::MAX)
}
