//! Tests of decoding.

use proptest::prelude::*;

use super::*;

const JAPANESE: &str = "# 潮の満ち引き\n\n潮の満ち引きは、月と太陽の引力によって起こります。\
    満潮と干潮は、一日におよそ二回ずつ訪れます。\nポート番号は 3100 です。\n";
const CHINESE: &str = "# 潮汐\n\n潮汐是由月球和太阳的引力引起的。每天大约有两次高潮和两次低潮。\n\
    服务器的默认端口是 3100，可以在配置文件中修改。\n";
const TEXTS: &[(&str, &Encoding, &str)] = &[
    ("shift_jis", SHIFT_JIS, JAPANESE),
    ("euc-jp", EUC_JP, JAPANESE),
    ("gb18030", GB18030, CHINESE),
    (
        "windows-1250",
        WINDOWS_1250,
        "# Příliv a odliv\n\nPříliv a odliv způsobuje přitažlivost Měsíce a Slunce. Během dne \
         přijdou zhruba dvakrát. Služba naslouchá na portu 3100, který lze změnit v nastavení.\n",
    ),
    (
        "windows-1251",
        WINDOWS_1251,
        "# Приливы и отливы\n\nПриливы и отливы вызваны притяжением Луны и Солнца. За сутки они \
         бывают примерно дважды. Служба слушает порт 3100.\n",
    ),
    (
        "windows-1252",
        WINDOWS_1252,
        "# Les marées\n\nLes marées sont causées par l’attraction de la Lune et du Soleil. Elles \
         arrivent deux fois par jour, à peu près. Le service écoute sur le port 3100 – réglable.\n",
    ),
    (
        "windows-1252",
        WINDOWS_1252,
        "# Gezeiten\n\nEbbe und Flut entstehen durch die Anziehung von Mond und Sonne. Für beide \
         gilt: über den Tag verteilt kommen sie ungefähr zweimal. Größe und Höhe ändern sich, und \
         Häfen können früher überflutet sein.\n",
    ),
    (
        "windows-1252",
        WINDOWS_1252,
        "# Tides\n\nIt’s the moon that moves the sea – so they say – and “spring tides” are the \
         highest. A ‘neap tide’ is the opposite; don’t mix “ebb” and “flow” up…\n",
    ),
    (
        "windows-1253",
        WINDOWS_1253,
        "# Παλίρροια\n\nΗ παλίρροια προκαλείται από την έλξη της Σελήνης και του Ήλιου. Συμβαίνει \
         περίπου δύο φορές την ημέρα.\n",
    ),
    (
        "windows-1254",
        WINDOWS_1254,
        "# Gelgit\n\nGelgit, Ay'ın ve Güneş'in çekim gücüyle oluşur. Günde yaklaşık iki kez \
         yükselir ve alçalır. Sunucu varsayılan olarak 3100 numaralı bağlantı noktasını dinler.\n",
    ),
    (
        "windows-1255",
        WINDOWS_1255,
        "# גאות ושפל\n\nהגאות והשפל נגרמים מכוח המשיכה של הירח והשמש. הם מתרחשים בערך פעמיים ביום.\n",
    ),
    (
        "windows-1256",
        WINDOWS_1256,
        "# المد والجزر\n\nيحدث المد والجزر بسبب جاذبية القمر والشمس. ويحدثان مرتين في اليوم تقريبا.\n",
    ),
    (
        "windows-1257",
        WINDOWS_1257,
        "# Plūdmaiņas\n\nPlūdmaiņas izraisa Mēness un Saules pievilkšanas spēks. Tās notiek \
         aptuveni divas reizes dienā. Pakalpojums klausās portā, kuru var mainīt iestatījumos.\n",
    ),
];

fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, lossy) = encoding.encode(text);
    assert!(!lossy, "{} cannot hold {text}", encoding.name());
    bytes.into_owned()
}

fn utf16(text: &str, order: impl Fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(order).collect()
}

/// Bytes that follow no rule, the same in every run.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_be_bytes()[1]
    };
    (0..length).map(|_| next()).collect()
}

