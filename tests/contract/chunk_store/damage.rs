//! What a store says of its own soundness.

use grooveseek::ports::chunk_store::{Damage, Fault};

use super::*;

impl Subject {
    async fn damage(&self, fault: Fault) -> Damage {
        self.snapshot().await.damage(fault).await.unwrap()
    }

    /// Every kind of damage that is found.
    async fn faults(&self) -> Vec<Fault> {
        let mut found = Vec::new();
        for fault in Fault::ALL {
            let damage = self.damage(fault).await;
            assert_eq!(damage.count == 0, damage == Damage::default(), "{damage:?}");
            if damage.count > 0 {
                found.push(fault);
            }
        }
        found
    }
}

// OPS-60
pub(super) fn a_store_that_nobody_damaged_is_sound(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        assert_eq!(store.faults().await, []);
        // Nothing has a vector yet, and there may be no place for any.
        store.apply(vec![put("a.md", vec![text("one"), text("two")])]).await;
        assert_eq!(store.faults().await, []);
        let declared = Change::Declare(Some(BTreeSet::from(["owner".to_owned()])));
        store.apply(vec![put("b.md", vec![near("three", &[1.0, 0.0])]), declared]).await;
        assert_eq!(store.faults().await, []);
        let chunk = ChunkId(store.ids_of("a.md").await[0]);
        let embed = Change::Embed { chunk, embedding: towards(&[0.0, 1.0]) };
        let rename = Change::Rename { from: path("b.md"), to: path("c.md") };
        store.apply(vec![embed, rename, Change::Unembed(chunk)]).await;
        assert_eq!(store.faults().await, []);
        store.apply(vec![Change::Remove(path("a.md")), Change::Remove(path("c.md"))]).await;
        assert_eq!(store.faults().await, []);
    });
}

// OPS-62c
pub(super) fn a_document_without_chunks_is_damage(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let keys = ["g.md", "f.md", "e.md", "d.md", "c.md", "b.md"];
        store.apply(keys.map(|key| put(key, Vec::new())).to_vec()).await;
        store.apply(vec![put("a.md", vec![near("one", &[1.0, 0.0])])]).await;
        assert_eq!(store.faults().await, [Fault::EmptyDocument]);
        let samples = ["b.md", "c.md", "d.md", "e.md", "f.md"].map(str::to_owned).to_vec();
        let expected = Damage { count: 6, samples };
        assert_eq!(store.damage(Fault::EmptyDocument).await, expected);
    });
}

// OPS-73
pub(super) fn a_blank_chunk_of_source_code_is_damage(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let code = |content: &str| {
            let mut new = near(content, &[1.0, 0.0]);
            new.chunk.lines = Some(LineRange { start: 1, end: 2 });
            new
        };
        let blank = code(" \t\r\n\u{b}\u{c}\u{85}\u{a0}\u{2003}\u{2028}\u{3000}");
        store
            .apply(vec![
                put("b.rs", vec![blank.clone(), code("fn"), code("\u{200b}")]),
                put("a.rs", vec![blank, code("")]),
                put("c.md", vec![near(" ", &[1.0, 0.0])]),
            ])
            .await;
        assert_eq!(store.faults().await, [Fault::BlankCode]);
        let samples = ["a.rs", "b.rs"].map(str::to_owned).to_vec();
        assert_eq!(store.damage(Fault::BlankCode).await, Damage { count: 3, samples });
    });
}
