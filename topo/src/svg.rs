//! The tree as a drawing.

use std::collections::HashMap;
use std::fmt::Write;

use crate::distance::End;
use crate::hierarchy::{Item, Placed};
use crate::topology::Topology;

/// A line to draw between two ends.
#[derive(Clone, Copy, Debug)]
pub struct DrawnRoute<'a> {
    /// Where it begins: a PE's GPU, CPUs or NUMA node. CPUs are drawn as the node, package or host
    /// that has them all.
    pub from: End<'a>,
    /// Where it ends, mostly a NIC.
    pub to: End<'a>,
    /// The label, such as `PE 3`.
    pub label: &'a str,
}

const LEAF_WIDTH: usize = 168;
const LINE: usize = 14;
const MARGIN: usize = 8;

/// A box, in pixels.
#[derive(Clone, Copy, Debug, Default)]
struct Box {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// The topology as an SVG document: boxes within boxes for packages, NUMA nodes, bridges and
/// devices, dashed lines for NVLink unless it joins all alike, and a coloured one for each of `routes`. Routes to an end that
/// is not of this topology are left out.
pub fn svg(topology: &Topology, routes: &[DrawnRoute<'_>]) -> String {
    let all = topology.hierarchy();
    let texts: Vec<Vec<String>> = all.iter().map(|placed| lines(topology, *placed)).collect();
    let boxes = arrange(&all, &texts);
    let whole = boxes.first().copied().unwrap_or_default();
    let mut out = String::new();
    let (width, height) = (whole.width + 2 * MARGIN, whole.height + 2 * MARGIN);
    // Writing to a String cannot fail; its results say nothing.
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="-{MARGIN} -{MARGIN} {width} {height}" font-family="sans-serif" font-size="11">"#
    );
    for ((placed, place), lines) in all.iter().zip(&boxes).zip(&texts) {
        let Box {
            x,
            y,
            width,
            height,
        } = *place;
        let (class, fill) = colours(placed.item);
        let _ = writeln!(
            out,
            r##"<g class="{class}"><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="#555"/>"##
        );
        for (line, text) in lines.iter().enumerate() {
            let weight = if line == 0 { "bold" } else { "normal" };
            let (x, y) = (x + MARGIN, y + LINE * (line + 1));
            let _ = writeln!(
                out,
                r#"<text x="{x}" y="{y}" font-weight="{weight}">{}</text>"#,
                escaped(text)
            );
        }
        out.push_str("</g>\n");
    }
    let items = all.iter().map(|placed| placed.item);
    let box_of: HashMap<Item, Box> = items.zip(boxes).collect();
    let at = |item: Item| box_of.get(&item).copied();
    // Where all are joined alike the host's text says so, and lines would only hide the rest.
    let pairs = match topology.nvlink_of_all() {
        Some(_) => &[],
        None => topology.nvlinks.as_slice(),
    };
    for link in pairs {
        let ends = (at(Item::Gpu(link.gpus.0)), at(Item::Gpu(link.gpus.1)));
        if let (Some(from), Some(to)) = ends {
            let label = link.bandwidth.to_string();
            line(&mut out, "nvlink", "#76b900", (from, to), 0, &label);
        }
    }
    let colours = [
        "#c0392b", "#2471a3", "#7d3c98", "#b9770e", "#117a65", "#5d6d7e",
    ];
    let mut drawn = HashMap::new();
    for (route, colour) in routes.iter().zip(colours.iter().cycle()) {
        let ends = (item_of(topology, route.from), item_of(topology, route.to));
        let (Some(from), Some(to)) = (ends.0.and_then(at), ends.1.and_then(at)) else {
            continue;
        };
        let turn: &mut usize = drawn.entry(ends).or_default();
        line(&mut out, "route", colour, (from, to), *turn, route.label);
        *turn += 1;
    }
    out.push_str("</svg>\n");
    out
}

/// The item's text: its title, then its details, each on a line of its own where the box is narrow.
fn lines(topology: &Topology, placed: Placed) -> Vec<String> {
    let details = topology.details(placed.item);
    let mut lines = vec![topology.title(placed.item)];
    match placed.item {
        Item::Gpu(_) | Item::Nic(_) | Item::Node(_) => lines.extend(details),
        _ if details.is_empty() => {}
        _ => lines.push(details.join(", ")),
    }
    lines
}

/// Gives each item its box: packages and what a bridge has beside each other, the rest below each
/// other.
fn arrange(all: &[Placed], texts: &[Vec<String>]) -> Vec<Box> {
    let beside = |above: usize| matches!(all[above].item, Item::Host | Item::Bridge(_));
    // Sizes of what each contains, from the innermost out: what contains comes first.
    let mut boxes = vec![Box::default(); all.len()];
    for (index, placed) in all.iter().enumerate().rev() {
        let lines = &texts[index];
        let longest = lines.iter().map(|line| line.chars().count()).max();
        let own = Box {
            width: (longest.unwrap_or(0) * 6 + 2 * MARGIN).max(LEAF_WIDTH),
            height: lines.len() * LINE + MARGIN,
            ..Box::default()
        };
        let inside = &mut boxes[index];
        inside.width = own.width.max(inside.width + MARGIN);
        inside.height += own.height;
        let size = *inside;
        if let Some(above) = placed.above {
            let outside = &mut boxes[above];
            let (width, height) = (size.width + MARGIN, size.height + MARGIN);
            if beside(above) {
                outside.width += width;
                outside.height = outside.height.max(height);
            } else {
                outside.width = outside.width.max(width);
                outside.height += height;
            }
        }
    }
    // Places, from the outermost in; each moves the place for its next sibling.
    let mut next: Vec<(usize, usize)> = vec![(0, 0); all.len()];
    for (index, placed) in all.iter().enumerate() {
        if let Some(above) = placed.above {
            let (x, y) = next[above];
            let size = boxes[index];
            next[above] = if beside(above) {
                (x + size.width + MARGIN, y)
            } else {
                (x, y + size.height + MARGIN)
            };
            (boxes[index].x, boxes[index].y) = (x, y);
        }
        let Box { x, y, .. } = boxes[index];
        next[index] = (x + MARGIN, y + texts[index].len() * LINE + MARGIN);
    }
    boxes
}

/// Draws a line between the title rows of two boxes, where there is little text, `turn` lines of
/// text higher than the first between the same two.
fn line(out: &mut String, class: &str, colour: &str, ends: (Box, Box), turn: usize, label: &str) {
    let anchor = |place: Box| (place.x + place.width - 3 * MARGIN, place.y + LINE / 2);
    let ((x1, y1), (x2, y2)) = (anchor(ends.0), anchor(ends.1));
    let dashes = if class == "nvlink" { "5 3" } else { "none" };
    let x = (x1 + x2) / 2;
    // The curve and its label come half as high as its control point.
    let rise = x1.abs_diff(x2) / 8 + 2 * LINE * turn;
    let y = ((y1 + y2) / 2).saturating_sub(rise);
    let label_y = ((y1 + y2) / 2).saturating_sub(rise / 2);
    let _ = writeln!(
        out,
        r##"<g class="{class}"><path d="M {x1} {y1} Q {x} {y} {x2} {y2}" fill="none" stroke="{colour}" stroke-width="2" stroke-opacity="0.7" stroke-dasharray="{dashes}"/><circle cx="{x2}" cy="{y2}" r="3" fill="{colour}"/><text x="{x}" y="{label_y}" fill="{colour}" stroke="#fff" stroke-width="3" paint-order="stroke" text-anchor="middle">{}</text></g>"##,
        escaped(label)
    );
}

fn item_of(topology: &Topology, end: End<'_>) -> Option<Item> {
    let machine = &topology.machine;
    let node_at = |index| {
        machine
            .numa_nodes
            .iter()
            .position(|node| node.index == index)
    };
    match end {
        End::Gpu(gpu) => {
            let at = topology.gpus.iter().position(|one| one.name == gpu.name);
            at.map(Item::Gpu)
        }
        End::Nic(nic) | End::Port(nic, _) => {
            let at = topology.nics.iter().position(|one| one.name == nic.name);
            at.map(Item::Nic)
        }
        End::Node(node) => node_at(node.index).map(Item::Node),
        End::Cpus(cpus) => {
            let node = topology.node_of(cpus).and_then(node_at).map(Item::Node);
            let package = || {
                let index = topology.package_of(cpus)?;
                let at = topology.packages.iter().position(|one| one.index == index);
                at.map(Item::Package)
            };
            node.or_else(package).or(Some(Item::Host))
        }
    }
}

/// A class for style sheets, and a colour to fill with.
fn colours(item: Item) -> (&'static str, &'static str) {
    match item {
        Item::Host => ("host", "#ffffff"),
        Item::Package(_) => ("package", "#f4f6f6"),
        Item::Node(_) => ("numa-node", "#fcf3cf"),
        Item::Bridge(_) => ("bridge", "#e5e8e8"),
        Item::Gpu(_) => ("gpu", "#d5f5e3"),
        Item::Nic(_) => ("nic", "#d6eaf8"),
    }
}

/// `text` as XML takes it. Characters that XML cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use roxmltree::Document;

