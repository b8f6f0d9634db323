//! A region of interest: the part of a plan that is run in packets, while the rest of it is run flow by flow.

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_topology::{HostId, Network};
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::jobs::HostName;
use crate::plan::{HostWork, Plan};
use crate::program::RankWork;
use crate::servers::Endpoints;

/// Which messages are run in packets. Give `jobs` or `hosts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Region {
    /// The messages of these jobs or parts of a mix, by name; `background` is the `[workload]` beside jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<String>,
    /// The messages from one of these hosts to another one of them, by number or name; servers or GPUs go by number. Programs and closed loops (`permutation`, …) are inside with all of their hosts, or outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostName>,
}

/// Which messages of a plan are inside a region.
#[derive(Debug)]
pub struct Inside {
    /// By host, server or GPU of the plan; none where only the group decides.
    hosts: Option<Box<[bool]>>,
    /// By group; none where only hosts decide.
    groups: Option<Box<[bool]>>,
    /// By job of the plan.
    jobs: Box<[bool]>,
    /// By host, server or GPU, whether it may be an end of messages inside.
    members: Box<[bool]>,
}

impl Inside {
    /// Whether a message from one host to another, server or GPU where the plan goes by these, is inside.
    pub fn has(&self, src: HostId, dst: HostId, group: u16) -> bool {
        let of_hosts = |hosts: &[bool]| hosts[src as usize] && hosts[dst as usize];
        self.hosts.as_deref().is_none_or(of_hosts)
            && self.groups.as_deref().is_none_or(|groups| groups[usize::from(group)])
    }

    /// Whether all messages of a host and group are inside, or none of them; none where the receiver decides.
    pub(crate) fn decides(&self, src: HostId, group: u16) -> Option<bool> {
        match &self.groups {
            Some(groups) => Some(groups[usize::from(group)]),
            None => (!self.has_host(src)).then_some(false),
        }
    }

    /// Whether a job of the plan is inside.
    pub fn has_job(&self, job: u16) -> bool {
        self.jobs.get(usize::from(job)).is_some_and(|&is_inside| is_inside)
    }

    /// Whether a host, server or GPU may send or receive messages that are inside.
    pub fn has_member(&self, host: HostId) -> bool {
        self.members[host as usize]
    }

    /// Whether the programs of a host that lie outside are done; true where there are none.
    pub fn is_finished_outside(&self, host: HostId, work: &HostWork) -> bool {
        let mut is_finished = true;
        work.each_program(0, &mut |rank, first_group| {
            is_finished &= rank.is_finished() || self.has_rank(rank, host, first_group);
        });
        is_finished
    }

    fn has_host(&self, host: HostId) -> bool {
        self.hosts.as_deref().is_none_or(|hosts| hosts[host as usize])
    }

    /// The work of every host as far as it is inside, in a run that ends at `until`.
    pub fn works(self: &Arc<Self>, works: &[HostWork], until: Option<Time>) -> Vec<HostWork> {
        let until = until.unwrap_or(Time::MAX);
        (0..).zip(works).map(|(host, work)| work.part_of(self, host, until)).collect()
    }

    /// Whether a rank of a program is inside.
    pub(crate) fn has_rank(&self, rank: &RankWork, host: HostId, first_group: u16) -> bool {
        match (rank.job(), &self.groups) {
            (Some(job), _) => self.has_job(job),
            (None, Some(groups)) => groups[usize::from(first_group)],
            (None, None) => self.has_host(host),
        }
    }

    /// Refuses closed loops across the border, and numbers that would depend on both sides.
    fn check_loops(&self, plan: &Plan, endpoints: &Endpoints, field: &str) -> Result<(), Invalid> {
        for (host, work) in (0..).zip(&plan.hosts) {
            let sides = work.sides(self, host, 0);
            if sides.is_split_loop {
                let expected = "all hosts to which a closed loop sends (`uniform`, `permutation`, `all-to-all`, …), or none of them: what it sends next depends on both sides";
                let found = format!("some to which {} sends", endpoints.name(host));
                return Err(Invalid::new(field.to_owned(), expected, found));
            }
            if sides.has_loop && sides.inside && sides.outside {
                let expected = "all messages of a host beside a closed loop (`uniform`, `permutation`, `all-to-all`, …), or none of them: they are numbered as they start";
                let found = format!("some of {}", endpoints.name(host));
                return Err(Invalid::new(field.to_owned(), expected, found));
            }
        }
        Ok(())
    }

    /// Refuses a region without messages, and one that has all of them.
    fn check_sides(&self, plan: &Plan, field: &str) -> Result<(), Invalid> {
        let (mut inside, mut outside) = (false, false);
        for (host, work) in (0..).zip(&plan.hosts) {
            let sides = work.sides(self, host, 0);
            (inside, outside) = (inside | sides.inside, outside | sides.outside);
            work.each_program(0, &mut |rank, first_group| {
                let is_inside = self.has_rank(rank, host, first_group);
                (inside, outside) = (inside | is_inside, outside | !is_inside);
            });
        }
        match (inside, outside) {
            (true, true) => Ok(()),
            (false, _) => {
                Err(Invalid::new(field.to_owned(), "a region in which messages are sent", "one without any"))
            }
            (true, false) => {
                let expected =
                    "a region beside which messages are sent (with `detail = \"packets\"` all are packets)";
                Err(Invalid::new(field.to_owned(), expected, "all of them inside"))
            }
        }
    }
}

