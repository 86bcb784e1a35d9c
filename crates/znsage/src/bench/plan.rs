// SPDX-License-Identifier: GPL-2.0-only
//! The memory of a benchmark, and whether it can work.

use super::sampler::Totals;
use crate::cli::BenchArgs;
use crate::error::{Error, Kind, Result};
use crate::swaps::Area;
use crate::units;

/// Memory within the limit that is not under test: the program and its stacks. It is
/// more if the program's file was not cached before; see [`Plan::make_room`].
const PROGRAM: u64 = 2 << 20;

/// Pages that occupy both memory and swap: in flight, or read back and still valid in
/// swap.
const ON_THE_WAY: u64 = 4 << 20;

/// A page costs one generation and one entry in the page tables.
const OVERHEAD_PER_PAGE: u64 = 1 + 8;

/// With less, the kernel kills the worker instead of swapping it.
const MIN_LIMIT: u64 = 16 << 20;

/// Memory without --size, as a multiple of the limit.
const DEFAULT_TIMES: u64 = 4;

/// Memory under test without --size and without a limit.
const DEFAULT_UNLIMITED: u64 = 256 << 20;

#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Pages to fill first.
    pub pages: u64,
    /// Room to grow until the requested utilization is reached.
    pub max_pages: u64,
    /// Bytes; None without a limit.
    pub limit: Option<u64>,
    /// Live blocks to reach after the fill.
    pub live_target: Option<u64>,
}

pub fn plan(args: &BenchArgs, device: Option<&Totals>, page: u64) -> Result<Plan> {
    let limit = (args.memory_limit != u64::MAX).then_some(args.memory_limit);
    if limit.is_some_and(|l| l < MIN_LIMIT) {
        return Err(Error::new(
            Kind::Usage,
            format!("--memory-limit: the minimum is {}", units::size(MIN_LIMIT)),
        ));
    }
    if let Some(percent) = args.utilization {
        let device = device.ok_or_else(|| {
            Error::new(Kind::Device, "--utilization needs a znsage device, and none is on")
                .hint("run `znsage on DEVICE` first")
        })?;
        let limit = limit.ok_or_else(|| {
            Error::new(
                Kind::Usage,
                "--utilization needs a memory limit: otherwise nothing is swapped out",
            )
        })?;
        return Ok(for_utilization(percent, device, limit, page));
    }
    let default = limit.map_or(DEFAULT_UNLIMITED, |l| l.saturating_mul(DEFAULT_TIMES));
    let pages = args.size.unwrap_or(default) / page;
    if pages == 0 {
        return Err(Error::new(
            Kind::Usage,
            format!("--size: the minimum is a page ({})", units::size(page)),
        ));
    }
    Ok(Plan { pages, max_pages: pages, limit, live_target: None })
}

/// Estimates the pages from the limit; [`adjusted`] corrects this after the fill from
/// the device's counters.
fn for_utilization(percent: f64, device: &Totals, limit: u64, page: u64) -> Plan {
    let live = (device.blocks_total as f64 * percent / 100.0) as u64;
    let bytes = limit.saturating_sub(PROGRAM + ON_THE_WAY) + live * page;
    let tables = bytes / page * OVERHEAD_PER_PAGE;
    let pages = (bytes.saturating_sub(tables) / page).max(1);
    Plan {
        pages,
        max_pages: pages + pages / 8 + limit / page,
        limit: Some(limit),
        live_target: Some(live),
    }
}

impl Plan {
    /// Reduces the pages if the worker holds more of the limit than assumed before it
    /// fills any: swap might not have room for the rest. [`adjusted`] corrects too few.
    pub fn make_room(&mut self, held: u64, page: u64) {
        if self.live_target.is_some() {
            let fewer = held.saturating_sub(PROGRAM) / page;
            self.pages = self.pages.saturating_sub(fewer).max(1);
        }
    }
}

/// The number of pages for which `used` slots become the target; None if they are
/// within half a percent, or at a limit. Blocks in flight count as live.
pub fn adjusted(plan: &Plan, pages: u64, used: u64) -> Option<u64> {
    let target = plan.live_target?;
    if used.abs_diff(target) <= target / 200 {
        return None;
    }
    let wanted = (pages + target).saturating_sub(used);
    let wanted = wanted.clamp(1, plan.max_pages);
    (wanted != pages).then_some(wanted)
}

