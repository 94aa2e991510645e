// Loads of devices, progress and table of methods.

const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "6 3", "2 3"];

function svg(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A bar of [colour, share] pieces with a black mark. */
function bar(pieces, mark) {
  const drawn = element("div", "");
  let at = 0;
  for (const [colour, share] of pieces) {
    const piece = element("i", "");
    piece.style.cssText = `left:${100 * at}%;width:${100 * Math.min(share, 1 - at)}%;background:${colour}`;
    drawn.append(piece);
    at = Math.min(1, at + share);
  }
  if (mark !== null && mark <= 1) {
    const line = element("u", "");
    line.style.left = `calc(${100 * mark}% - 2px)`;
    drawn.append(line);
  }
  return element("td", "bar", drawn);
}

/** One row a device: time beside the value of the plan, memory beside what there is. */
function loadsTable(items) {
  const { plan } = items, loads = plan.loads;
  const longest = Math.max(plan.value || 0, ...loads.map((d) => Math.max(d.seconds || 0, d.link || 0)));
  const most = Math.max(1, ...loads.map((d) => Math.max(d.weights, d.peak)));
  const hasLinks = loads.some((d) => d.link);
  const head = ["", "time", "", ...(hasLinks ? ["link to the next"] : []), "memory", "", "operators"];
  const rows = loads.map((load, d) => {
    const capacity = load.capacity && load.capacity < 10 * most ? load.capacity : null;
    const scale = Math.max(most, capacity || 0);
    return element("tr", "",
      element("td", "", ...devicePart(items, d)),
      bar([[deviceColour(d, items.devices), (load.seconds || 0) / longest]], plan.value / longest),
      element("td", "", secondsText(load.seconds)),
      ...(hasLinks ? [element("td", "", secondsText(load.link))] : []),
      bar([["#009e73", load.weights / scale], ["#56b4e9", Math.max(load.peak - load.weights, 0) / scale]], capacity ? capacity / scale : null),
      element("td", "", `${bytesText(Math.max(load.peak, load.weights))} of ${bytesText(load.capacity)}`),
      element("td", "", load.operators.toLocaleString("en")));
  });
  return element("table", "loads", element("tr", "", ...head.map((text) => element("td", "", text))), ...rows);
}

/**
 * Scale of the distance from the best value, logarithmic: methods that end close together stay
 * apart, and what is more than ten times as slow is cut off at the upper edge.
 */
function distanceScale(values, best, top, height) {
  const away = values.map((v) => v / best - 1).filter((d) => d > 1e-9 && d < 9);
  const room = values.some((v) => v / best - 1 >= 9) ? 2 : 1.15; // what is cut off lies apart
  const low = Math.max(1e-6, Math.min(0.1, ...away)) / 2, high = Math.min(9, Math.max(10 * low, ...away)) * room;
  const floor = 0.9 * height; // the best itself, whose distance has no logarithm
  return {
    low, high,
    y: (value) => {
      const d = value / best - 1;
      if (d <= low) return top + height - (d <= 1e-9 ? 0 : (height - floor) / 2);
      return top + floor * (1 - Math.log(Math.min(d, high) / low) / Math.log(high / low));
    },
  };
}

/** Best value so far of each method. `axis`: 0, priced samples, or 1, seconds. */
function curvesChart(plan, axis, hot) {
  const { methods } = plan, width = 780, height = 330, left = 70, right = 230, top = 14, below = 40;
  const finals = methods.values.filter((v) => v);
  const best = Math.min(...finals);
  const ends = methods.names.map((_, i) => Math.max((axis ? methods.seconds : methods.samples)[i], axis ? 1e-3 : 1));
  const least = axis ? 1e-3 : 1, most = Math.max(10 * least, ...ends);
  const x = (at) => left + ((width - left - right) * Math.log(Math.max(at, least) / least)) / Math.log(most / least);
  const all = methods.curves.flat().map((p) => p[2]).filter((v) => v);
  const scale = distanceScale([...all, ...finals], best, top, height - top - below);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "curves" });
  drawAxes(drawn, { width, height, left, right, top, below, x, scale, least, most, axis, best, plan });
  methods.names.forEach((name, i) => {
    const points = methods.curves[i].filter((p) => p[2]);
    if (!points.length) return;
    const colour = deviceColour(i % 8, 8), dash = DASHES[Math.floor(i / 8) % 3];
    let path = "", last = null;
    for (const p of points) {
      path += last === null ? `M${x(p[axis])} ${scale.y(p[2])}` : `H${x(p[axis])}V${scale.y(p[2])}`;
      last = p;
    }
    path += `H${x(ends[i])}`;
    const line = svg("path", { d: path, fill: "none", stroke: colour, "stroke-dasharray": dash, "stroke-width": hot === name ? 4 : 1.8 });
    line.append(svg("title", {}, `${name}: ${secondsText(last[2])}, ${percentText(last[2] / best - 1)} above the best`));
    drawn.append(line, svg("circle", { cx: x(ends[i]), cy: scale.y(last[2]), r: 3, fill: colour }));
  });
  drawLegend(drawn, methods, width - right + 14, top, best);
  return drawn;
}

