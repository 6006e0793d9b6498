//! The texts of the prompts in Japanese.

use super::Texts;

pub(super) const TEXTS: Texts = Texts { summarize_topic, deep_dive, whats_new, find_gaps };

const RULES: &str = "\
守ること:
- 使った文書はすべて `path` を挙げて引用し、開いていない文書は引用しない。
- 文書に触れる前、また退ける前に、必ず get_document で開く。検索結果は抜粋にすぎない。
- `low_confidence` が true なら、収録が乏しいかもしれないと述べる。
- ナレッジベースに書かれていないことは、そう述べる。一般知識で補うときは、その旨を明記する。
- 回答は日本語で書く。";

fn summarize_topic(topic: &str) -> String {
    format!(
        "次のトピックについて、ナレッジベースの内容をまとめてください: {topic}

1. list_topics を呼び、このトピックがこの表記で存在するか確かめる。なければそう述べ、近いものを挙げて終える。
2. `topic` にこれを指定し、`limit` を 15 程度にして search を呼ぶ。結果が偏っていれば、別の言葉で検索し直す。
3. 重要な文書は get_document で全文を読む。
4. 次の順に書く: 確かなこと、情報源の食い違い、書かれていないこと。

{RULES}"
    )
}

fn deep_dive(question: &str) -> String {
    format!(
        "次の問いを、ナレッジベースを使って掘り下げてください: {question}

1. search を呼ぶ。最初の検索だけで答えてはいけない。
2. 最も有力な結果を一つか二つ選び、その `path` を `start` として get_connection_graph を `depth: 2` で呼び、別の言葉で書かれた近い文書を見つける。
3. 関わりの深い文書は get_document で全文を読む。
4. そこで見つけた語彙を使って、もう一度 search を呼ぶ。
5. 答える: 何が確かで出典はどれか、何が矛盾しているか、何が未解決か。

{RULES}"
    )
}

fn whats_new(since: &str) -> String {
    format!(
        "ナレッジベースで次の日付以降に新しくなったことを調べてください: {since}

1. `date_from` にこの日付を指定し、幅広い検索語をいくつか使い、それぞれ大きな `limit` で search を呼ぶ。すべてを見つける検索語はない。
2. 新しい文書は短いことが多いので、少なくとも一度は `include_low_quality: true` を付けて繰り返す。
3. 見つけたものをトピックとカテゴリーごとにまとめる。
4. 挙げる文書は、書きかけのものも含めてすべて開き、何が新しいかを一文で述べる。

`date_from` は文字列として比べられる。有効なのは YYYY-MM-DD だけで、「先週」のような言葉ではすべてが除かれる。日付は著者が書いたもので、ファイルの更新日時ではなく、日付のない文書は見つからない。したがってこの調査は近似であり、近似として示すこと。

{RULES}"
    )
}

fn find_gaps(topic: Option<&str>) -> String {
    let (about, filter) = match topic {
        Some(topic) => (
            format!("次のトピックについて: {topic}"),
            format!("どの検索にも `topic: \"{topic}\"` を指定する。"),
        ),
        None => (String::new(), String::new()),
    };
    format!(
        "ナレッジベースに欠けているものを見つけてください。{about}

1. list_topics を呼び、全体の形をつかむ。文書が少ないことだけでは、欠落とは言えない。
2. 読者が答えを期待する問いを書き出し、一つにつき一度 search を呼ぶ。{filter}手がかりは強い順に: 結果がない(最も明らか。このとき `low_confidence` は false のまま)、`low_confidence`、関わりの薄い結果だけ。
3. いくつかの検索は `include_low_quality: true` を付けて繰り返し、書きかけのものと、何もないこととを区別する。
4. 欠落と判断する前に結果を開く。答えがその中にあるかもしれない。
5. 欠落ごとに報告する: 問い、返ってきたもの、何もないのか書きかけなのか。内容は提案しない。

{RULES}"
    )
}