    /// The boxes of a class: the title and the rectangle as x, y, width, height.
    fn boxes(document: &Document<'_>, class: &str) -> Vec<(String, [usize; 4])> {
        let groups = document
            .descendants()
            .filter(|node| node.attribute("class") == Some(class));
        let text = |node: roxmltree::Node<'_, '_>| {
            let title = node
                .children()
                .find(|child| child.has_tag_name((SVG, "text")));
            title.and_then(|title| title.text()).unwrap().to_owned()
        };
        groups
            .map(|group| {
                let rect = group.first_element_child().unwrap();
                let number = |name| rect.attribute(name).unwrap().parse().unwrap();
                (text(group), ["x", "y", "width", "height"].map(number))
            })
            .collect()
    }

    const SVG: &str = "http://www.w3.org/2000/svg";

    #[test]
    fn every_device_of_every_host_is_drawn_apart_from_the_others() {
        for (name, xml) in fixtures::ALL {
            let topology = Topology::from_xml(xml).unwrap();
            let drawing = svg(&topology, &[]);
            let document = Document::parse(&drawing).unwrap();
            let gpus = boxes(&document, "gpu");
            let mut names: Vec<&str> = gpus.iter().map(|(title, _)| title.as_str()).collect();
            names.sort_unstable();
            let expected: Vec<&str> = topology.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
            assert_eq!(names, expected, "{name}");
            let nics = boxes(&document, "nic");
            for nic in &topology.nics {
                assert!(
                    nics.iter().any(|(title, _)| *title == nic.name),
                    "{name}: {}",
                    nic.name
                );
            }
            assert_eq!(nics.len(), topology.nics.len(), "{name}");
            assert_eq!(
                boxes(&document, "bridge").len(),
                topology.bridges.len(),
                "{name}"
            );
            let nodes = boxes(&document, "numa-node");
            assert_eq!(nodes.len(), topology.machine.numa_nodes.len(), "{name}");
            let leaves: Vec<_> = gpus.iter().chain(&nics).chain(&nodes).collect();
            let [host] = &boxes(&document, "host")[..] else {
                panic!("{name}: one host");
            };
            for (index, (title, [x, y, width, height])) in leaves.iter().enumerate() {
                let [_, _, whole_width, whole_height] = host.1;
                assert!(
                    x + width <= whole_width && y + height <= whole_height,
                    "{name}: {title}"
                );
                for (other, [left, top, wide, high]) in &leaves[..index] {
                    let beside = x + width <= *left || left + wide <= *x;
                    let apart = beside || y + height <= *top || top + high <= *y;
                    assert!(apart, "{name}: {title} hides {other}");
                }
            }
        }
    }

