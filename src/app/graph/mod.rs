//! Exploring: the connection graph around one document.
//!
//! Everything of one walk is read from one snapshot, so no writer delays it, it
//! delays nobody, and nothing in it contradicts itself.

mod near;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::app::error::AppError;
use crate::domain::chunk::ChunkId;
use crate::domain::document::DocumentPath;
use crate::domain::embedding::Embedding;
use crate::domain::graph::{
    Bounds, CheckedGraph, Graph, GraphRequest, GraphStats, Link, Neighbour, Node, SeedStrategy,
    Truncation, Walk, Walked, Wanted, similarity, snippet,
};
use crate::ports::chunk_store::{ChunkStore, Restriction, Snapshot, StoredChunk};

/// The use case of exploring.
#[derive(Clone)]
pub struct Explorer {
    /// What is explored.
    pub store: Arc<dyn ChunkStore>,
    /// The least quality of a chunk that is found, unless a request says
    /// otherwise, from 0 to 1.
    pub min_quality: f32,
}

impl fmt::Debug for Explorer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Explorer")
            .field("min_quality", &self.min_quality)
            .finish_non_exhaustive()
    }
}

/// Checks a request without asking the index anything.
///
/// # Errors
///
/// [`AppError::Invalid`] if the request breaks a limit.
pub fn check(request: &GraphRequest) -> Result<(), AppError> {
    checked(request, 0.0).map(drop)
}

fn checked(request: &GraphRequest, min_quality: f32) -> Result<CheckedGraph, AppError> {
    request.check(min_quality).map_err(|error| AppError::Invalid(error.to_string()))
}

impl Explorer {
    /// Walks once. A walk that is dropped asks for nothing more.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] if the request breaks a limit, the start is no
    /// document of the index, or the index cannot answer it yet, and
    /// [`AppError::Store`].
    pub async fn explore(&self, request: &GraphRequest) -> Result<Graph, AppError> {
        let began = Instant::now();
        self.explore_timed(request, &|| began.elapsed()).await
    }