fn is_refused(bytes: &[u8]) -> bool {
    decode(bytes).is_err()
}

/// Whether bytes that were not made to be text are refused, unless they are
/// UTF-8 by chance.
fn is_refused_as_junk(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() || is_refused(bytes)
}

// IDX-B16
#[test]
fn text_in_each_legacy_encoding_is_read_and_tagged() {
    for (name, encoding, text) in TEXTS {
        let bytes = encoded(encoding, text);
        let decoded = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded.text, *text, "{name}");
        assert_eq!(decoded.tag(), Some(format!("encoding:{name}")));
    }
}

// IDX-B16
#[test]
fn utf_16_with_its_mark_is_read_and_tagged() {
    for text in ["", "a", "# 潮\r\n\nTides 🌊\n", JAPANESE] {
        let little = utf16(text, u16::to_le_bytes);
        let decoded = decode(&little).unwrap();
        assert_eq!((&*decoded.text, decoded.tag()), (text, Some("encoding:utf-16le".into())));
        let big = utf16(text, u16::to_be_bytes);
        let decoded = decode(&big).unwrap();
        assert_eq!((&*decoded.text, decoded.tag()), (text, Some("encoding:utf-16be".into())));
    }
}

// IDX-99
#[test]
fn what_only_begins_like_utf_16_is_refused() {
    let cut = utf16("Tides", u16::to_le_bytes);
    let utf32 = [&[0xFF, 0xFE, 0, 0][..], b"a\0\0\0"].concat();
    let half_a_pair = [0xFF, 0xFE, 0x3C, 0xD8, b'a', 0];
    for bytes in [&cut[..cut.len() - 1], &utf32, &half_a_pair, &[0xFF, 0xFE, 0, 0xE0]] {
        let error = decode(bytes).unwrap_err();
        assert!(error.to_string().contains("UTF-16"), "{error}");
    }
}

// IDX-99 IDX-100
#[test]
fn damaged_utf_8_is_refused_wherever_the_damage_is() {
    let texts = TEXTS.iter().map(|(_, _, text)| *text).chain(["Tides — “ebb” and 🌊 flow…\n"]);
    for text in texts {
        for place in 0..text.len() {
            let mut cut = text.as_bytes()[..place].to_vec();
            assert_eq!(is_refused(&cut), !text.is_char_boundary(place), "{text:?} cut at {place}");
            cut.extend([0xFF]);
            cut.extend(&text.as_bytes()[place..]);
            assert!(is_refused(&cut), "{text:?} with a bad byte at {place}");
            cut.remove(place);
            cut[place] = 0xE9;
            let still_valid = std::str::from_utf8(&cut).is_ok();
            assert_eq!(is_refused(&cut), !still_valid, "{text:?} with a changed byte at {place}");
        }
    }
}

// IDX-99 IDX-100
#[test]
fn a_file_in_two_encodings_is_refused() {
    for (name, encoding, text) in TEXTS {
        let bytes = encoded(encoding, text);
        let mixed = [&bytes[..], text.as_bytes()].concat();
        assert!(is_refused(&mixed), "{name} and UTF-8");
    }
}

// IDX-99
#[test]
fn what_is_too_little_to_tell_is_refused() {
    for bytes in [
        &b"abc\xFFd"[..],
        b"caf\xE9",
        b"\xE8\xAA",
        b"\x82\xA0",
        b"\xB0\xA1\xB0\xA1",
        b"na\xEFve caf\xE9, and nothing else in a long line of plain words that goes on",
        b"\x80",
    ] {
        assert!(matches!(decode(bytes), Err(ParseError::NotUtf8 { .. })), "{bytes:?}");
    }
}

