// SPDX-License-Identifier: GPL-2.0-only
//! Records a run and replays it in the simulator, which has the same engine: the WAFs must
//! agree.

use std::fs;
use std::path::Path;

use super::devices::MAIN;
use crate::device::{znsage_json, Device};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};

crate::cases![trace: simulated_waf (full)];

const TRACEFS: &str = "/sys/kernel/tracing";

fn simulated_waf(_: &mut Log) -> Outcome {
    if !Path::new(TRACEFS).join("instances").exists() {
        guest::ok(&["mount", "-t", "tracefs", "nodev", TRACEFS])?;
    }
    let device = Device::on(&guest::device(MAIN)?, &["--chunk", "128K"])?;
    let file = format!("/tmp/trace-{}.gz", std::process::id());
    let bench = guest::without_read_ahead(|| {
        device.bench(&[
            "--utilization",
            "70",
            "--rewrites",
            "1.2",
            "--seconds",
            "120",
            "--warmup",
            "2",
            "--trace",
            &file,
        ])
    })?;
    let size = device.counter("blocks_total")? * 4096;
    let left = fs::read_dir(format!("{TRACEFS}/instances")).context("instances")?.count();
    ensure!(left == 0, "{left} instances of tracefs were left behind");
    device.finish_sound()?;

    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut arguments = vec!["sim".into(), "run".into(), "--device".into(), "zn540".into()];
    arguments.extend(["--size".into(), size.to_string(), "--trace".into(), file.clone()]);
    for setting in [
        "device.zoned.zone_size=128 KiB",
        "device.zoned.zone_capacity=128 KiB",
        "device.zoned.max_append=128 KiB",
        "device.zoned.max_open=0",
        "device.zoned.max_active=0",
        "znsage.chunk=128K",
        "run.shadow=true",
        &format!("host.cpus={cpus}"),
    ] {
        arguments.extend(["--set".into(), setting.to_string()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let simulated = znsage_json(&arguments)?["result"]["waf"]["total"].as_f64().unwrap_or(0.0);
    fs::remove_file(&file).context(&file)?;
    let measured = bench.waf();
    print!("WAF {measured:.3}, simulated {simulated:.3} ... ");
    let off = (simulated / measured - 1.0).abs();
    ensure!(off < 0.03, "simulated {simulated:.3}, measured {measured:.3}");
    Ok(())
}
