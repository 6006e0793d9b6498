//! Keeps the counts that BM25 rests on true when rows leave the full-text
//! table.
//!
//! A contentless table with deletion takes the words of a deleted row out of
//! its answers, but neither the row nor its tokens out of its totals. An index
//! that was updated for long would then rank otherwise than the same documents
//! indexed afresh. The totals are one record of variable-length numbers: rows,
//! then tokens column by column.

use sqlx::sqlite::SqliteConnection;

/// Where the totals are.
const TOTALS_ROW: i64 = 1;

const COLUMNS: usize = 3;

/// Rows and tokens, of a table or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    rows: i64,
    tokens: [i64; COLUMNS],
}

impl Totals {
    /// Counts one row, given the record of its size.
    pub(super) fn add_row(&mut self, size: &[u8]) {
        self.rows += 1;
        let mut rest = size;
        for tokens in &mut self.tokens {
            *tokens += take_number(&mut rest);
        }
    }

    /// Counts what another count has counted.
    pub(super) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        for (tokens, more) in self.tokens.iter_mut().zip(other.tokens) {
            *tokens += more;
        }
    }

    /// Whether nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn decode(mut record: &[u8]) -> Self {
        let rows = take_number(&mut record);
        let tokens = std::array::from_fn(|_| take_number(&mut record));
        Self { rows, tokens }
    }

    fn encode(&self) -> Vec<u8> {
        let mut record = Vec::new();
        put_number(&mut record, self.rows);
        for tokens in self.tokens {
            put_number(&mut record, tokens);
        }
        record
    }

    fn without(&self, gone: &Self) -> Self {
        let tokens = std::array::from_fn(|column| self.tokens[column] - gone.tokens[column]);
        Self { rows: self.rows - gone.rows, tokens }
    }

    fn is_possible(&self) -> bool {
        self.rows >= 0 && self.tokens.iter().all(|&tokens| tokens >= 0)
    }
}

/// The totals of rows that are about to be deleted.
///
/// - `ids`: a JSON array of row numbers.
pub(super) async fn of_rows(
    connection: &mut SqliteConnection,
    ids: &str,
) -> Result<Totals, sqlx::Error> {
    let sizes: Vec<Vec<u8>> = sqlx::query_scalar(
        "SELECT sz FROM fts_chunks_docsize WHERE id IN (SELECT value FROM json_each(?))",
    )
    .bind(ids)
    .fetch_all(connection)
    .await?;
    let mut totals = Totals::default();
    for size in &sizes {
        totals.add_row(size);
    }
    Ok(totals)
}

/// Takes deleted rows out of the totals, within the transaction that deleted
/// them. Totals that do not fit the rows that are there, as an earlier program
/// may have left them, are counted afresh.
pub(super) async fn settle(
    connection: &mut SqliteConnection,
    gone: &Totals,
) -> Result<(), sqlx::Error> {
    // A savepoint makes the full-text table write down what it has in memory.
    sqlx::query("SAVEPOINT totals").execute(&mut *connection).await?;
    let record: Vec<u8> =
        sqlx::query_scalar("SELECT coalesce(block, x'') FROM fts_chunks_data WHERE id = ?")
            .bind(TOTALS_ROW)
            .fetch_one(&mut *connection)
            .await?;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM fts_chunks_docsize")
        .fetch_one(&mut *connection)
        .await?;
    let mut totals = Totals::decode(&record).without(gone);
    if totals.rows != rows || !totals.is_possible() {
        totals = count(connection).await?;
    }
    write_down(connection, &totals).await?;
    sqlx::query("RELEASE totals").execute(connection).await?;
    Ok(())
}

/// Counts the totals afresh, within the transaction that changed the rows.
pub(super) async fn recount(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SAVEPOINT totals").execute(&mut *connection).await?;
    let totals = count(connection).await?;
    write_down(connection, &totals).await?;
    sqlx::query("RELEASE totals").execute(connection).await?;
    Ok(())
}

async fn write_down(connection: &mut SqliteConnection, totals: &Totals) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE fts_chunks_data SET block = ? WHERE id = ?")
        .bind(totals.encode())
        .bind(TOTALS_ROW)
        .execute(connection)
        .await?;
    Ok(())
}

async fn count(connection: &mut SqliteConnection) -> Result<Totals, sqlx::Error> {
    let sizes: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT sz FROM fts_chunks_docsize").fetch_all(connection).await?;
    let mut totals = Totals::default();
    for size in &sizes {
        totals.add_row(size);
    }
    Ok(totals)
}

/// Reads a number as SQLite writes it: seven bits a byte, the highest first,
/// the top bit set on all bytes but the last; a ninth byte gives eight bits.
fn take_number(rest: &mut &[u8]) -> i64 {
    let mut number: i64 = 0;
    for place in 1..=9 {
        let Some((&byte, tail)) = rest.split_first() else { break };
        *rest = tail;
        if place == 9 {
            return number << 8 | i64::from(byte);
        }
        number = number << 7 | i64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Writes a number from 0 to 2^56 − 1, which is more than any count.
fn put_number(record: &mut Vec<u8>, number: i64) {
    let groups = (1..8).find(|&groups| number >> (7 * groups) == 0).unwrap_or(8);
    for group in (0..groups).rev() {
        let [bits, ..] = (number >> (7 * group)).to_le_bytes();
        let more = if group > 0 { 0x80 } else { 0 };
        record.push(bits & 0x7f | more);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn totals_survive_being_stored(rows in 0..1_i64 << 56, tokens in 0..1_i64 << 40) {
            let totals = Totals { rows, tokens: [tokens, 0, 127] };
            prop_assert_eq!(Totals::decode(&totals.encode()), totals);
        }
    }

    #[test]
    fn numbers_have_the_bytes_that_the_file_format_asks_for() {
        let record = |number| {
            let mut record = Vec::new();
            put_number(&mut record, number);
            record
        };
        assert_eq!(record(0), [0]);
        assert_eq!(record(127), [127]);
        assert_eq!(record(128), [0x81, 0]);
        assert_eq!(record(16_384), [0x81, 0x80, 0]);
    }
}