/// Checks swap space and memory before the fill.
pub fn check_space(plan: &Plan, areas: &[Area], available: u64, page: u64) -> Result<()> {
    let size = plan.pages * page;
    let free: u64 = areas.iter().map(Area::free_bytes).sum();
    let resident = plan.limit.unwrap_or(available).min(size);
    let short = |message: String, hint: &str| Err(Error::new(Kind::Space, message).hint(hint));
    if resident > available {
        return short(
            format!(
                "{} must stay in memory, but {} are available",
                units::size(resident),
                units::size(available)
            ),
            "choose a smaller --memory-limit",
        );
    }
    let out = size - resident;
    if out > free {
        return short(
            format!(
                "{} must be swapped out, but {} of swap are free",
                units::size(out),
                units::size(free)
            ),
            "choose a smaller --size, or turn on swap (`znsage on DEVICE`)",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    const PAGE: u64 = 4096;

    fn args(words: &[&str]) -> BenchArgs {
        let all = ["znsage", "bench"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Bench(args) => args,
            _ => unreachable!(),
        }
    }

    fn device(blocks_total: u64) -> Totals {
        Totals { blocks_total, ..Totals::default() }
    }

    #[test]
    fn default_size_is_four_times_the_limit() {
        let plan = plan(&args(&["--memory-limit", "64M"]), None, PAGE).unwrap();
        assert_eq!(plan.pages * PAGE, 256 << 20);
        assert_eq!(plan.limit, Some(64 << 20));
    }

    #[test]
    fn utilization_counts_swapped_pages() {
        let args = args(&["--memory-limit", "64M", "--utilization", "50"]);
        let plan = plan(&args, Some(&device(100_000)), PAGE).unwrap();
        assert_eq!(plan.live_target, Some(50_000));
        let resident = plan.pages - 50_000;
        assert!((10_000..16_384).contains(&resident), "{resident}");
        assert!(plan.max_pages > plan.pages);
    }

    #[test]
    fn program_memory_reduces_the_pages() {
        let with = args(&["--memory-limit", "64M", "--utilization", "50"]);
        let usual = plan(&with, Some(&device(100_000)), PAGE).unwrap().pages;
        for (held, fewer) in [(0, 0), (PROGRAM, 0), (8 << 20, 1536), (u64::MAX, usual - 1)] {
            let mut plan = plan(&with, Some(&device(100_000)), PAGE).unwrap();
            plan.make_room(held, PAGE);
            assert_eq!(usual - plan.pages, fewer, "{held} bytes");
        }
        let mut by_size = plan(&args(&["--size", "1M"]), None, PAGE).unwrap();
        by_size.make_room(8 << 20, PAGE);
        assert_eq!(by_size.pages, 256, "--size is fixed");
    }

    #[test]
    fn a_utilization_needs_a_device() {
        let words = args(&["--utilization", "50"]);
        assert_eq!(plan(&words, None, PAGE).unwrap_err().kind, Kind::Device);
        let unlimited = args(&["--utilization", "50", "--memory-limit", "none"]);
        let e = plan(&unlimited, Some(&device(1000)), PAGE).unwrap_err();
        assert_eq!(e.kind, Kind::Usage);
    }

    #[test]
    fn tiny_sizes_are_refused() {
        for words in [["--memory-limit", "1M"], ["--size", "100"]] {
            assert_eq!(plan(&args(&words), None, PAGE).unwrap_err().kind, Kind::Usage);
        }
    }

    #[test]
    fn pages_are_adjusted_to_the_live_blocks() {
        let plan = Plan {
            pages: 60_000,
            max_pages: 70_000,
            limit: Some(1 << 26),
            live_target: Some(50_000),
        };
        assert_eq!(adjusted(&plan, 60_000, 49_900), None);
        assert_eq!(adjusted(&plan, 60_000, 48_000), Some(62_000));
        assert_eq!(adjusted(&plan, 60_000, 51_000), Some(59_000));
        assert_eq!(adjusted(&plan, 60_000, 10_000), Some(70_000));
        assert_eq!(adjusted(&plan, 70_000, 10_000), None);
    }

    #[test]
    fn space_is_checked() {
        let area = |mib: u64, used: u64| Area {
            path: "/dev/znsage0".into(),
            bytes: mib << 20,
            used_bytes: used << 20,
            priority: 0,
        };
        let plan = plan(&args(&["--memory-limit", "64M"]), None, PAGE).unwrap();
        let check = |areas: &[Area], available_mib: u64| {
            check_space(&plan, areas, available_mib << 20, PAGE)
        };
        assert!(check(&[area(100, 0), area(100, 8)], 1000).is_ok());
        let e = check(&[area(200, 10)], 1000).unwrap_err();
        assert_eq!(e.kind, Kind::Space);
        assert_eq!(e.message, "192 MiB must be swapped out, but 190 MiB of swap are free");
        assert!(check(&[area(1000, 0)], 32).is_err());
    }
}
