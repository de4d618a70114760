use proptest::prelude::*;
use rusqlite::Connection;
use unicode_normalization::UnicodeNormalization;

use super::*;

/// Decodes the private-use form, for readable expectations.
fn readable(coded: &str) -> String {
    let mut plane = 0;
    let mut out = String::new();
    for c in coded.chars() {
        match u32::from(c) {
            n @ 0xE001..=0xE010 => plane = (n - 0xE000) << 16,
            n @ 0xF0000..=0xFFFFF => {
                out.extend(char::from_u32(plane + n - 0xF0000));
                plane = 0;
            }
            _ => out.push(c),
        }
    }
    out
}

fn index() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(
        "create virtual table t using fts5(text, content='', contentless_delete=1,
             tokenize='unicode61 remove_diacritics 2');
         create virtual table seen using fts5vocab(t, instance);",
    )
    .unwrap();
    db
}

fn put(db: &Connection, id: usize, text: &str) {
    db.prepare_cached("insert into t(rowid, text) values (?1, ?2)")
        .unwrap()
        .execute((id as i64, indexable(text)))
        .unwrap();
}

/// The query in FTS5's syntax.
fn match_expression(words: &SearchTerms) -> String {
    let joined = |phrases: &[Phrase], operator: &str| {
        let quoted = phrases.iter().map(|phrase| {
            let star = if phrase.prefix { " *" } else { "" };
            format!("\"{}\"{star}", phrase.tokens.join(" "))
        });
        quoted.collect::<Vec<_>>().join(operator)
    };
    let wanted = joined(words.wanted(), " AND ");
    match words.unwanted() {
        [] => wanted,
        unwanted => format!("({wanted}) NOT ({})", joined(unwanted, " OR ")),
    }
}

/// Rows that FTS5 finds, in order.
fn found(db: &Connection, words: &SearchTerms) -> Vec<usize> {
    db.prepare_cached("select rowid from t where t match ?1 order by rowid")
        .unwrap()
        .query_map([match_expression(words)], |row| row.get::<_, i64>(0))
        .unwrap()
        .map(|id| id.unwrap() as usize)
        .collect()
}

