// What is known about one operator or block.

const MOST_NEIGHBOURS = 8;

/** Rows about an item under one plan; `short`: for the box beside the pointer. */
function itemRows(graph, items, item, short, go) {
  return item < graph.types.length ? nodeRows(graph, items, item, short, go) : blockRows(graph, items, item);
}

function nodeRows(graph, items, node, short, go) {
  const plan = items.plan, rows = [];
  rows.push(fact("operator", `${graph.types[node]}${graph.shapes[node] ? `, ${graph.shapes[node]}` : ""}`));
  if (graph.sources[node]) rows.push(fact("from", graph.sources[node]));
  rows.push(fact(plan.word, ...devicePart(items, plan.device[node]), copiesText(plan, node)));
  rows.push(fact("costs", costText(plan, node)));
  if (!short && graph.flops[node]) rows.push(fact("work", flopsText(graph.flops[node])));
  rows.push(fact("holds", `${bytesText(plan.weights[node])} weights, ${bytesText(plan.results[node])} results`));
  if (plan.slack[node] !== null) rows.push(fact("slack", secondsText(plan.slack[node])));
  const kernel = kernelText(plan, node);
  if (kernel) rows.push(fact("kernel", kernel));
  for (const [device, hindrance, reason] of plan.moves[node]) {
    const name = plan.hindrances[hindrance], tag = name === "nothing" ? "free" : name;
    rows.push(fact(`to ${plan.word} ${device}`, element("span", `tag ${name}`, tag), ` ${reason}`));
  }
  if (!plan.moves[node].length) {
    rows.push(fact("moves", plan.device[node] < 0 ? "runs nowhere: it is there before the iteration" : "there is no other device"));
  }
  return short ? rows : [...rows, ...neighbourRows(graph, node, go)];
}

function devicePart(items, device) {
  if (device < 0) return ["none"];
  const swatch = element("span", "swatch");
  swatch.style.background = deviceColour(device, items.devices);
  return [swatch, `${device} (${items.plan.loads[device].kind})`];
}

function copiesText(plan, node) {
  const copies = plan.copies[node];
  return copies ? `, copies on ${copies.join(", ")}` : "";
}

function costText(plan, node) {
  const seconds = plan.seconds[node], load = plan.device[node] < 0 ? 0 : plan.loads[plan.device[node]].seconds;
  return secondsText(seconds) + (seconds && load ? `, ${percentText(seconds / load)} of its ${plan.word}` : "");
}

function kernelText(plan, node) {
  if (!plan.kernel) return "";
  let members = 0;
  for (const leader of plan.kernel) if (leader === plan.kernel[node]) members++;
  return members > 1 ? `fused with ${members - 1} more` : "alone";
}

function neighbourRows(graph, node, go) {
  const inputs = [], outputs = [];
  for (let e = 0; e < graph.senders.length; e++) {
    if (graph.receivers[e] === node) inputs.push([graph.senders[e], graph.edgeBytes[e]]);
    if (graph.senders[e] === node) outputs.push([graph.receivers[e], graph.edgeBytes[e]]);
  }
  const links = (ends) => {
    const shown = ends.slice(0, MOST_NEIGHBOURS).map(([other, bytes]) => {
      const link = element("a", "item", graph.names[other]);
      link.onclick = () => go(other);
      return element("div", "", link, ` ${bytesText(bytes)}`);
    });
    if (ends.length > MOST_NEIGHBOURS) shown.push(`and ${ends.length - MOST_NEIGHBOURS} more`);
    return shown.length ? shown : ["none"];
  };
  return [fact("inputs", ...links(inputs)), fact("readers", ...links(outputs))];
}

function blockRows(graph, items, item) {
  const block = item - graph.types.length, shares = [...items.shares[block]].sort((a, b) => b[1] - a[1]);
  const parts = shares.slice(0, 12).map(([device, share]) => element("div", "", ...devicePart(items, device), ` ${percentText(share)}`));
  if (shares.length > 12) parts.push(`and ${shares.length - 12} more`);
  return [
    fact("operators", items.operators[item].toLocaleString("en")),
    fact("costs", secondsText(items.seconds[item])),
    fact("weights and results", bytesText(items.memory[item])),
    fact("least slack", items.slack[item] === Infinity ? "–" : secondsText(items.slack[item])),
    fact(`${items.plan.word}s by time`, ...parts),
  ];
}

/** The panel about the selected item, under every plan of the page. */
function fillDetails(panel, graph, plans, item, go) {
  panel.replaceChildren();
  if (item === null) {
    panel.append(element("p", "", "Click a block to open it, an operator to read about it here. Wheel: zoom. Drag: move. Double click beside everything: the whole graph."));
    return;
  }
  panel.append(element("h3", "", graph.names[item]));
  for (const items of plans) {
    if (plans.length > 1) panel.append(element("p", "", element("b", "", `plan ${items.plan.letter}`)));
    panel.append(element("table", "", ...itemRows(graph, items, item, false, go)));
  }
}
