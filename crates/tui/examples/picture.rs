//! A picture of the UI for the README: `cargo run -p mcp-proxy-tui --example picture -- RECORD MESSAGE >docs/tui.svg`.
//!
//! Opens the record, goes to the message with this number, draws one screen in memory and prints it as SVG.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints a picture"
)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mcp_proxy_tui::{App, ProxyPort, Tab, Theme, UiCommand, ViewState, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

const COLUMNS: u16 = 120;
const ROWS: u16 = 32;
/// A cell, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d6d9e0";

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let record = PathBuf::from(arguments.next().unwrap());
    let message = arguments.next().unwrap_or_else(|| "1".into());
    let (port, _far) = ProxyPort::pair();
    let mut app = App::recorded(Tab::open(record), port, Theme::Dark);
    while *app.tabs[0].view.state() == ViewState::Opening {
        app.tabs[0].view.wait(Duration::from_secs(60));
        app.tick(Instant::now());
    }
    app.run(UiCommand::Goto, &message.to_string_lossy());
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, ROWS)).unwrap();
    // Bodies are read on another thread, and the first frame asks for them.
    for _ in 0..20 {
        app.tick(Instant::now());
        terminal.draw(|frame| draw(&mut app, frame)).unwrap();
        app.tabs[0].view.wait(Duration::from_millis(100));
    }
    print!("{}", svg(terminal.backend().buffer()));
}

fn svg(buffer: &Buffer) -> String {
    let (width, height) = (f32::from(COLUMNS) * WIDTH, f32::from(ROWS) * HEIGHT);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n",
        width + 16.0,
        height + 16.0
    );
    for row in 0..ROWS {
        let mut column = 0;
        while column < COLUMNS {
            let style = cell_style(&buffer[(column, row)]);
            let start = column;
            let mut run = String::new();
            while column < COLUMNS && cell_style(&buffer[(column, row)]) == style {
                run.push_str(buffer[(column, row)].symbol());
                column += 1;
            }
            draw_run(&mut text, (start, row), column - start, &run, &style);
        }
    }
    text.push_str("</svg>\n");
    text
}

/// The colours of a cell, and whether it is bold or underlined.
#[derive(PartialEq)]
struct CellStyle {
    ink: String,
    paper: String,
    bold: bool,
    underlined: bool,
}

fn cell_style(cell: &Cell) -> CellStyle {
    let mut ink = colour(cell.fg, FOREGROUND);
    let mut paper = colour(cell.bg, BACKGROUND);
    if cell.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut ink, &mut paper);
    }
    if cell.modifier.contains(Modifier::DIM) {
        ink = "#7d828e".to_owned();
    }
    CellStyle {
        ink,
        paper,
        bold: cell.modifier.contains(Modifier::BOLD),
        underlined: cell.modifier.contains(Modifier::UNDERLINED),
    }
}

fn draw_run(text: &mut String, (x, y): (u16, u16), columns: u16, run: &str, style: &CellStyle) {
    let (left, top) = (8.0 + f32::from(x) * WIDTH, 8.0 + f32::from(y) * HEIGHT);
    let width = f32::from(columns) * WIDTH;
    if style.paper != BACKGROUND {
        let paper = &style.paper;
        let _ = writeln!(
            text,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT:.1}\" fill=\"{paper}\"/>"
        );
    }
    if run.trim().is_empty() {
        return;
    }
    let run = run.replace('&', "&amp;").replace('<', "&lt;");
    let bold = if style.bold {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let line = match style.underlined {
        true => " text-decoration=\"underline\"",
        false => "",
    };
    let _ = writeln!(
        text,
        "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" xml:space=\"preserve\" fill=\"{}\"{bold}{line}>{run}</text>",
        top + 13.5,
        style.ink
    );
}

fn colour(colour: Color, default: &str) -> String {
    let named = match colour {
        Color::Rgb(red, green, blue) => return format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Black => "#23262e",
        Color::Red | Color::LightRed => "#ef6b73",
        Color::Green | Color::LightGreen => "#8ccf7e",
        Color::Yellow | Color::LightYellow => "#e5c76b",
        Color::Blue | Color::LightBlue => "#67a4f0",
        Color::Magenta | Color::LightMagenta => "#c47fd5",
        Color::Cyan | Color::LightCyan => "#6cbfbf",
        Color::Gray => "#aeb3bf",
        Color::DarkGray => "#6a6f7b",
        Color::White => "#f2f4f8",
        _ => default,
    };
    named.to_owned()
}
