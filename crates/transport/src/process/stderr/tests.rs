//! Cutting stderr into lines.

use super::*;

fn cut(pieces: &[&[u8]]) -> Arc<StderrShared> {
    let shared = Arc::new(StderrShared::default());
    let mut cutter = LineCutter::default();
    for piece in pieces {
        cutter.push(piece, &shared);
    }
    cutter.finish(&shared);
    shared
}

fn taken(shared: &StderrShared) -> Vec<StderrLine> {
    std::iter::from_fn(|| shared.lock().take()).collect()
}

#[test]
fn lines_are_the_same_however_the_bytes_arrive() {
    let text = b"one\r\n\ntw\xff\0o\nlast";
    let whole = taken(&cut(&[text]));
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    let dripped = taken(&cut(&bytes));
    let texts = |lines: &[StderrLine]| {
        lines
            .iter()
            .map(|line| line.bytes.to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&whole), [&b"one"[..], b"", b"tw\xff\0o", b"last"]);
    assert_eq!(texts(&whole), texts(&dripped));
}

#[test]
fn a_long_line_is_cut_and_says_by_how_much() {
    let long = vec![b'x'; LINE_LIMIT + 10];
    let shared = cut(&[&long, b"yyy\nnext\n"]);
    let lines = taken(&shared);
    assert_eq!(lines[0].bytes.len(), LINE_LIMIT);
    assert_eq!(lines[0].cut, 13);
    assert_eq!(lines[1].bytes, "next");
    assert_eq!(lines[1].cut, 0);
    assert_eq!(shared.lock().recent[0].len(), RECENT_LINE_BYTES);
}

#[test]
fn what_nobody_takes_is_dropped_oldest_first_and_counted() {
    let text: String = (0..QUEUE_LINES + 7).map(|n| format!("{n}\n")).collect();
    let shared = cut(&[text.as_bytes()]);
    let lines = taken(&shared);
    assert_eq!(lines.len(), QUEUE_LINES);
    assert_eq!(lines[0].bytes, "7");
    assert_eq!(lines[0].lost_before, 7);
    assert_eq!(lines[1].lost_before, 0);

    let wide = [vec![b'x'; LINE_LIMIT - 1], vec![b'\n']].concat();
    let shared = cut(&vec![wide.as_slice(); 40]);
    assert!(shared.lock().queued_bytes <= QUEUE_BYTES);
    assert!(taken(&shared)[0].lost_before > 20);
    assert_eq!(shared.lock().queued_bytes, 0);
}

#[test]
fn the_last_lines_are_kept_for_error_texts() {
    let text: String = (0..100).map(|n| format!("{n}\n")).collect();
    let recent = cut(&[text.as_bytes()]).lock().recent.clone();
    assert_eq!(recent.len(), RECENT_LINES);
    assert_eq!((recent[0].as_str(), recent[19].as_str()), ("80", "99"));
}

#[test]
fn the_guards_line_is_not_the_servers_unless_more_follow() {
    let alone = cut(&[b"mcp-proxy-guard: cannot run \"x\"\n"]);
    assert!(alone.lock().guard_line.is_some());
    assert!(taken(&alone).is_empty());

    let forged = cut(&[b"mcp-proxy-guard: hello\nsecond\n"]);
    assert!(forged.lock().guard_line.is_none());
    assert_eq!(taken(&forged).len(), 2);

    let later = cut(&[b"first\nmcp-proxy-guard: hello\n"]);
    assert!(later.lock().guard_line.is_none());
    assert_eq!(taken(&later).len(), 2);
}

on_both_runtimes!(the_taker_sees_every_line_and_then_the_end);
async fn the_taker_sees_every_line_and_then_the_end() {
    let (mut write, read) = pipe::pipe().unwrap();
    let (mut reader, mut lines) = StderrReader::start(read);
    let writer = tokio::spawn(async move {
        for n in 0..500 {
            let text = format!("line {n}\n");
            tokio::io::AsyncWriteExt::write_all(&mut write, text.as_bytes())
                .await
                .unwrap();
        }
    });
    for n in 0..500 {
        assert_eq!(lines.next().await.unwrap().bytes, format!("line {n}"));
    }
    assert_eq!(lines.next().await, None);
    writer.await.unwrap();
    reader.finished().await;
    reader.finished().await;
    assert_eq!(reader.recent().len(), RECENT_LINES);
}