// IDX-99 IDX-100
#[test]
fn what_is_no_text_is_refused() {
    for seed in 1..=300 {
        for length in [3, 7, 16, 33, 64, 200, 1000] {
            let bytes = noise(seed, length);
            assert!(is_refused_as_junk(&bytes), "seed {seed}, {length} bytes");
            // The same without controls, and above ASCII alone.
            let printable: Vec<u8> = bytes.iter().map(|byte| byte % 224 + 32).collect();
            assert!(is_refused_as_junk(&printable), "seed {seed}, {length} printable bytes");
            let high: Vec<u8> = bytes.iter().map(|byte| byte | 0xA0).collect();
            assert!(is_refused_as_junk(&high), "seed {seed}, {length} high bytes");
        }
    }
    let image = [b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", &noise(1, 500)[..]].concat();
    assert!(is_refused(&image));
    for (name, encoding, text) in TEXTS {
        for stray in [0, 1, 0x1B, 0x7F] {
            let mut bytes = encoded(encoding, text);
            bytes.insert(1, stray);
            assert!(is_refused(&bytes), "{name} with {stray}");
        }
    }
}

// IDX-B16
#[test]
fn text_in_other_encodings_is_refused_and_never_misread() {
    let korean = "# 조석\n\n조석은 달과 태양의 인력 때문에 일어납니다. 하루에 약 두 번 일어납니다. \
                  서버는 기본적으로 포트 3100을 사용합니다.\n";
    let taiwanese = "# 潮汐\n\n潮汐是由月球和太陽的引力引起的。每天大約有兩次高潮和兩次低潮。\n\
                     伺服器的預設連接埠可以在設定檔中修改。\n";
    let text_in = |name| TEXTS.iter().find(|(known, ..)| *known == name).unwrap().2;
    let russian = text_in("windows-1251");
    for (encoding, text) in [
        (encoding_rs::EUC_KR, korean),
        (encoding_rs::BIG5, taiwanese),
        (encoding_rs::KOI8_R, russian),
        (encoding_rs::IBM866, russian),
        (encoding_rs::ISO_8859_5, russian),
        (encoding_rs::MACINTOSH, text_in("windows-1252")),
    ] {
        let bytes = encoded(encoding, text);
        assert!(is_refused(&bytes), "{}", encoding.name());
    }
    // Code page 850, as the command prompt of Windows has it.
    let french = b"Les mar\x82es sont caus\x82es par la Lune. Elles arrivent \x85 peu pr\x8As \
                   deux fois par jour, et la c\x93te en est fa\x87onn\x82e: \x88tre l\x85, r\x8Agl\x82.";
    let german =
        b"Sch\x94ne Gr\x81\xE1e: \x84hnlich h\x94ren, sp\x84ter l\x94sen, sch\x94n m\x84hen. \
                   K\x94ln und W\x94rter, \x94ffnen und \x84ndern, \x9Aberall.";
    for bytes in [&french[..], german] {
        assert!(is_refused(bytes));
    }
}

// IDX-B16
#[test]
fn a_part_of_a_legacy_text_is_read_rightly_or_refused() {
    let mut misread = Vec::new();
    for (name, encoding, text) in TEXTS {
        for from in 0..60 {
            for length in 1..120 {
                let part: String = text.chars().skip(from).take(length).collect();
                match decode(&encoded(encoding, &part)) {
                    Ok(decoded) if decoded.tag().is_some() && decoded.text != part => {
                        misread.push(format!("{name}: {part:?} as {:?}", decoded.text));
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(
        misread.is_empty(),
        "{} misread: {:#?}",
        misread.len(),
        &misread[..5.min(misread.len())]
    );
}

proptest! {
    // IDX-99 IDX-B16
    #[test]
    fn valid_utf_8_is_taken_as_it_is(text in ".{0,200}", mark in any::<bool>()) {
        let text = if mark { format!("\u{FEFF}{text}") } else { text };
        let decoded = decode(text.as_bytes()).unwrap();
        prop_assert!(matches!(decoded.text, Cow::Borrowed(same) if same == text));
        prop_assert_eq!(decoded.tag(), None);
    }

    // IDX-99
    #[test]
    fn any_bytes_give_a_text_or_a_refusal(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(decoded) = decode(&bytes) {
            prop_assert!(std::str::from_utf8(&bytes).is_ok() || is_text(&decoded.text));
        }
    }
}