/// All tokens stored in FTS5, by row and position.
fn stored(db: &Connection) -> Vec<String> {
    db.prepare("select term from seen order by doc, offset")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn texts_become_tokens() {
    fn check(text: &str, expected: &str) {
        assert_eq!(readable(&indexable(text)), expected, "{text:?}");
    }
    check("", "");
    check(" \n\0--!", "");
    check("Hello, World", "hello world");
    check("foo_bar a.b::c C++", "foo bar a b c c");
    check("don't don’t", "don t don t");
    check("user@example.org", "user example org");
    check("/path/to/file.rs --flag", "path to file rs flag");
    // Accents, composed or not; letters whose mark is part of the glyph; case.
    check("Canción CANCIO\u{301}N", "cancion cancion");
    check("Łódź Øre straße STRAẞE", "lodz ore strasse strasse");
    check("İstanbul ısı œuvre", "istanbul isi oeuvre");
    check("ΟΔΟΣ οδός", "οδοσ οδοσ");
    check("Привет ЁЛКА елка", "привет елка елка");
    check("שָׁלוֹם مَرْحَبًا", "שלום مرحبا");
    check("हिन्दी", "हिन्दी");
    check("Việt Nam", "viet nam");
    // Compatibility forms.
    check("ＡＢＣ　１２３", "abc 123");
    check("ﬁne ½ ① m² ㎏ ℡", "fine 1 2 1 m2 kg tel");
    check("so\u{AD}ft \u{FEFF}x", "soft x");
    // Runs.
    check("你", "你");
    check("你好", "你好 好");
    check("你好嗎", "你好 好嗎 嗎");
    check("用GPT模型5", "用 gpt 模型 型 5");
    check("你好，世界", "你好 好 世界 界");
    check("ラーメン", "ラー ーメ メン ン");
    check("ｶﾞｷﾞ", "ガギ ギ");
    check("か\u{3099}き", "がき き");
    check("ジョン・スミス", "ジョ ョン ン スミ ミス ス");
    check("한글", "한글 글");
    check(
        "\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}",
        "한글 글",
    );
    check("ㄅㄆ", "ㄅㄆ ㄆ");
    check("𠮷野家", "𠮷野 野家 家");
    check("𠀀𠀁", "𠀀𠀁 𠀁");
    check("豈\u{FE00}更", "豈更 更");
    check("ที่นี่", "ที ี่ ่น นี ี่ ่");
    check("ខ្មែរ", "ខ្ ្ម មែ ែរ រ");
    // Symbols.
    check("ok👍🏽fine ❤\u{FE0F}", "ok 👍 fine ❤");
    check("👩\u{200D}💻 🇪🇸", "👩 💻 🇪 🇸");
    check("┌─→ € \u{E0B0}", "");
}

#[test]
fn queries_become_expressions() {
    fn check(query: &str, expected: &str) {
        let words = SearchTerms::parse(query).unwrap();
        assert_eq!(readable(&match_expression(&words)), expected, "{query:?}");
    }
    check("hello", r#""hello""#);
    check("Hello wörld", r#""hello" AND "world""#);
    check("hello hello", r#""hello""#);
    check("\"in order\"", r#""in order""#);
    check("a -b", r#"("a") NOT ("b")"#);
    check("-b a -\"c d\" e", r#"("a" AND "e") NOT ("b" OR "c d")"#);
    check("pre*", r#""pre" *"#);
    check("café* cafe\u{301}*", r#""cafe" *"#);
    check("pre** *x x*y x.*", r#""pre" * AND "x" AND "x y""#);
    check("\"in or\"* \"lit*\"", r#""in or" * AND "lit""#);
    check("--flag - -- ->x", r#""flag" AND "x""#);
    check("a-b", r#""a b""#);
    check("x \"a\"-b", r#""x" AND "a" AND "b""#);
    check("foo_bar a.b::c", r#""foo bar" AND "a b c""#);
    check("C++ don't", r#""c" AND "don t""#);
    check(
        "AND OR NOT NEAR(a b, 3)",
        r#""and" AND "or" AND "not" AND "near a" AND "b" AND "3""#,
    );
    check("^text: (x", r#""text" AND "x""#);
    check("x\"y z\"w", r#""x" AND "y z" AND "w""#);
    check("你", r#""你" *"#);
    check("你好", r#""你好""#);
    check("你好* 你*", r#""你好" AND "你" *"#);
    check("你好嗎", r#""你好 好嗎""#);
    check("模型5 gpt模", r#""模型 型 5" AND "gpt 模" *"#);
    check("a -世界", r#"("a") NOT ("世界")"#);
    check("a -\"\" \"!\"", r#""a""#);
    check("👍", r#""👍""#);
}

#[test]
fn unusable_queries_say_why() {
    fn check(query: &str, expected: SearchTermsError) {
        assert_eq!(SearchTerms::parse(query), Err(expected), "{query:?}");
    }
    check("", SearchTermsError::Nothing);
    check(" \t ", SearchTermsError::Nothing);
    check("- -- * :: \"\" \"()\" -\"\"", SearchTermsError::Nothing);
    check("-a", SearchTermsError::OnlyExclusions);
    check("-\"a b\" -c !", SearchTermsError::OnlyExclusions);
    check("\"", SearchTermsError::UnclosedQuote { position: 1 });
    check("ñandú \"x", SearchTermsError::UnclosedQuote { position: 7 });
    check("-\"x", SearchTermsError::UnclosedQuote { position: 2 });
    check("\"a\" b\"", SearchTermsError::UnclosedQuote { position: 6 });
    let message = SearchTermsError::UnclosedQuote { position: 7 }.to_string();
    assert_eq!(message, "the quote opened at character 7 is never closed");
}

#[test]
fn queries_match_texts_with_and_without_fts5() {
    fn check(query: &str, text: &str, expected: bool) {
        let words = SearchTerms::parse(query).unwrap();
        assert_eq!(words.matches(text), expected, "{query:?} in {text:?}");
        let db = index();
        put(&db, 1, text);
        assert_eq!(
            found(&db, &words) == [1],
            expected,
            "FTS5 {query:?} in {text:?}"
        );
    }
    check("hello", "Hello, world", true);
    check("hell", "Hello, world", false);
    check("hell*", "Hello, world", true);
    check("world hello", "Hello, world", true);
    check("\"world hello\"", "Hello, world", false);
    check("hello -world", "Hello, world", false);
    check("hello -\"world hello\"", "Hello, world", true);
    check("cancion", "La CANCIÓN", true);
    check("CANCIO\u{301}N", "canción", true);
    check("foo_bar", "call foo_bar()", true);
    check("foo_bar", "foo and bar", false);
    check("user@example.org", "mail User@Example.org.", true);
    check("AND", "rock and roll", true);
    check("a OR b", "a b", false);
    check("abc", "ＡＢＣ", true);
    check("हिन्दी", "मुझे हिन्दी आती है", true);
    check("हिन्द", "मुझे हिन्दी आती है", false);
    check("世", "你好世界", true);
    check("界", "你好世界", true);
    check("好世", "你好世界", true);
    check("你世", "你好世界", false);
    check("好世界", "你好世界", true);
    check("你好世界好", "你好世界", false);
    check("型5", "模型5", true);
    check("模5", "模型5", false);
    check("gpt型", "gpt模型", false);
    check("gpt模", "gpt模型", true);
    check("가", "가나다", true);
    check("か", "が", false);
    check("ガ", "ｶﾞ", true);
    check("𠮷", "𠮷野家", true);
    check("野", "𠮷野家", true);
    check("นี่", "ที่นี่", true);
    check("ประเทศ", "ฉันรักประเทศไทย", true);
    check("❤", "I ❤\u{FE0F} it", true);
    check("👍", "ok 👍🏽", true);
    check("🇪🇸", "🇪🇸", true);
    check("\u{E0B0}x", "x", true);
}

/// Returns every character in a soak run; otherwise, beyond the scripts of alphabets, a sample.
fn characters() -> impl Iterator<Item = char> {
    let all = std::env::var_os("TERTULIA_TEST_ALL").is_some();
    ('\0'..=char::MAX).filter(move |&c| all || c < '\u{3400}' || u32::from(c) % 11 == 0)
}

#[test]
fn fts5_sees_every_character_as_we_do() {
    let db = index();
    db.execute_batch("begin").unwrap();
    let mut ours = Vec::new();
    // Characters that are not searchable are never written, so FTS5 need not be tested with all of
    // them.
    let all: Vec<char> = characters()
        .filter(|&c| c < '\u{3000}' || is_searchable(c))
        .collect();
    // Each alone and inside a word, a run and a mix; FTS5 must not cut or fold anything itself.
    for (id, chars) in all.chunks(500).enumerate() {
        let text: String = chars
            .iter()
            .map(|c| format!("{c} a{c}b 世{c}界 "))
            .collect();
        cut(&text, |token| ours.push(token.text.to_owned()));
        put(&db, id, &text);
    }
    let theirs = stored(&db);
    assert_eq!(theirs.len(), ours.len());
    let differing = ours.iter().zip(&theirs).find(|(our, their)| our != their);
    assert_eq!(differing, None);
}

#[test]
fn folding_is_done_in_one_go() {
    for c in characters() {
        let once = readable(&indexable(&c.to_string()));
        let decomposed: String = std::iter::once(c).nfd().collect();
        assert_eq!(
            readable(&indexable(&decomposed)),
            once,
            "U+{:04X}",
            u32::from(c)
        );
        // Runs gain a last character each time, so only words are comparable.
        let run = once.contains(|c: char| readable(&indexable(&format!("{c}{c}"))).contains(' '));
        if !run {
            assert_eq!(readable(&indexable(&once)), once, "U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn long_words_and_long_queries_are_no_trouble() {
    let db = index();
    let blob = "Ab9é".repeat(20_000);
    let text = format!("start {blob} end");
    put(&db, 1, &text);
    for query in [
        blob.clone(),
        format!("\"start {blob} end\""),
        format!("{}*", &blob[..2000]),
    ] {
        let words = SearchTerms::parse(&query).unwrap();
        assert!(words.matches(&text));
        assert_eq!(found(&db, &words), [1]);
    }
    let many: String = (0..5_000).map(|n| format!("w{n} ")).collect();
    put(&db, 2, &many);
    for query in [many.clone(), format!("\"{many}\"")] {
        assert_eq!(found(&db, &SearchTerms::parse(&query).unwrap()), [2]);
    }
    let excluded: String = (0..5_000).map(|n| format!("-w{n} ")).collect();
    let words = SearchTerms::parse(&format!("start {excluded}")).unwrap();
    assert_eq!(found(&db, &words), [1]);
}

#[test]
fn scores_grow_with_occurrences_and_shrink_with_length() {
    fn check(query: &str, better: &str, worse: &str) {
        let words = SearchTerms::parse(query).unwrap();
        let (better, worse) = (words.score(better), words.score(worse));
        assert!(
            better > worse && worse >= 0.0 && better.is_finite(),
            "{query}"
        );
    }
    check("a", "a", "");
    check("a", "a", "b");
    check("a", "a a b", "a b b");
    check("a", "a", &"a b".repeat(50));
    check("a b", "a b", "a a");
    check("\"a b\"", "a b a b", "b a b a");
    check("世界", "世界世界", "你好世界");
    let exact = SearchTerms::parse("a").unwrap().score("a b");
    assert!((exact - 1.0 / (1.0 + 1.2 * (0.25 + 0.75 * 2.0 / 120.0))).abs() < 1e-12);
    assert_eq!(SearchTerms::parse("a").unwrap().score(""), 0.0);
}

#[test]
fn snippets_show_the_best_place() {
    fn check(query: &str, text: &str, width: usize, expected: &str) {
        let snippet = SearchTerms::parse(query).unwrap().snippet(text, width);
        assert_eq!(
            highlighted(&snippet, "[", "]"),
            expected,
            "{query:?} in {text:?}"
        );
    }
    check("b", "a b c", 80, "a [b] c");
    check("b", "", 80, "");
    check("x", "a b c", 80, "a b c");
    check("cancion", "una Canción linda", 80, "una [Canción] linda");
    check(
        "cancion",
        "una Cancio\u{301}n linda",
        80,
        "una [Cancio\u{301}n] linda",
    );
    check(
        "resume",
        "re\u{301}sume\u{301}!",
        80,
        "[re\u{301}sume\u{301}]!",
    );
    check("b", " a\n\n\tb\u{7}\u{1b}[0m  c ", 80, "a [b][0m c");
    check("\"b c\" a", "a b\n c d", 80, "[a] [b c] d");
    check("can*", "una canción", 80, "una [canción]");
    check("fine", "ﬁne", 80, "[ﬁne]");
    check("好世", "你好世界", 80, "你[好世]界");
    check("世", "你好世界", 80, "你好[世]界");
    check("界", "你好世界", 80, "你好世[界]");
    check("ああ", "いあああい", 80, "い[あああ]い");
    check("世界好", "世界 世界好", 80, "世界 [世界好]");
    check("型5", "大模型5号", 80, "大模[型5]号");
    check("x", "aaaa bbbb cccc dddd", 9, "aaaa bbb…");
    check("cccc", "aaaa bbbb cccc dddd eeee", 10, "…b [cccc] d…");
    check("eeee", "aaaa bbbb cccc dddd eeee", 10, "…dddd [eeee]");
    check("aaaa", "aaaa bbbb cccc dddd eeee", 10, "[aaaa] bbbb…");
    // Both terms together win over an earlier match of one term.
    check(
        "p q",
        "p - - - - - - - - - - - p q - - - - - -",
        9,
        "…- [p] [q] -…",
    );
    check("longword", "longword", 5, "[long]…");
    check("ab", "xxxx ab\u{301}\u{302}\u{303} yyyy", 5, "…");
    check("a", "bcd a efg", 0, "");
}

#[test]
fn marks_that_do_not_fit_are_passed_over() {
    #[allow(clippy::reversed_empty_ranges)]
    let marks = vec![1..2, 0..3, 0..9, 5..4, 3..4];
    let snippet = Snippet {
        text: "año!".into(),
        marks,
    };
    assert_eq!(highlighted(&snippet, "<", ">"), "<añ><o>!");
}

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "b", "ab", "A", "á", "a\u{301}", "é", "\u{301}", "1", "foo", "FOO", "fo", "Ñu", "ß", "я",
    "你", "好", "世", "か", "\u{3099}", "ー", "가", "\u{11A8}", "𠮷", "ที่", "ก", "हि", "😀", "❤\u{FE0F}",
    "ｶ", "ﾞ", "Ａ", "½", " ", " ", " ", "-", "_", ".", "'", "\n", "，", "\u{200D}", "\0", "*", "(",
    ":", "AND", "^", "\u{E000}", "\u{F0061}",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..14).prop_map(|v| v.concat())
}

fn query() -> impl Strategy<Value = String> {
    let piece = proptest::collection::vec(proptest::sample::select(PIECES), 1..4);
    let term = (piece, 0..6u8).prop_map(|(piece, form)| match form {
        0 => format!("\"{}\"", piece.concat()),
        1 => format!("-{}", piece.concat()),
        2 => format!("-\"{}\"", piece.concat()),
        3 => format!("{}*", piece.concat()),
        4 => format!("\"{}\"*", piece.concat()),
        _ => piece.concat(),
    });
    proptest::collection::vec(term, 1..4).prop_map(|terms| terms.join(" "))
}

fn is_well_made(snippet: &Snippet, width: usize) -> bool {
    let marks = &snippet.marks;
    snippet.text.chars().count() <= width
        && !snippet.text.contains(char::is_control)
        && marks
            .iter()
            .all(|m| m.start < m.end && snippet.text.get(m.clone()).is_some())
        && marks.windows(2).all(|pair| pair[0].end < pair[1].start)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn fts5_and_matches_agree(
        texts in proptest::collection::vec(text(), 1..12),
        queries in proptest::collection::vec(query(), 1..12),
    ) {
        let db = index();
        db.execute_batch("begin").unwrap();
        for (id, text) in texts.iter().enumerate() {
            put(&db, id, text);
        }
        for query in &queries {
            let Ok(words) = SearchTerms::parse(query) else { continue };
            let ours: Vec<usize> =
                (0..texts.len()).filter(|&id| words.matches(&texts[id])).collect();
            prop_assert_eq!(found(&db, &words), ours, "{:?} in {:?}", query, texts);
        }
    }

    #[test]
    fn fts5_takes_any_query(query in "[\\PC\"^:*+(){}, -]{0,40}", text in text()) {
        if let Ok(words) = SearchTerms::parse(&query) {
            let db = index();
            put(&db, 0, &text);
            prop_assert_eq!(!found(&db, &words).is_empty(), words.matches(&text));
        }
    }

    #[test]
    fn a_piece_of_a_run_is_found(run in "[你好世界가나다ก-ฮะาก็𠮷]{1,12}", from in 0..12usize, len in 1..6usize) {
        let piece: String = run.chars().skip(from).take(len).collect();
        if let Ok(words) = SearchTerms::parse(&piece) {
            prop_assert!(words.matches(&run) && words.score(&run) > 0.0);
            prop_assert_eq!(words.snippet(&run, 80).marks.is_empty(), false);
        }
    }

    #[test]
    fn normal_forms_do_not_matter(text in text()) {
        let composed: String = text.nfc().collect();
        let decomposed: String = text.nfd().collect();
        prop_assert_eq!(indexable(&composed), indexable(&decomposed));
    }

    #[test]
    fn snippets_hold_for_the_small_alphabet(text in text(), query in query(), width in 0..40usize) {
        if let Ok(words) = SearchTerms::parse(&query) {
            let snippet = words.snippet(&text, width);
            prop_assert!(is_well_made(&snippet, width), "{:?}", snippet);
            if width >= text.chars().count() {
                let hit = words.score(&text) > 0.0;
                prop_assert_eq!(!snippet.marks.is_empty(), hit, "{:?}", snippet);
            }
            let plain = highlighted(&snippet, "", "");
            prop_assert_eq!(plain, snippet.text);
        }
    }

    #[test]
    fn snippets_never_panic(text in any::<String>(), query in any::<String>(), width in any::<usize>()) {
        for width in [width, width % 20] {
            // A part of the text itself, so that there is a match.
            for query in [query.clone(), text.chars().skip(3).take(4).collect()] {
                if let Ok(words) = SearchTerms::parse(&query) {
                    prop_assert!(is_well_made(&words.snippet(&text, width), width));
                    prop_assert!(words.score(&text).is_finite());
                }
            }
        }
    }
}
