//! Devices, their components, and the instances of them.

use std::collections::{HashMap, HashSet};

use netloom_units::names::{shorten, suggest};

use super::model::{Choice, Component, Device, Infrastructure, Instance};
use crate::error::NetworkError;
use crate::formats::{Reader, yaml};

/// Devices in devices beyond this depth are one that contains itself.
const DEEPEST: u32 = 16;

pub(super) struct Catalog<'a> {
    reader: &'a Reader,
    devices: HashMap<&'a str, &'a Device>,
    instances: &'a [Instance],
    servers: Vec<bool>,
}

impl<'a> Catalog<'a> {
    /// Collects what edges refer to; `servers` are the instances that the user says are servers.
    pub(super) fn new(
        reader: &'a Reader,
        infrastructure: &'a Infrastructure,
        servers: Option<&[String]>,
    ) -> Result<Self, NetworkError> {
        let mut devices = HashMap::new();
        for device in &infrastructure.devices {
            if devices.insert(device.name.value.as_str(), device).is_some() {
                let message = format!("devices: there are two of the name `{}`", shorten(&device.name.value));
                return Err(reader.error(yaml::line(&device.name), message));
            }
            let mut names = HashSet::new();
            if let Some(twice) =
                device.components.iter().find(|component| !names.insert(&component.name.value))
            {
                let (component, device) = (shorten(&twice.name.value), shorten(&device.name.value));
                let message = format!("components: device `{device}` has two of the name `{component}`");
                return Err(reader.error(yaml::line(&twice.name), message));
            }
        }
        let mut catalog =
            Catalog { reader, devices, instances: &infrastructure.instances, servers: Vec::new() };
        let mut names = HashSet::new();
        for instance in catalog.instances {
            let name = &instance.name;
            if !names.insert(name.value.as_str()) {
                let message = format!("instances: there are two of the name `{}`", shorten(&name.value));
                return Err(reader.error(yaml::line(name), message));
            }
            let device = &instance.device;
            let device = catalog.device(&device.value, yaml::line(device))?;
            let has_endpoint = catalog.has_endpoint(device, 0)?;
            let is_server = servers.map_or(has_endpoint, |servers| servers.contains(&name.value));
            catalog.servers.push(is_server);
        }
        if let Some(name) = servers.into_iter().flatten().find(|name| !names.contains(name.as_str())) {
            let found = format!("`{}` ({})", shorten(name), suggest(name, names.iter().copied()));
            let expected = format!("names of instances of {}", reader.file_name());
            return Err(netloom_units::Invalid::new("servers", expected, found).into());
        }
        Ok(catalog)
    }

