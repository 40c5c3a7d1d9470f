//! Parts of results.

use mcp_proxy_spill::{
    MAX_ANSWER, PREVIEW_CHARS, PatternReading, ReadAnswer, ReadFacts, ReadLimit, ReadRequest,
    ResultShape, SpillError, SpillFormat,
};
use serde_json::json;

use crate::test_store::{OWNER, TestStore, one_text, records};

fn slice(from_line: u64, to_line: u64) -> ReadRequest {
    ReadRequest::Slice {
        from_line: Some(from_line),
        to_line: Some(to_line),
        from_column: None,
    }
}

fn grep(pattern: &str, context: u64) -> ReadRequest {
    ReadRequest::Grep {
        pattern: pattern.to_owned(),
        context,
    }
}

fn jq(filter: &str) -> ReadRequest {
    ReadRequest::Jq {
        filter: filter.to_owned(),
    }
}

fn lines_of(answer: &ReadAnswer) -> (u64, u64) {
    match answer.facts {
        ReadFacts::Lines { from_line, to_line } => (from_line, to_line),
        other => panic!("lines, not {other:?}"),
    }
}

#[test]
fn a_spilled_result_is_described() {
    let store = TestStore::new();
    let spilled = store.spill(&json!({"rows": records(100), "é": "é".repeat(500)}));
    assert_eq!(spilled.format, SpillFormat::Json);
    let keys = vec!["rows".to_owned(), "é".to_owned()];
    let key_count = 2;
    assert_eq!(spilled.shape, ResultShape::Object { keys, key_count });
    assert_eq!(spilled.preview.chars().count(), PREVIEW_CHARS);
    assert!(
        spilled
            .preview
            .starts_with(r#"{"rows":[{"id":1,"name":"record 1","#)
    );
    let stat = store.read(&spilled.handle, &ReadRequest::Stat).unwrap();
    assert_eq!(
        stat,
        ReadAnswer {
            text: None,
            byte_size: spilled.byte_size,
            total_lines: 105,
            truncated: false,
            facts: ReadFacts::File,
        }
    );
    assert_eq!(stat.total_lines, spilled.line_count);
    assert_eq!(stat.estimated_tokens(), spilled.byte_size.div_ceil(4));
    assert_eq!(stat.estimated_tokens(), spilled.estimated_tokens());
}

#[test]
fn an_answer_with_its_notes_is_not_larger_than_what_fits() {
    let store = TestStore::new();
    let limit = ReadLimit::with_notes(8192);
    let rows = store.spill(&records(2000)).handle;
    let long_line = store.spill(&json!({"text": "ab ".repeat(30_000)})).handle;
    for file in [rows, long_line] {
        for request in [
            ReadRequest::Read,
            ReadRequest::Head { lines: 5000 },
            ReadRequest::Tail { lines: 5000 },
            slice(1, 5000),
            slice(2, 2),
            grep("name|ab", 3),
            grep("(", 0),
            jq("., .[]?"),
        ] {
            let answer = store.read_within(&file, &request, limit).unwrap();
            let text = answer.text.unwrap();
            assert!(text.len() <= 8192, "{request:?}: {} bytes", text.len());
        }
    }
}

#[test]
fn what_fits_without_a_note_is_whole() {
    let store = TestStore::new();
    let path = store.in_root("fits.txt");
    let contents = "1234567\n".repeat(1024);
    std::fs::write(&path, &contents).unwrap();
    for request in [ReadRequest::Read, ReadRequest::Head { lines: 5000 }] {
        let file = path.to_str().unwrap();
        let limit = ReadLimit::with_notes(contents.len() as u64);
        let answer = store.read_within(file, &request, limit).unwrap();
        assert!(!answer.truncated);
        assert_eq!(answer.text.unwrap().trim_end(), contents.trim_end());
    }
}

#[test]
fn the_whole_result_is_kept_if_it_is_more_than_text() {
    let store = TestStore::new();
    let image = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
    let result = format!(r#"{{"content":[{{"type":"text","text":"[1]"}},{image}]}}"#);
    let spilled = store
        .store
        .spill(OWNER, result.as_bytes(), SpillFormat::Json, store.now)
        .unwrap();
    let whole = store.text(&spilled.handle, &ReadRequest::Read);
    assert!(whole.contains("image/png"), "{whole}");
}

#[test]
fn d2_s3_a_spilled_text_has_its_own_lines() {
    let store = TestStore::new();
    let text: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    let content = json!([{"type": "text", "text": text}]);
    for result in [
        json!({"content": content}),
        // As @modelcontextprotocol/server-filesystem and FastMCP repeat it.
        json!({"content": content, "structuredContent": {"content": text}}),
        json!({"content": content, "structuredContent": {"result": text}, "isError": false}),
    ] {
        let result = result.to_string();
        let spilled = store
            .store
            .spill(OWNER, result.as_bytes(), SpillFormat::Toon, store.now)
            .unwrap();
        assert_eq!(spilled.format, SpillFormat::Text);
        assert_eq!(spilled.byte_size, text.len() as u64);
        assert_eq!(spilled.line_count, 20_000);
        let file = spilled.handle.as_str();
        assert!(file.ends_with(".txt"), "{file}");
        assert_eq!(store.text(file, &ReadRequest::Head { lines: 2 }), "1\n2");
        let tail = store.text(file, &ReadRequest::Tail { lines: 2 });
        assert_eq!(tail, "19999\n20000");
        assert_eq!(store.text(file, &grep("^1999$", 0)), "1999: 1999");
        assert_eq!(store.text(file, &slice(700, 701)), "700\n701");
    }
}

#[test]
fn lines_are_counted_from_one_and_clamped() {
    let store = TestStore::new();
    let spilled = store.spill(&records(5000));
    let file = spilled.handle.as_str();
    let record = |id: u64| {
        let ok = id.is_multiple_of(2);
        format!(r#" {{"id":{id},"name":"record {id}","ok":{ok}}},"#)
    };
    let head = store.read(file, &ReadRequest::Head { lines: 2 }).unwrap();
    assert_eq!(
        head.text.as_deref(),
        Some(format!("[\n{}", record(1)).as_str())
    );
    assert_eq!((lines_of(&head), head.total_lines), ((1, 2), 5002));
    let tail = store.read(file, &ReadRequest::Tail { lines: 1 }).unwrap();
    assert_eq!(
        (tail.text.as_deref(), lines_of(&tail)),
        (Some("]"), (5002, 5002))
    );
    for id in [1, 1022, 1023, 1024, 2047, 4999] {
        assert_eq!(store.text(file, &slice(id + 1, id + 1)), record(id));
    }
    let all = store.read(file, &slice(0, u64::MAX)).unwrap();
    assert_eq!(lines_of(&all), (1, 5002));
    assert!(!all.truncated);
    let none = store.read(file, &slice(6000, 7000)).unwrap();
    assert_eq!(
        (none.text.as_deref(), lines_of(&none)),
        (Some(""), (6000, 5999))
    );
    let backwards = store.read(file, &slice(5, 2)).unwrap();
    assert_eq!(backwards.text.as_deref(), Some(""));
    let few = store
        .read(file, &ReadRequest::Tail { lines: u64::MAX })
        .unwrap();
    assert_eq!(lines_of(&few), (1, 5002));
}

#[test]
fn a_long_answer_is_cut_between_lines() {
    let store = TestStore::new();
    let spilled = store.spill(&records(20_000));
    let head = ReadRequest::Head { lines: 20_000 };
    let answer = store.read(&spilled.handle, &head).unwrap();
    let text = answer.text.as_deref().unwrap();
    assert!(answer.truncated && text.len() <= MAX_ANSWER);
    let (_, last) = lines_of(&answer);
    assert!(text.contains(&format!("\n[TRUNCATED at line {last} of 20002.")));
    let shown = text.lines().nth(last as usize - 1).unwrap();
    assert_eq!(store.text(&spilled.handle, &slice(last, last)), shown);
    assert_eq!(text.lines().count() as u64, last + 1);
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let store = TestStore::new();
    let spilled = store.spill(&json!(["é".repeat(MAX_ANSWER), "next"]));
    let answer = store.read(&spilled.handle, &slice(2, 3)).unwrap();
    let text = answer.text.as_deref().unwrap();
    assert!(answer.truncated && text.len() <= MAX_ANSWER);
    assert_eq!(lines_of(&answer), (2, 3));
    let cut = text.lines().next().unwrap();
    let mark = "é… [520196 more bytes: op='slice' fromLine=2 toLine=2 fromColumn=4097]";
    let end: String = cut.chars().skip(2040).collect();
    assert!(cut.ends_with(mark), "{end}");
    assert_eq!(text.lines().nth(1), Some(" \"next\""));
}

#[test]
fn a_long_line_is_read_on_from_a_column() {
    let store = TestStore::new();
    let file = store.in_root("long.txt");
    let long: String = (0..20_000).map(|number| format!("é{number};")).collect();
    std::fs::write(&file, format!("first\n{long}\nlast\n")).unwrap();
    let file = file.to_str().unwrap();
    let (mut read, mut column) = (String::new(), 1);
    while column <= long.len() as u64 {
        let request = ReadRequest::Slice {
            from_line: Some(2),
            to_line: Some(2),
            from_column: Some(column),
        };
        let answer = store
            .read_within(file, &request, ReadLimit::bytes(16_384))
            .unwrap();
        let text = answer.text.unwrap();
        let shown = text.split("… [").next().unwrap();
        assert_eq!(answer.truncated, shown.len() < text.len());
        assert!(shown.len() <= 16_384);
        read.push_str(shown);
        column += shown.len() as u64;
    }
    assert_eq!(read, long);
    let behind = ReadRequest::Slice {
        from_line: Some(2),
        to_line: Some(3),
        from_column: Some(10_000_000),
    };
    assert_eq!(store.text(file, &behind), "\nlast");
}

#[test]
fn an_answer_has_as_much_as_is_asked_for() {
    let store = TestStore::new();
    let file = store.spill(&records(20_000)).handle;
    let requests = [
        ReadRequest::Head { lines: 20_000 },
        ReadRequest::Tail { lines: 20_000 },
        slice(1, 20_000),
        grep("record", 0),
        jq(".[]"),
        ReadRequest::Read,
    ];
    for request in requests {
        let size = |limit| {
            let answer = store.read_within(&file, &request, limit).unwrap();
            assert!(answer.truncated, "{request:?}");
            answer.text.unwrap().len() as u64
        };
        let default = size(ReadLimit::bytes(16_384));
        assert!(
            (16_000..17_000).contains(&default),
            "{request:?}: {default}"
        );
        let more = size(ReadLimit::bytes(100_000));
        assert!((99_000..101_000).contains(&more), "{request:?}: {more}");
    }
}

#[test]
fn every_match_of_a_long_line_is_counted() {
    let store = TestStore::new();
    let file = store.in_root("one-line.json");
    std::fs::write(&file, r#"{"key":1},"#.repeat(10_000)).unwrap();
    let file = file.to_str().unwrap();
    let answer = store.read(file, &grep("KEY", 0)).unwrap();
    let matches = ReadFacts::Matches {
        match_count: 1,
        occurrence_count: 10_000,
        returned_matches: 1,
        reading: PatternReading::Regex,
    };
    assert_eq!(answer.facts, matches);
    assert!(answer.text.unwrap().len() < 2000);
}

#[test]
fn everyday_patterns_are_not_too_large() {
    let store = TestStore::new();
    let file = store.in_root("mails.txt");
    let lines: String = (0..2000)
        .map(|line| format!("an error: ada{line}@example.com\n"))
        .collect();
    std::fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    for pattern in [
        r"\w{3,20}",
        r"\b\w{1,30}@\w{1,30}\.com",
        ".{0,500}error.{0,500}",
        r"[[:alpha:]]{2,40}\s+\w{2,40}",
    ] {
        let answer = store.read(file, &grep(pattern, 0)).unwrap();
        let ReadFacts::Matches { match_count, .. } = answer.facts else {
            panic!("facts of a search");
        };
        assert_eq!(match_count, 2000, "{pattern}");
    }
}

#[test]
fn reading_stops_at_the_number_of_bytes() {
    let store = TestStore::new();
    let spilled = store.spill(&json!({"é": 1}));
    let file = spilled.handle.as_str();
    let whole = store
        .read_within(file, &ReadRequest::Read, ReadLimit::bytes(8))
        .unwrap();
    assert_eq!(
        (whole.text.as_deref(), whole.truncated),
        (Some("{\"é\":1}"), false)
    );
    let cut = store
        .read_within(file, &ReadRequest::Read, ReadLimit::bytes(3))
        .unwrap();
    assert!(cut.truncated);
    insta::assert_snapshot!(cut.text.unwrap());
    let large = store.spill(&records(20_000));
    let answer = store.read(&large.handle, &ReadRequest::Read).unwrap();
    assert!(answer.truncated);
    assert!(answer.text.unwrap().len() <= MAX_ANSWER);
}

#[test]
fn a_search_shows_whole_records() {
    let store = TestStore::new();
    let spilled = store.spill(&records(2000));
    let answer = store
        .read(&spilled.handle, &grep("RECORD 1500\\b", 1))
        .unwrap();
    insta::assert_snapshot!(answer.text.unwrap());
    let matches = ReadFacts::Matches {
        match_count: 1,
        occurrence_count: 1,
        returned_matches: 1,
        reading: PatternReading::Regex,
    };
    assert_eq!((answer.facts, answer.total_lines), (matches, 2002));
    assert_eq!(
        store.text(&spilled.handle, &grep("nobody", 3)),
        "(no matches)"
    );
}

#[test]
fn jq_is_one_more_way_to_read() {
    let store = TestStore::new();
    let file = store.spill(&records(1000)).handle;
    let answer = store
        .read(&file, &jq(".[] | select(.id % 400 == 0) | .name"))
        .unwrap();
    assert_eq!(
        answer.text.as_deref(),
        Some("\"record 400\"\n\"record 800\"")
    );
    assert_eq!(answer.facts, ReadFacts::Outputs { output_count: 2 });
    let broken = store.read(&file, &jq(".[] |"));
    assert!(matches!(broken, Err(SpillError::BadFilter(_))));
    let much = store
        .read(&file, &jq("range(3000) | tostring * 50"))
        .unwrap();
    assert!(much.truncated && much.text.unwrap().len() <= MAX_ANSWER);
}

#[test]
fn jq_wants_json_of_a_bounded_size() {
    let store = TestStore::new();
    let text = store.in_root("notes.txt");
    std::fs::write(&text, "just text").unwrap();
    let refused = store.read(text.to_str().unwrap(), &jq("."));
    assert!(matches!(refused, Err(SpillError::NotJson)));
    let json = store.in_root("small.json");
    std::fs::write(&json, "{ \"a\": [1.50] }\n").unwrap();
    assert_eq!(store.text(json.to_str().unwrap(), &jq(".a[0]")), "1.50");
    let large = store.in_root("large.json");
    let file = std::fs::File::create(&large).unwrap();
    file.set_len(257 << 20).unwrap();
    let refused = store.read(large.to_str().unwrap(), &jq("."));
    assert!(matches!(refused, Err(SpillError::TooLarge { .. })));
}

#[test]
fn files_below_a_root_are_read_in_parts_too() {
    let store = TestStore::new();
    let path = store.in_root("log.txt");
    let lines: String = (1..=3000).map(|line| format!("line {line}\n")).collect();
    std::fs::write(&path, &lines).unwrap();
    let file = path.to_str().unwrap();
    let stat = store.read(file, &ReadRequest::Stat).unwrap();
    assert_eq!(
        (stat.byte_size, stat.total_lines),
        (lines.len() as u64, 3000)
    );
    assert_eq!(store.text(file, &slice(2500, 2501)), "line 2500\nline 2501");
    assert_eq!(
        store.text(file, &ReadRequest::Tail { lines: 1 }),
        "line 3000"
    );
    assert_eq!(store.text(file, &grep("line 77$", 0)), "77: line 77");
    let binary = store.in_root("binary");
    std::fs::write(&binary, [0xff; MAX_ANSWER]).unwrap();
    let whole = ReadRequest::Read;
    let answer = store.read(binary.to_str().unwrap(), &whole).unwrap();
    assert!(answer.truncated && answer.text.unwrap().len() <= MAX_ANSWER);
}

#[test]
fn a_text_with_hostile_content_is_only_text() {
    let store = TestStore::new();
    let result = one_text("[\"\\u0000\\n\\ud83d\\ude00\"]");
    let spilled = store
        .store
        .spill(OWNER, result.as_bytes(), SpillFormat::Json, store.now)
        .unwrap();
    assert_eq!(spilled.line_count, 1);
    let whole = ReadRequest::Read;
    assert_eq!(
        store.text(&spilled.handle, &whole),
        "[\"\\u0000\\n\\ud83d\\ude00\"]"
    );
}

#[test]
fn many_threads_spill_and_read_at_once() {
    let store = TestStore::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for count in 1..50 {
                    let spilled = store.spill(&records(count * 10 + thread));
                    let last = ReadRequest::Tail { lines: 1 };
                    assert_eq!(store.text(&spilled.handle, &last).trim_start().len(), 1);
                }
            });
        }
    });
}

#[test]
fn a_pattern_that_is_too_large_is_refused_and_not_looked_for_literally() {
    let store = TestStore::new();
    let file = store.spill(&json!({"customer": "paid"})).handle;
    for pattern in ["customer.{0,100000}paid", &"x".repeat(1 << 20)] {
        let refused = store.read(&file, &grep(pattern, 0));
        assert!(matches!(refused, Err(SpillError::PatternTooLarge)));
    }
}
