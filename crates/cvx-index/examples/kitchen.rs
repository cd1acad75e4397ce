//! Two runs through a kitchen: similar events, what followed them, what led to success, a snapshot.
//!
//! `cargo run -p cvx-index --example kitchen`

use cvx_index::{
    EdgeKind, EntityId, Filter, IndexParams, LoadOptions, NewNode, NodeId, TemporalIndex,
};

/// What is seen at each step, as (fridge, egg, pan, salt): an embedder would make longer rows.
const STEPS: [(u64, &str, [f32; 4]); 6] = [
    (1, "open fridge", [1.0, 0.1, 0.0, 0.0]),
    (1, "take egg", [0.7, 1.0, 0.0, 0.0]),
    (1, "fry egg", [0.0, 0.8, 1.0, 0.0]),
    (2, "open fridge", [0.9, 0.2, 0.0, 0.1]),
    (2, "take salt", [0.3, 0.0, 0.0, 1.0]),
    (2, "wait", [0.1, 0.0, 0.1, 0.2]),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut index = TemporalIndex::new(IndexParams::new(4).seed(1))?;
    let mut nodes = Vec::new();
    for (time, (run, action, seen)) in (0..).zip(&STEPS) {
        let node = NewNode::new(EntityId(*run), time, Some(seen)).action(action);
        nodes.push(index.insert(node)?);
    }
    let [open, take, fry, _, _, wait] = nodes[..] else {
        unreachable!("six steps were inserted")
    };
    index.set_reward(fry, Some(1.0))?;
    index.set_reward(wait, Some(0.0))?;
    index.add_edge(take, fry, EdgeKind::CausedSuccess, 0.9)?;

    let action = |node: NodeId| index.action(node).map(|action| action.unwrap_or("nothing"));
    let cue = [0.8, 0.9, 0.0, 0.0];
    let all = Filter::default();

    println!("nearest to an open fridge with an egg in it:");
    for near in index.search(&cue, 2, None, &all)? {
        println!("  {:.3}  {}", near.distance, action(near.node)?);
    }

    println!("with what it led to:");
    let boosts = [(EdgeKind::CausedSuccess, 0.5)];
    for hit in index.graph_search(&cue, 2, &boosts, 2, None, &all)? {
        let way = if hit.path.is_empty() {
            ""
        } else {
            ", over an edge"
        };
        println!("  {:.3}  {}{way}", hit.score, action(hit.node)?);
    }

    println!("what went well:");
    let well = Filter {
        min_reward: Some(0.5),
        ..Filter::default()
    };
    for near in index.search(&cue, 5, None, &well)? {
        let before = index.predecessors(near.node, 2)?;
        let before: Vec<&str> = before.into_iter().map(action).collect::<Result<_, _>>()?;
        println!("  {} after {}", action(near.node)?, before.join(", "));
    }

    let file = std::env::temp_dir().join(format!("kitchen-{}.cvx", std::process::id()));
    index.save(&file, b"two runs")?;
    let opened = TemporalIndex::load_with(&file, LoadOptions::new().mmap(true))?;
    println!(
        "{} nodes opened again, {:?} first",
        opened.len(),
        opened.action(open)?
    );
    std::fs::remove_file(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_story_is_told_to_its_end() {
        super::main().unwrap();
    }
}