    /// The device of a name that stands at a line.
    pub(super) fn device(&self, name: &str, line: usize) -> Result<&'a Device, NetworkError> {
        self.devices.get(name).copied().ok_or_else(|| {
            let advice = suggest(name, self.devices.keys().copied());
            self.reader.error(line, format!("there is no device `{}` ({advice})", shorten(name)))
        })
    }

    /// The device that a component is, as the component has its name.
    pub(super) fn device_of(&self, component: &Component) -> Result<&'a Device, NetworkError> {
        self.device(&component.name.value, yaml::line(&component.name))
    }

    /// Whether a device has an XPU or a NIC.
    fn has_endpoint(&self, device: &'a Device, depth: u32) -> Result<bool, NetworkError> {
        if depth > DEEPEST {
            let message = format!("device `{}` contains itself", shorten(&device.name.value));
            return Err(self.reader.error(yaml::line(&device.name), message));
        }
        let mut has_endpoint = false;
        for component in &device.components {
            has_endpoint |= match component.choice {
                Choice::Xpu | Choice::Nic => true,
                Choice::Device => self.has_endpoint(self.device_of(component)?, depth + 1)?,
                _ => false,
            };
        }
        Ok(has_endpoint)
    }

    /// The instance of a name that stands at a line, and its place.
    pub(super) fn instance(&self, name: &str, line: usize) -> Result<(usize, &'a Instance), NetworkError> {
        let found = self.instances.iter().enumerate().find(|(_, instance)| instance.name.value == name);
        found.ok_or_else(|| {
            let names = self.instances.iter().map(|instance| instance.name.value.as_str());
            let advice = suggest(name, names);
            self.reader.error(line, format!("there is no instance `{}` ({advice})", shorten(name)))
        })
    }

    pub(super) fn is_server(&self, instance: usize) -> bool {
        self.servers[instance]
    }

    /// Instances that are servers, each with its numbers.
    pub(super) fn all_servers(&self) -> impl Iterator<Item = (usize, u32)> {
        let servers = self.instances.iter().enumerate().filter(|&(instance, _)| self.servers[instance]);
        servers.flat_map(|(place, instance)| (0..instance.count.value).map(move |number| (place, number)))
    }

    pub(super) fn instance_name(&self, instance: usize, number: u32) -> String {
        format!("{}.{number}", self.instances[instance].name.value)
    }

    /// The line that names an instance.
    pub(super) fn line(&self, instance: usize) -> usize {
        yaml::line(&self.instances[instance].name)
    }

    /// Refuses links inside of devices that have a bandwidth or a latency, where an edge uses them.
    pub(super) fn refuse_links_inside(&self) -> Result<(), NetworkError> {
        let mut open: Vec<&Device> = Vec::new();
        for instance in self.instances {
            open.push(self.device(&instance.device.value, yaml::line(&instance.device))?);
        }
        let mut seen = HashSet::new();
        while let Some(device) = open.pop() {
            let name = &device.name.value;
            if !seen.insert(name) {
                continue;
            }
            for component in device.components.iter().filter(|component| component.choice == Choice::Device) {
                open.push(self.device_of(component)?);
            }
            let links = device.links.iter().filter(|link| {
                let physical = link.physical.as_ref();
                physical.is_some_and(|physical| physical.bandwidth.is_some() || physical.latency.is_some())
            });
            for link in links {
                let uses = |edge: &&super::model::DeviceEdge| edge.link.value == link.name.value;
                let Some(edge) = device.edges.iter().find(uses) else { continue };
                let end = |end: &super::model::DeviceEndpoint| {
                    let device = end.device.iter().map(|device| format!("{device}.")).collect::<String>();
                    format!("{device}{}", end.component.value)
                };
                let message = format!(
                    "device `{}`: {} and {} are joined by link `{}` with a bandwidth or latency of its own, and the inside of devices is not \
                     part of the network: expected `topology.ideal_devices = true`, and `servers` for what joins GPUs",
                    shorten(name),
                    end(&edge.ep1),
                    end(&edge.ep2),
                    shorten(&link.name.value)
                );
                return Err(self.reader.error(yaml::line(&edge.link), message));
            }
        }
        Ok(())
    }

    /// The rank of an XPU of that name (`dgx.1.xpu.3`, `tray.0.board.1.xpu.0`), or of a server that has none (`host.4`): by servers, then by the XPUs of each.
    pub(super) fn rank(&self, name: &str) -> Option<u64> {
        let words: Vec<&str> = name.split('.').collect();
        let [instance, number, path @ ..] = &words[..] else { return None };
        let (place, _) = self.instance(instance, 0).ok()?;
        let number: u32 = number.parse().ok().filter(|&number| number < self.instances[place].count.value)?;
        let device = |place: usize| self.device(&self.instances[place].device.value, 0).ok();
        let of_server = |place: usize| Some(self.xpus(device(place)?).max(1));
        let mut before = 0u64;
        for (other, instance) in self.instances.iter().enumerate().take(place) {
            if self.servers[other] {
                before = before.saturating_add(of_server(other)?.saturating_mul(instance.count.value.into()));
            }
        }
        let before = before.saturating_add(of_server(place)?.saturating_mul(number.into()));
        let has_none = self.xpus(device(place)?) == 0;
        let within = if path.is_empty() && has_none { 0 } else { self.xpu_at(device(place)?, path)? };
        self.servers[place].then(|| before.saturating_add(within))
    }

    /// How many XPUs a device has, those of devices in it too.
    fn xpus(&self, device: &Device) -> u64 {
        let each = |component: &Component| match component.choice {
            Choice::Xpu => 1,
            Choice::Device => self.device_of(component).map_or(0, |inner| self.xpus(inner)),
            _ => 0,
        };
        let all = device.components.iter();
        all.map(|component| each(component).saturating_mul(component.count.value.into()))
            .fold(0, u64::saturating_add)
    }

    /// The place of an XPU among those of a device, if there is one of this path.
    fn xpu_at(&self, device: &Device, path: &[&str]) -> Option<u64> {
        let [name, number, rest @ ..] = path else { return None };
        let mut before = 0u64;
        for component in &device.components {
            let inner = match component.choice {
                Choice::Device => Some(self.device_of(component).ok()?),
                Choice::Xpu => None,
                _ => continue,
            };
            let each = inner.map_or(1, |inner| self.xpus(inner));
            let count = component.count.value;
            if component.name.value != *name {
                before = before.saturating_add(each.saturating_mul(count.into()));
                continue;
            }
            let number: u32 = number.parse().ok().filter(|&number| number < count)?;
            let within = match inner {
                Some(inner) => self.xpu_at(inner, rest)?,
                None if rest.is_empty() => 0,
                None => return None,
            };
            return Some(before.saturating_add(each.saturating_mul(number.into())).saturating_add(within));
        }
        None
    }
}