impl Region {
    /// Which messages of a plan are inside.
    ///
    /// # Errors
    /// The field that should change: what it names does not exist, nothing is inside or everything, or a program or closed loop is on both sides.
    pub fn find(&self, plan: &Plan, network: &Network) -> Result<Arc<Inside>, Invalid> {
        let endpoints = Endpoints { network, rails: plan.rails.as_ref() };
        let (field, inside) = match (self.jobs.is_empty(), self.hosts.is_empty()) {
            (false, true) => ("jobs", self.of_jobs(plan, &endpoints)?),
            (true, false) => ("hosts", self.of_hosts(plan, &endpoints)?),
            (true, true) => return Err(Invalid::new("hosts", "it or `jobs`", "neither")),
            (false, false) => return Err(Invalid::new("hosts", "it or `jobs`", "both")),
        };
        inside.check_loops(plan, &endpoints, field)?;
        inside.check_sides(plan, field)?;
        Ok(Arc::new(inside))
    }

    fn of_jobs(&self, plan: &Plan, endpoints: &Endpoints) -> Result<Inside, Invalid> {
        let mut groups: Box<[bool]> = vec![false; plan.groups.len()].into();
        for (at, name) in self.jobs.iter().enumerate() {
            let called = groups_called(plan, name);
            if called.is_empty() {
                let expected = match plan.groups.as_slice() {
                    [_] => {
                        "`hosts` instead, as the workload has no jobs and no parts that have names".to_owned()
                    }
                    groups => format!("one of {}", groups.join(", ")),
                };
                return Err(Invalid::new(format!("jobs.{at}"), expected, format!("\"{name}\"")));
            }
            called.into_iter().for_each(|group| groups[group] = true);
        }
        let mut jobs = Vec::with_capacity(plan.jobs.len());
        for job in &plan.jobs {
            let of_job = &groups[usize::from(job.groups.start)..usize::from(job.groups.end)];
            let is_inside = of_job.contains(&true);
            if is_inside && of_job.contains(&false) {
                let expected = format!("all of job `{}` or nothing of it", job.name);
                return Err(Invalid::new("jobs", expected, "some of its groups"));
            }
            jobs.push(is_inside);
        }
        // Of traffic that is no job it is not known here where it is.
        let mut is_known = vec![false; groups.len()];
        let mut members = vec![false; plan.hosts.len().max(endpoints.count() as usize)];
        for (job, _) in plan.jobs.iter().zip(&jobs).filter(|&(_, &is_inside)| is_inside) {
            is_known[usize::from(job.groups.start)..usize::from(job.groups.end)].fill(true);
            job.hosts.iter().for_each(|&host| members[host as usize] = true);
        }
        if groups.iter().zip(&is_known).any(|(&is_inside, &is_known)| is_inside && !is_known) {
            members.fill(true);
        }
        Ok(Inside { hosts: None, groups: Some(groups), jobs: jobs.into(), members: members.into() })
    }

    /// By the hosts at both ends.
    fn of_hosts(&self, plan: &Plan, endpoints: &Endpoints) -> Result<Inside, Invalid> {
        let mut hosts = vec![false; plan.hosts.len().max(endpoints.count() as usize)];
        for (at, host) in self.hosts.iter().enumerate() {
            let wrong = |(expected, found)| Invalid::new(format!("hosts.{at}"), expected, found);
            let host = host.find(endpoints).map_err(wrong)?;
            if std::mem::replace(&mut hosts[host as usize], true) {
                let found = format!("{} again", endpoints.name(host));
                return Err(Invalid::new(format!("hosts.{at}"), "every host once", found));
            }
        }
        // By job, none for one that is not in the plan's list: ranks inside, and all.
        let mut ranks: BTreeMap<Option<u16>, (u32, u32)> = BTreeMap::new();
        for (work, &is_inside) in plan.hosts.iter().zip(&hosts) {
            work.each_program(0, &mut |rank, _| {
                let (inside, all) = ranks.entry(rank.job()).or_default();
                (*inside, *all) = (*inside + u32::from(is_inside), *all + 1);
            });
        }
        let split = ranks.iter().find(|&(_, &(inside, all))| inside > 0 && inside < all);
        if let Some((job, (inside, all))) = split {
            let name = job
                .and_then(|job| plan.jobs.get(usize::from(job)))
                .map_or("the training job", |job| &job.name);
            let expected = format!(
                "the {} of all ranks of `{name}` or of none, as a program is inside or outside as a whole",
                endpoints.word()
            );
            return Err(Invalid::new("hosts", expected, format!("those of {inside} of its {all} ranks")));
        }
        let has = |job: u16| ranks.get(&Some(job)).is_some_and(|&(inside, _)| inside > 0);
        let jobs = (0..).zip(&plan.jobs).map(|(job, _)| has(job)).collect();
        let members = hosts.clone().into();
        Ok(Inside { hosts: Some(hosts.into()), groups: None, jobs, members })
    }
}

/// The groups for which a name stands: those of the job of that name; if there is none, the group that is called so; else those whose name begins with it and
/// a slash, as those of a part that has several do.
fn groups_called(plan: &Plan, name: &str) -> Vec<usize> {
    let of_jobs = plan.jobs.iter().filter(|job| job.name == name).flat_map(|job| job.groups.clone());
    let of_jobs: Vec<usize> = of_jobs.map(usize::from).collect();
    let those = |is_meant: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..plan.groups.len()).filter(|&group| is_meant(&plan.groups[group])).collect()
    };
    let is_part = |group: &str| group.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let found = [of_jobs, those(&|group| group == name), those(&is_part)];
    found.into_iter().find(|groups| !groups.is_empty()).unwrap_or_default()
}