function drawAxes(drawn, at) {
  const bottom = at.height - at.below;
  for (let d = 1e-6; d <= 10; d *= 10) {
    for (const m of [1, 3]) {
      const share = d * m;
      if (share < at.scale.low || share > at.scale.high) continue;
      const y = at.scale.y(at.best * (1 + share));
      drawn.append(svg("line", { x1: at.left, x2: at.width - at.right, y1: y, y2: y, stroke: "#e3e6ea" }),
        svg("text", { x: at.left - 6, y: y + 4, "text-anchor": "end" }, `+${percentText(share)}`));
    }
  }
  drawn.append(svg("line", { x1: at.left, x2: at.width - at.right, y1: bottom, y2: bottom, stroke: "#647082" }),
    svg("text", { x: at.left - 6, y: bottom + 4, "text-anchor": "end" }, "best"));
  for (let t = at.least; t <= at.most * 1.001; t *= 10) {
    drawn.append(svg("text", { x: at.x(t), y: bottom + 16, "text-anchor": "middle" }, at.axis ? secondsText(t) : t.toLocaleString("en")));
  }
  drawn.append(svg("text", { x: at.left, y: at.height - 6 }, `${at.axis ? "seconds of search" : "priced samples"} (log) – up: ${at.plan.valueName} above the best found, ${secondsText(at.best)} (log)`));
}

function drawLegend(drawn, methods, x, top, best) {
  const order = methods.names.map((_, i) => i).sort((a, b) => (methods.values[a] || Infinity) - (methods.values[b] || Infinity));
  order.slice(0, 22).forEach((i, row) => {
    const y = top + 6 + 14 * row, away = methods.values[i] ? methods.values[i] / best - 1 : null;
    const text = away === null ? "no plan" : away < 1e-9 ? "best" : `+${percentText(away)}`;
    drawn.append(svg("line", { x1: x, x2: x + 18, y1: y, y2: y, stroke: deviceColour(i % 8, 8), "stroke-width": 3, "stroke-dasharray": DASHES[Math.floor(i / 8) % 3] }),
      svg("text", { x: x + 23, y: y + 4 }, `${shortened(methods.names[i], 22)} ${text}`));
  });
}

function methodsTable(plan, hover) {
  const { methods } = plan;
  const head = element("tr", "", ...methods.heads.map((text) => element("th", "", text)));
  const rows = methods.cells.map((cells, i) => {
    const row = element("tr", methods.names[i] === plan.method ? "best" : "", ...cells.map((text) => element("td", "", text)));
    row.onmouseenter = () => hover(methods.names[i]);
    return row;
  });
  return element("table", "table", head, ...rows);
}
