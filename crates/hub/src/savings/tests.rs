//! Figures of small catalogs and records.

use bytes::Bytes;

use super::*;

fn tool(name: &str, description: &str) -> Bytes {
    let text = format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}}}}}}}}"#
    );
    text.into()
}

fn measured(count: usize, pinned: &[&str]) -> MeasuredCatalog {
    let mut naming = ServerNaming::new("files", "c1");
    naming.pinned = pinned.iter().map(|glob| (*glob).to_owned()).collect();
    let tools = (0..count).map(|number| {
        let name = format!("tool{number}");
        tool(&name, &format!("Does the thing number {number} to a file"))
    });
    let listing = ServerListing {
        tools: tools.collect(),
        ..ServerListing::default()
    };
    MeasuredCatalog {
        servers: vec![(Arc::new(naming), Arc::new(listing))],
        filter: ViewFilter::default(),
        proxy_tool: ProxyToolOptions::default(),
        dispatch_tool: DispatchToolOptions::default(),
    }
}

#[test]
fn tokens_are_a_quarter_of_the_characters_rounded_up() {
    let size = TextSize::of("äöüß!".as_bytes());
    assert_eq!((size.bytes, size.chars, size.tokens()), (9, 5, 2));
    assert_eq!(TextSize::default().tokens(), 0);
}

#[test]
fn few_tools_are_cheaper_listed_directly_and_many_are_not() {
    let few = ExposureReport::measure(&measured(2, &[]));
    assert_eq!(few.tools, 2);
    assert!(few.break_evens().iter().all(|even| even.saved().is_none()));
    let many = ExposureReport::measure(&measured(300, &[]));
    assert_eq!((few.page_tools, many.page_tools), (2, 100));
    for even in many.break_evens() {
        let from = even.pays_from_tools.unwrap();
        assert!(
            even.saved().is_some() && (2..300).contains(&from),
            "{even:?}"
        );
        // The number is right: one tool less does not pay.
        let around = |count: u64| {
            let report = ExposureReport::measure(&measured(count as usize, &[]));
            report.cost_of(ExposeMode::All).tokens()
        };
        assert!(
            around(from + 1) > even.own && around(from - 2) < even.own,
            "{even:?}"
        );
    }
}

#[test]
fn lists_have_what_a_client_gets() {
    let report = ExposureReport::measure(&measured(3, &[]));
    let counts: Vec<_> = report.exposures.iter().map(|cost| cost.tools).collect();
    assert_eq!(counts, [3, 1, 1, 2, 4, 4, 5]);
    let definition = proxy_tool::definition(&ProxyToolOptions::default());
    // The brackets of the list come on top.
    let expected = definition.len() as u64 + 2;
    assert_eq!(report.cost_of(ExposeMode::Proxy).bytes, expected);
    let samples: Vec<_> = report.lookups.iter().map(|cost| cost.samples).collect();
    assert_eq!(samples, [1, 3, 1, 3]);
}

#[test]
fn pinned_tools_have_rows_of_their_own() {
    let report = ExposureReport::measure(&measured(3, &["tool1"]));
    let pinned: Vec<_> = report
        .exposures
        .iter()
        .map(|cost| (cost.pinned, cost.tools))
        .collect();
    let plain = [(0, 3), (0, 1), (0, 1), (0, 2), (0, 4), (0, 4), (0, 5)];
    assert_eq!(pinned[..7], plain);
    assert_eq!(pinned[7..], [(1, 2), (1, 2)]);
}

#[test]
fn counts_are_of_tools_that_are_seen() {
    let mut measured = measured(5, &[]);
    let mut naming = ServerNaming::clone(&measured.servers[0].0);
    naming.tools.deny = vec!["tool1".to_owned(), "tool2".to_owned()];
    measured.servers[0].0 = Arc::new(naming);
    assert_eq!(measured.tool_counts()["files"], 3);
}

#[test]
fn a_call_through_our_own_tools_is_a_little_longer() {
    let mut naming = ServerNaming::new("files", "c1");
    naming.prefix = Some("files".to_owned());
    let call = MeasuredCall {
        server: &naming,
        tool: "read",
        arguments: br#"{"path":"a"}"#,
        result: Bytes::from_static(br#"{"content":[{"type":"text","text":"hello"}]}"#),
    };
    let direct = call.size(ExposeMode::All);
    let expected = r#"{"name":"files_read","arguments":{"path":"a"}}"#.len() + call.result.len();
    assert_eq!(direct.bytes, expected as u64);
    for mode in [ExposeMode::Proxy, ExposeMode::Dispatch] {
        let more = call.size(mode).bytes - direct.bytes;
        assert!((50..400).contains(&more), "{mode:?}: {more}");
    }
}

#[test]
fn pages_are_added_up() {
    let mut paged = measured(5, &[]);
    paged.filter.page_size = 2;
    let (paged, whole) = (
        ExposureReport::measure(&paged),
        ExposureReport::measure(&measured(5, &[])),
    );
    // Two more pairs of brackets, and two commas less.
    let bytes = |report: &ExposureReport| report.cost_of(ExposeMode::All).bytes;
    assert_eq!(bytes(&paged), bytes(&whole) + 2);
}

#[test]
fn nothing_is_found_without_tools() {
    let report = ExposureReport::measure(&measured(0, &[]));
    assert_eq!((report.tools, report.lookups.len()), (0, 0));
    assert!(
        report
            .break_evens()
            .iter()
            .all(|even| even.pays_from_tools.is_none())
    );
}

#[test]
fn a_spilled_result_is_a_preview() {
    let text = "x".repeat(20_000);
    let answer = |rest: &str| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]{rest}}}}}"#
        );
        Message::parse(text)
    };
    let size = |rest: &str, declared| spilled_size(&answer(rest), 10_240, declared);
    let plain = size("", DeclaredOutput::Nothing).unwrap();
    assert!((300..2_000).contains(&plain.bytes), "{plain:?}");
    assert_eq!(
        spilled_size(&answer(""), 50_000, DeclaredOutput::Nothing),
        None
    );
    // Clients refuse a result without what its tool declares, so that part stays.
    let structured = format!(r#","structuredContent":{{"x":"{text}"}}"#);
    let kept = size(&structured, DeclaredOutput::Schema).unwrap();
    assert!(kept.bytes > 20_000, "{kept:?}");
    let left_out = size(&structured, DeclaredOutput::Nothing).unwrap();
    assert!(left_out.bytes < 2_000, "{left_out:?}");
}
