//! The plots of the page, readable on light and dark.

use edgelect::config::Follow;
use plotters::prelude::*;

use crate::cases::{Failovers, Results, spread};
use crate::page::{grouped, month};
use worlds::fleet::Peers;
use worlds::fleet::count::Failover;

const SIZE: (u32, u32) = (760, 400);
const INK: RGBColor = RGBColor(125, 133, 144);
const COLOURS: [RGBColor; 4] =
    [RGBColor(59, 130, 246), RGBColor(232, 89, 12), RGBColor(47, 158, 68), RGBColor(174, 62, 201)];

/// A name and its points: followers, and a value.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Each file's name and its text.
pub fn draw(results: &Results) -> Result<Vec<(&'static str, String)>, String> {
    let claims = |percent: fn((u64, u64)) -> u64| {
        lines(results, move |of| percent(spread(of, |failover| failover.claims)) as f64)
    };
    let seconds = |of: &[Failover]| spread(of, |failover| failover.took_ms).1 as f64 / 1_000.0;
    Ok(vec![
        (
            "scale-puts.svg",
            plot("PUTs of a failover, median (tight)", "PUTs", &claims(|(median, _)| median))?,
        ),
        (
            "scale-seconds.svg",
            plot("Failover, p99 in seconds (tight)", "seconds", &lines(results, seconds))?,
        ),
        ("scale-money.svg", plot("S3, US dollars in a month", "dollars", &money(results))?),
    ])
}

fn lines(results: &Results, value: impl Fn(&[Failover]) -> f64) -> Vec<Line> {
    let of = ["crash", "resignation"].into_iter().flat_map(|cause| [(cause, 20), (cause, 200)]);
    of.map(|(cause, store_ms)| {
        let chosen = results.failovers(move |setup| {
            setup.store_ms == store_ms
                && setup.follow == Follow::Tight
                && setup.peers == Peers::Off
                && !setup.limited
        });
        let of = |one: &Failovers| match cause {
            "crash" => value(&one.crashes),
            _ => value(&one.resignations),
        };
        let points = chosen.map(|one| (one.setup.followers as f64, of(one))).collect();
        Line { name: format!("{cause}, store {store_ms} ms"), points }
    })
    .collect()
}

fn money(results: &Results) -> Vec<Line> {
    let of = [
        (Follow::Tight, Peers::Off),
        (Follow::Balanced, Peers::Off),
        (Follow::Frugal, Peers::Off),
        (Follow::Tight, Peers::On),
    ];
    of.into_iter()
        .map(|(follow, peers)| {
            let chosen =
                results.stable(move |setup| setup.follow == follow && setup.peers == peers);
            let points = chosen
                .map(|one| one.setup.followers)
                .map(|size| (size as f64, month(results, size, follow, peers, "S3")))
                .collect();
            let with = if peers == Peers::On { " with peers" } else { "" };
            Line { name: format!("{}{with}", follow.name()), points }
        })
        .collect()
}

fn plot(title: &str, unit: &str, lines: &[Line]) -> Result<String, String> {
    let mut svg = String::new();
    draw_lines(&mut svg, title, unit, lines).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw_lines(
    svg: &mut String,
    title: &str,
    unit: &str,
    lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let ends = |of: fn((f64, f64)) -> f64| {
        let low = all().map(of).fold(f64::INFINITY, f64::min);
        (low, all().map(of).fold(low, f64::max))
    };
    let ((least, most), (low, high)) = (ends(|(x, _)| x), ends(|(_, y)| y));
    let font = |size: u32| ("sans-serif", size).into_font().color(&INK);
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .caption(title, font(18))
        .build_cartesian_2d((least..most).log_scale(), (low / 2.0..high * 2.0).log_scale())?;
    let number = |value: &f64| match *value {
        small if small < 1.0 => small.to_string(),
        large => grouped(large.round() as u64),
    };
    chart
        .configure_mesh()
        .axis_style(INK)
        .bold_line_style(INK.mix(0.3))
        .light_line_style(TRANSPARENT)
        .label_style(font(13))
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .x_desc("followers")
        .y_desc(unit)
        .draw()?;
    for (line, colour) in lines.iter().zip(COLOURS) {
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(3))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .border_style(INK.mix(0.3))
        .label_font(font(13))
        .position(SeriesLabelPosition::UpperLeft)
        .draw()?;
    drop(chart);
    root.present()?;
    Ok(())
}
