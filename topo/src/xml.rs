//! hwloc's XML, version 2: read without hwloc.
//!
//! The text may come from anywhere, so what it can cost is bounded before anything is built from
//! it: its length, nodes, nesting, attributes of one element, objects of a kind, and CPUs named in
//! all. Entities and name spaces, which hwloc never writes, are refused.

mod bitmap;
mod nvlink;
mod objects;

use std::path::Path;

use roxmltree::{Document, Node, ParsingOptions};

use crate::error::{Error, Result, quoted};
use crate::topology::Topology;
use crate::tree::plain_text;

const MOST_NODES: u32 = 500_000;
/// hwloc writes less than 20. The parser's time is quadratic in it.
const MOST_ATTRIBUTES: usize = 256;

pub(crate) fn topology(text: &str) -> Result<Topology> {
    bound(text)?;
    let options = ParsingOptions {
        // The file begins with a DOCTYPE; what that could declare was refused above.
        allow_dtd: true,
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| malformed(error.to_string()))?;
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        let name = quoted(root.tag_name().name());
        return Err(malformed(format!("its root is {name}, not \"topology\"")));
    }
    // hwloc 1 wrote no version, hwloc 2 writes 2.0.
    let version = root.attribute("version").unwrap_or("1");
    if version.split('.').next() != Some("2") {
        return Err(Error::XmlVersion {
            found: quoted(version),
        });
    }
    let mut found = objects::Found::read(root)?;
    for matrix in elements(root).filter(|node| nvlink::is_matrix(*node)) {
        nvlink::read(matrix, &mut found)?;
    }
    found.into_topology()
}

pub(crate) fn file(path: &Path) -> Result<Topology> {
    let text = plain_text(path, Topology::LONGEST_XML).map_err(|source| Error::XmlFile {
        path: path.to_owned(),
        source,
    })?;
    topology(&text.ok_or_else(too_long)?)
}

/// Refuses text that would take the parser long or much.
fn bound(text: &str) -> Result<()> {
    if text.len() > Topology::LONGEST_XML {
        return Err(too_long());
    }
    for word in ["<!ENTITY", "xmlns"] {
        if text.contains(word) {
            return Err(malformed(format!(
                "it has {word}, which hwloc never writes"
            )));
        }
    }
    // `<` cannot occur within an attribute, so a tag lies between two of them.
    let attributes = |tag: &str| tag.bytes().filter(|&byte| byte == b'=').count();
    if text.split('<').any(|tag| attributes(tag) > MOST_ATTRIBUTES) {
        return Err(malformed(format!(
            "an element has over {MOST_ATTRIBUTES} attributes"
        )));
    }
    Ok(())
}

fn too_long() -> Error {
    malformed(format!("it has over {} bytes", Topology::LONGEST_XML))
}

fn malformed(why: String) -> Error {
    Error::Xml { why }
}

/// The error for something in `node`, with its line.
fn wrong(node: Node<'_, '_>, what: &str) -> Error {
    let position = node.document().text_pos_at(node.range().start);
    let name = node.tag_name().name();
    let kind = node.attribute("type").unwrap_or_default();
    malformed(format!(
        "line {}: {} {}: {what}",
        position.row,
        quoted(name),
        quoted(kind)
    ))
}

/// The elements right below `node`.
fn elements<'a, 'input>(node: Node<'a, 'input>) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(Node::is_element)
}

/// The value of `node`'s info called `name`.
fn info<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    infos(node)
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The infos of `node`: name and value.
fn infos<'a>(node: Node<'a, '_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    elements(node)
        .filter(|child| child.tag_name().name() == "info")
        .filter_map(|info| Some((info.attribute("name")?, info.attribute("value")?)))
}

/// The number in an attribute; none where there is no such attribute.
fn number<N: std::str::FromStr>(node: Node<'_, '_>, attribute: &str) -> Result<Option<N>> {
    node.attribute(attribute)
        .map(|text| {
            text.parse().map_err(|_| {
                wrong(
                    node,
                    &format!("{attribute}={} is no number that fits", quoted(text)),
                )
            })
        })
        .transpose()
}

#[cfg(test)]
mod tests;
