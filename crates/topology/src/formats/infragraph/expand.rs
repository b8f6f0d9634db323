//! Endpoints of edges: names with slices, as Python has them, and the components that they stand for.

use netloom_units::names::{shorten, suggest};
use serde_saphyr::Spanned;

use super::catalog::Catalog;
use super::model::{Choice, Endpoint};
use crate::error::NetworkError;
use crate::formats::{Reader, yaml};

/// One end of a link: a component of an instance.
#[derive(Clone, Debug)]
pub(super) struct End<'a> {
    /// The instance's place, and its number among those of the same name.
    pub(super) instance: usize,
    pub(super) number: u32,
    name: &'a str,
    /// The component's place in its device and its number, and so on for devices in devices.
    pub(super) order: Vec<(usize, u32)>,
    components: Vec<&'a str>,
}

impl End<'_> {
    /// The name of the component in the graph: `dgx.0.cx7.3`.
    pub(super) fn name(&self) -> String {
        let mut name = format!("{}.{}", self.name, self.number);
        for (component, (_, number)) in self.components.iter().zip(&self.order) {
            name += &format!(".{component}.{number}");
        }
        name
    }
}

/// All ends that an endpoint stands for: instance by instance, then component by component.
pub(super) struct Ends<'a> {
    instance: usize,
    name: &'a str,
    numbers: Slice,
    /// Each component of the path with its place in its device.
    components: Vec<(&'a str, usize, Slice)>,
}

impl<'a> Ends<'a> {
    /// Finds what an endpoint of an edge between instances stands for.
    pub(super) fn new(
        reader: &Reader,
        catalog: &Catalog<'a>,
        endpoint: &'a Endpoint,
    ) -> Result<Self, NetworkError> {
        let line = yaml::line(&endpoint.instance);
        let (name, slice) = split(reader, &endpoint.instance, &endpoint.instance.value)?;
        let (instance, found) = catalog.instance(name, line)?;
        let fits = |slice: Slice, count: u32, line: usize, name: &str| {
            let message = || {
                format!(
                    "expected numbers from 0 to {} of `{}`, of which there are {count}",
                    count.saturating_sub(1),
                    shorten(name)
                )
            };
            slice.within(count).ok_or_else(|| reader.error(line, message()))
        };
        let numbers = fits(slice, found.count.value, line, name)?;
        let path = &endpoint.component;
        let line = yaml::line(path);
        let mut device = Some(catalog.device(&found.device.value, yaml::line(&found.device))?);
        let mut components = Vec::new();
        for word in path.value.split('.') {
            let (word, slice) = split(reader, path, word)?;
            let of = device.ok_or_else(|| {
                let message = format!(
                    "component: expected nothing after a component that is no device, found `{}`",
                    shorten(&path.value)
                );
                reader.error(line, message)
            })?;
            let place = of.components.iter().position(|component| component.name.value == word);
            let place = place.ok_or_else(|| {
                let names = of.components.iter().map(|component| component.name.value.as_str());
                let advice = suggest(word, names);
                let message = format!(
                    "device `{}` has no component `{}` ({advice})",
                    shorten(&of.name.value),
                    shorten(word)
                );
                reader.error(line, message)
            })?;
            let component = &of.components[place];
            let slice = fits(slice, component.count.value, line, word)?;
            components.push((component.name.value.as_str(), place, slice));
            device = match component.choice {
                Choice::Device => Some(catalog.device_of(component)?),
                _ => None,
            };
        }
        Ok(Ends { instance, name: &found.name.value, numbers, components })
    }

    /// How many ends there are.
    pub(super) fn count(&self) -> u64 {
        let slices = self.components.iter().map(|(_, _, slice)| slice);
        slices.fold(self.numbers.count(), |count, slice| count.saturating_mul(slice.count()))
    }

    /// The ends, the last component's number running fastest.
    pub(super) fn iter(&self) -> impl Iterator<Item = End<'a>> {
        (0..self.count()).map(|place| {
            let mut rest = place;
            let mut order = vec![(0, 0); self.components.len()];
            for (at, (_, component, slice)) in self.components.iter().enumerate().rev() {
                order[at] = (*component, slice.at(rest % slice.count()));
                rest /= slice.count();
            }
            End {
                instance: self.instance,
                number: self.numbers.at(rest),
                name: self.name,
                order,
                components: self.components.iter().map(|(name, ..)| *name).collect(),
            }
        })
    }
}

/// Numbers from one on, up to another one without it, in steps.
#[derive(Clone, Copy, Debug)]
struct Slice {
    start: u32,
    stop: Option<u32>,
    step: u32,
}

impl Slice {
    /// With an end, if all numbers are below `count`.
    fn within(self, count: u32) -> Option<Slice> {
        let stop = self.stop.unwrap_or(count);
        (stop <= count).then_some(Slice { stop: Some(stop), ..self })
    }

    fn count(&self) -> u64 {
        let stop = self.stop.unwrap_or(self.start);
        u64::from(stop.saturating_sub(self.start).div_ceil(self.step))
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the end of the slice")]
    fn at(&self, place: u64) -> u32 {
        self.start + self.step * place as u32
    }
}

/// A name and its slice: `nic`, `nic[1]`, `nic[0:4]`, `nic[::2]`.
fn split<'a>(
    reader: &Reader,
    place: &Spanned<String>,
    text: &'a str,
) -> Result<(&'a str, Slice), NetworkError> {
    let all = Slice { start: 0, stop: None, step: 1 };
    let Some((name, rest)) = text.split_once('[') else { return Ok((text, all)) };
    let fail = || {
        let expected = "a name with numbers from 0 on as in `nic[1]`, `nic[0:4]` or `nic[::2]`";
        reader.error(yaml::line(place), format!("expected {expected}, found `{}`", shorten(text)))
    };
    let inside = rest.strip_suffix(']').ok_or_else(fail)?;
    let words: Vec<&str> = inside.split(':').collect();
    let number = |word: &str, default: Option<u32>| match word.trim() {
        "" => Ok(default),
        word => word.parse().map(Some).map_err(|_| fail()),
    };
    let slice = match words[..] {
        [one] => {
            let one = number(one, None)?.ok_or_else(fail)?;
            Slice { start: one, stop: Some(one.checked_add(1).ok_or_else(fail)?), step: 1 }
        }
        [start, stop] => {
            Slice { start: number(start, Some(0))?.unwrap_or(0), stop: number(stop, None)?, step: 1 }
        }
        [start, stop, step] => Slice {
            start: number(start, Some(0))?.unwrap_or(0),
            stop: number(stop, None)?,
            step: number(step, Some(1))?.filter(|&step| step > 0).ok_or_else(fail)?,
        },
        _ => return Err(fail()),
    };
    Ok((name, slice))
}
