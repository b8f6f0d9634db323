//! `netloom layers`: makes the layers of a network and saves them.

use std::io::Write;

use netloom_routing::Layers;
use netloom_routing::selector::layer::{Construction, Layer};
use netloom_scenario::{Problem, build_plane};
use netloom_sim::layers_seed;

use crate::args::LayersArgs;
use crate::failure::Failure;
use crate::files::unwritable;
use crate::input::{kind_in_one_word, load_spec};

/// Makes the layers that a run of the scenario with the same seed makes, of the network without any link cut, and writes them to a file.
pub(crate) fn layers(args: &LayersArgs) -> Result<(), Failure> {
    let loaded = load_spec(&args.spec, &args.changes)?;
    let construction: Construction = match (&args.routing, loaded.scenario.routing.selector.layer()) {
        (Some(word), _) => kind_in_one_word("--routing", word)?,
        (None, Some(layer)) => layer.construction.clone(),
        (None, None) => {
            let message =
                "expected a construction of layers, as the scenario's selector is not \"layer\", found none";
            return Err(Problem::new("--routing", message)
                .help("e.g. --routing fatpaths-random:layers=9")
                .into());
        }
    };
    let network = build_plane(&loaded.scenario, &loaded.document)?;
    let config = Layer { construction, ..Layer::default() };
    let seed = layers_seed(loaded.scenario.seed);
    let layers = Layers::build(&config, &network, |_| false, seed)
        .map_err(|error| Problem::new(error.field.clone(), error.reason()))?;
    let tables = layers.tables();
    let graph = network.router_graph();
    let reach = tables.validate(&graph).map_err(|error| Problem::new("", error.to_string()))?;
    tables.save(&args.out).map_err(|error| unwritable(&args.out, &error))?;

    let mut out = crate::show::out();
    writeln!(out, "{}", network.name())?;
    writeln!(out, "{:>5} {:>10} {:>8} {:>16}", "layer", "links", "longest", "pairs not joined")?;
    for (layer, reach) in reach.iter().enumerate() {
        writeln!(out, "{layer:>5} {:>10} {:>8} {:>16}", reach.links, reach.longest(), reach.unreached)?;
    }
    let size = std::fs::metadata(&args.out).map(|file| file.len()).unwrap_or(0);
    writeln!(
        out,
        "{} layers of {} switches, {size} bytes, in {}",
        tables.layers(),
        graph.routers(),
        args.out.display()
    )?;
    Ok(())
}