    #[test]
    fn routes_are_drawn_between_their_ends_with_their_labels() {
        let topology = Topology::from_xml(fixtures::NVLINK_PAIRS).unwrap();
        let cpus = &topology.machine.cores[0].cpus;
        let mut stranger = topology.nics[0].clone();
        stranger.name = "elsewhere".to_owned();
        let route = |from, to, label| DrawnRoute { from, to, label };
        let nic = || End::from(&topology.nics[0]);
        let routes = [
            route(End::from(&topology.gpus[0]), nic(), "PE 0 <&\"'>\u{1}"),
            route(End::from(cpus), nic(), "PE 1"),
            route(End::from(&topology.machine.numa_nodes[1]), nic(), "PE 2"),
            route(End::from(&topology.gpus[0]), End::from(&stranger), "PE 3"),
        ];
        let drawing = svg(&topology, &routes);
        let document = Document::parse(&drawing).unwrap();
        let of_class = |class| {
            let all = document
                .descendants()
                .filter(move |node| node.attribute("class") == Some(class));
            all.map(|group| {
                let path = group.first_element_child().unwrap();
                let label = group.last_element_child().unwrap();
                (path.attribute("d").unwrap(), label.text().unwrap())
            })
            .collect::<Vec<_>>()
        };
        let lines = of_class("route");
        let labels: Vec<&str> = lines.iter().map(|(_, label)| *label).collect();
        assert_eq!(labels, ["PE 0 <&\"'>\u{fffd}", "PE 1", "PE 2"]);
        let anchor = |class, title: &str| {
            let boxes = boxes(&document, class);
            let (_, [x, y, width, _]) = boxes.iter().find(|(one, _)| one == title).unwrap();
            format!("{} {}", x + width - 3 * MARGIN, y + LINE / 2)
        };
        let begins = [
            ("gpu", "gpu0"),
            ("numa-node", "NUMA node 0"),
            ("numa-node", "NUMA node 1"),
        ];
        for ((path, _), (class, title)) in lines.iter().zip(begins) {
            assert!(
                path.starts_with(&format!("M {} Q", anchor(class, title))),
                "{path}"
            );
            assert!(path.ends_with(&anchor("nic", "mlx5_0")), "{path}");
        }
        let links: Vec<&str> = of_class("nvlink").iter().map(|(_, label)| *label).collect();
        assert_eq!(links, ["300 GB/s", "200 GB/s"]);
    }

    #[test]
    fn routes_between_the_same_ends_lie_apart() {
        let topology = Topology::from_xml(fixtures::TWO_SOCKETS_ONE_NIC).unwrap();
        let route = |label| DrawnRoute {
            from: End::from(&topology.machine.numa_nodes[1]),
            to: End::from(&topology.nics[0]),
            label,
        };
        let drawing = svg(&topology, &[route("PE 0"), route("PE 1")]);
        let document = Document::parse(&drawing).unwrap();
        let paths = document
            .descendants()
            .filter_map(|node| node.attribute("d"));
        let paths: Vec<&str> = paths.collect();
        assert!(paths.len() == 2 && paths[0] != paths[1], "{paths:?}");
    }
}
