// SPDX-License-Identifier: GPL-2.0-only
// Charts that answer: the value of the point nearest to the pointer, and
// series that the legend hides and shows. What it needs stands in the pictures
// (src/chart/layers.rs).
"use strict";

// From here on, in pixels of the screen, a point is too far away to be meant.
const REACH = 48;

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

function chart(svg) {
  const series = [...svg.querySelectorAll("g.series")];
  const ring = document.createElementNS(svg.namespaceURI, "circle");
  const shown = (group) => !group.classList.contains("off");
  const points = series.flatMap((group) =>
    JSON.parse(group.dataset.points).map(([x, y, foot, right, up]) => ({ group, x, y, foot, right, up })));

  ring.setAttribute("class", "ring");
  ring.setAttribute("r", 24);
  svg.append(ring);
  // What can be operated is more than an image.
  svg.setAttribute("role", "group");

  function nearest(event) {
    const matrix = svg.getScreenCTM();
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    // A bar is near all along.
    const far = (p) => Math.hypot(p.x - at.x, at.y - Math.min(Math.max(at.y, p.y), p.foot));
    const best = points.filter((p) => shown(p.group)).reduce((a, b) => (a && far(a) <= far(b) ? a : b), null);
    return best && far(best) * matrix.a <= REACH ? best : null;
  }

  function tell(event) {
    const point = nearest(event);
    tip.hidden = !point;
    ring.classList.toggle("on", Boolean(point));
    if (!point) return;
    ring.setAttribute("cx", point.x);
    ring.setAttribute("cy", point.y);
    const named = (axis, value) => (axis ? `${axis}: ${value}` : value);
    tip.textContent = [point.group.dataset.label, named(svg.dataset.x, point.right), named(svg.dataset.y, point.up)].join("\n");
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 4);
    const top = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${top}px`;
  }

  function hush() {
    tip.hidden = true;
    ring.classList.remove("on");
  }

  function legend(key) {
    const group = series[key.dataset.series];
    const press = () => {
      const on = !group.classList.toggle("off");
      key.classList.toggle("off", !on);
      key.setAttribute("aria-pressed", on);
      // Differences are of two series; without one they say nothing.
      svg.querySelector("g.between")?.classList.toggle("off", !series.every(shown));
      hush();
    };
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", 0);
    key.setAttribute("aria-pressed", true);
    key.setAttribute("aria-label", group.dataset.label);
    key.addEventListener("click", press);
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      press();
    });
  }

  svg.querySelectorAll("g.key").forEach(legend);
  svg.addEventListener("pointermove", tell);
  svg.addEventListener("pointerdown", tell);
  svg.addEventListener("pointerleave", hush);
}

document.querySelectorAll(".picture svg").forEach(chart);