    /// The same.
    ///
    /// - `elapsed`: how long it has taken so far.
    async fn explore_timed(
        &self,
        request: &GraphRequest,
        elapsed: &(dyn Fn() -> Duration + Sync),
    ) -> Result<Graph, AppError> {
        let CheckedGraph { bounds, filter, mut warnings } = checked(request, self.min_quality)?;
        let snapshot = self.store.snapshot().await?;
        if filter.names_fields() && snapshot.summary().await?.declared_fields.is_none() {
            return Err(AppError::fields_not_recorded("explore"));
        }
        let (start, chunks) = start(&*snapshot, &request.start, bounds.max_seed_chunks).await?;
        let restriction =
            Restriction { filter: filter.without([start.as_str()]), excluded: Vec::new() };
        let mut expedition = Expedition {
            snapshot: &*snapshot,
            restriction,
            bounds: &bounds,
            chunks: HashMap::new(),
            centroid: None,
        };
        let has_more = chunks.len() > bounds.max_seed_chunks;
        let mut walk = Walk::new(bounds.clone());
        let read = chunks.into_iter().take(bounds.max_seed_chunks).collect();
        let seeds_used = expedition.begin(&mut walk, read, &mut warnings).await?;
        let mut is_late = false;
        while let Some(wanted) = walk.wanted() {
            is_late = bounds.time_budget.is_some_and(|budget| elapsed() >= budget);
            if is_late {
                break;
            }
            expedition.supply(&mut walk, &wanted).await?;
        }
        let Walked { links, expanded, has_dropped } = walk.end();
        let nodes = expedition.nodes(&links).await?;
        let truncation = [
            has_more.then(|| Truncation::seed_chunks(bounds.max_seed_chunks, bounds.seeds)),
            has_dropped.then(|| Truncation::node_budget(bounds.max_nodes)),
            bounds.time_budget.filter(|_| is_late).map(|time| Truncation::time_budget(ms(time))),
        ];
        let stats = GraphStats {
            max_depth_reached: links.iter().map(|link| link.depth).max().unwrap_or(0),
            knn_queries: expanded,
            duration_ms: ms(elapsed()),
            seeds_used,
        };
        Ok(Graph {
            start_path: request.start.clone(),
            truncation: truncation.into_iter().flatten().collect(),
            nodes,
            stats,
            warnings,
        })
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the chunks that a walk may begin with, and one more if there is one.
async fn start(
    snapshot: &dyn Snapshot,
    start: &str,
    max_seed_chunks: usize,
) -> Result<(DocumentPath, Vec<StoredChunk>), AppError> {
    if let Ok(path) = DocumentPath::new(start) {
        let chunks = snapshot.first_chunks_of(&path, max_seed_chunks + 1).await?;
        if !chunks.is_empty() {
            return Ok((path, chunks));
        }
    }
    let documents = snapshot.documents().await?;
    let start = start.to_owned();
    let told = tokio::task::spawn_blocking(move || {
        near::not_in_the_index(&start, documents.iter().map(|document| document.path.as_str()))
    });
    Err(AppError::Invalid(
        told.await.map_err(|_| AppError::Interrupted { what: "looking for near paths" })?,
    ))
}

/// A walk's way to the index.
struct Expedition<'a> {
    snapshot: &'a dyn Snapshot,
    /// What may be found, apart from documents that must not be found again.
    restriction: Restriction,
    bounds: &'a Bounds,
    /// Chunks that have been read already.
    chunks: HashMap<ChunkId, StoredChunk>,
    /// What the neighbours of the only seed are looked for with, in place of its
    /// own vector.
    centroid: Option<Centroid>,
}

struct Centroid {
    vector: Embedding,
    /// 1, or 0 where the vectors cancel out.
    length: f32,
}

impl Expedition<'_> {
    /// Begins a walk at chunks of the start document, of which there is one.
    ///
    /// - Returns how many of them count as seeds.
    async fn begin(
        &mut self,
        walk: &mut Walk,
        chunks: Vec<StoredChunk>,
        warnings: &mut Vec<String>,
    ) -> Result<u64, AppError> {
        let ids: Vec<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
        let vectors = self.snapshot.embeddings(&ids).await?;
        self.chunks.extend(chunks.into_iter().map(|chunk| (chunk.id, chunk)));
        let without = vectors.iter().filter(|vector| vector.is_none()).count();
        if without > 0 {
            warnings.push(if without == ids.len() {
                "no chunk of the start document has a vector yet, so nothing was looked for from \
                 it; let `groove index` finish, then ask again"
                    .to_owned()
            } else {
                format!(
                    "{without} of the {} chunk(s) that were read of the start document have no \
                     vector yet, so nothing was looked for from them; let `groove index` finish, \
                     then ask again",
                    ids.len()
                )
            });
        }
        let seeds = match self.bounds.seeds {
            SeedStrategy::AllChunks => {
                let seeds = ids.iter().zip(&vectors);
                seeds.take_while(|(id, vector)| walk.seed(**id, vector.is_some())).count()
            }
            SeedStrategy::Centroid => {
                self.centroid = centroid(&vectors);
                let averaged = ids.len() - without;
                let is_seed = walk.seed(ids[0], self.centroid.is_some());
                for &id in &ids {
                    walk.visit(id);
                }
                if is_seed { averaged } else { 0 }
            }
        };
        Ok(u64::try_from(seeds).unwrap_or(u64::MAX))
    }

    /// Asks for the neighbours of several nodes in one pass.
    async fn supply(&mut self, walk: &mut Walk, wanted: &Wanted) -> Result<(), AppError> {
        let (nodes, queries, lengths) = self.queries(walk, wanted).await?;
        let used = walk.used().iter().map(DocumentPath::as_str);
        let restriction = Restriction {
            filter: self.restriction.filter.clone().without(used),
            excluded: Vec::new(),
        };
        let rankings = self.snapshot.nearest_to_each(&queries, wanted.depth, &restriction).await?;
        if self.bounds.dedup_by_path {
            let found = rankings.iter().flatten().map(|candidate| candidate.chunk);
            self.read(found.collect()).await?;
        }
        for ((node, length), ranking) in nodes.into_iter().zip(lengths).zip(rankings) {
            let neighbours = ranking.into_iter().map(|candidate| {
                let chunk = self.chunks.get(&candidate.chunk);
                Neighbour {
                    chunk: candidate.chunk,
                    similarity: similarity(candidate.score, length),
                    path: chunk
                        .filter(|_| self.bounds.dedup_by_path)
                        .map(|chunk| chunk.document.path.clone()),
                }
            });
            walk.supply(wanted, node, neighbours.collect());
        }
        Ok(())
    }

    /// What the neighbours of nodes are looked for with: the nodes, their
    /// vectors and the lengths of these.
    async fn queries(
        &self,
        walk: &mut Walk,
        wanted: &Wanted,
    ) -> Result<(Vec<usize>, Vec<Embedding>, Vec<f32>), AppError> {
        let ids: Vec<ChunkId> = wanted.nodes.iter().map(|&node| walk.links()[node].chunk).collect();
        let vectors = self.snapshot.embeddings(&ids).await?;
        let (mut nodes, mut queries, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for (&node, vector) in wanted.nodes.iter().zip(vectors) {
            let (vector, length) = match &self.centroid {
                Some(centroid) if node == 0 => (Some(centroid.vector.clone()), centroid.length),
                _ => (vector, 1.0),
            };
            match vector {
                Some(vector) => {
                    nodes.push(node);
                    queries.push(vector);
                    lengths.push(length);
                }
                // Whoever is near has a vector; without one nothing is near.
                None => walk.supply(wanted, node, Vec::new()),
            }
        }
        Ok((nodes, queries, lengths))
    }

    /// Reads those of some chunks that have not been read yet.
    async fn read(&mut self, mut ids: Vec<ChunkId>) -> Result<(), AppError> {
        ids.retain(|id| !self.chunks.contains_key(id));
        ids.sort_unstable();
        ids.dedup();
        if !ids.is_empty() {
            let chunks = self.snapshot.chunks(&ids).await?;
            self.chunks.extend(chunks.into_iter().map(|chunk| (chunk.id, chunk)));
        }
        Ok(())
    }

    /// The nodes of an answer.
    async fn nodes(&mut self, links: &[Link]) -> Result<Vec<Node>, AppError> {
        self.read(links.iter().map(|link| link.chunk).collect()).await?;
        // One snapshot has all that it names, so none is left out.
        Ok(links
            .iter()
            .filter_map(|link| Some(node(link, self.chunks.get(&link.chunk)?)))
            .collect())
    }
}

fn node(link: &Link, stored: &StoredChunk) -> Node {
    let StoredChunk { document, chunk, .. } = stored;
    Node {
        parent: link.parent,
        depth: link.depth,
        chunk: link.chunk,
        score: link.score,
        path: document.path.to_string(),
        heading: chunk.heading.clone(),
        title: document.title.clone(),
        topic: document.topic.clone(),
        snippet: snippet(&chunk.content),
        lines: chunk.lines,
        symbol_kind: chunk.symbol_kind.clone(),
        uri: None,
    }
}

/// The mean direction of those vectors that are there; none if none is.
fn centroid(vectors: &[Option<Embedding>]) -> Option<Centroid> {
    let dimension = vectors.iter().flatten().map(Embedding::dimension).next()?;
    let mean = Embedding::mean(vectors.iter().flatten().map(|vector| (vector, 1)));
    Some(match mean {
        Some(vector) => Centroid { vector, length: 1.0 },
        None => Centroid { vector: Embedding::from_stored(vec![0.0; dimension]), length: 0.0 },
    })
}
