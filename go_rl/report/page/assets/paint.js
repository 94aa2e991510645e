// What an operator or block is coloured by. An item is an operator, or a block after all operators.

const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#7f7f7f"];
const NOWHERE = "#e3e6ea";
const MODES = ["device", "seconds", "slack", "memory"];

/** Okabe and Ito's colours for few devices; around the colour wheel in two shades for many. */
function deviceColour(device, count) {
  if (device < 0) return NOWHERE;
  if (count <= PALETTE.length) return PALETTE[device];
  return `hsl(${Math.round((360 * device) / count)} 65% ${device % 2 ? 45 : 62}%)`;
}

/** From pale yellow (0) over orange to dark purple (1). */
function heatColour(share) {
  const stops = [[255, 247, 206], [253, 187, 99], [222, 73, 89], [84, 13, 100]];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const mix = stops[low].map((c, i) => Math.round(c + (at - low) * (stops[low + 1][i] - c)));
  return `rgb(${mix.join(",")})`;
}

/** Sums over what each item holds, under one plan. */
class PlanItems {
  constructor(graph, plan) {
    this.graph = graph;
    this.plan = plan;
    this.devices = plan.loads.length;
    const count = graph.names.length, nodes = graph.types.length;
    this.operators = new Float64Array(count);
    this.seconds = new Float64Array(count);
    this.memory = new Float64Array(count);
    this.slack = new Float64Array(count).fill(Infinity);
    this.shares = [];
    for (let n = 0; n < nodes; n++) {
      this.operators[n] = 1;
      this.seconds[n] = plan.seconds[n] || 0;
      this.memory[n] = (plan.weights[n] || 0) + (plan.results[n] || 0);
      this.slack[n] = plan.slack[n] === null ? Infinity : plan.slack[n];
    }
    const byDevice = graph.children.map(() => new Map());
    for (let block = graph.children.length - 1; block >= 0; block--) {
      this.add(block, nodes, byDevice);
    }
    this.scales = { seconds: this.scale(this.seconds), memory: this.scale(this.memory), slack: this.scale(this.slack) };
  }

  add(block, nodes, byDevice) {
    const item = nodes + block, own = byDevice[block];
    for (const child of this.graph.children[block]) {
      this.operators[item] += this.operators[child];
      this.seconds[item] += this.seconds[child];
      this.memory[item] += this.memory[child];
      this.slack[item] = Math.min(this.slack[item], this.slack[child]);
      if (child >= nodes) {
        for (const [device, share] of byDevice[child - nodes]) own.set(device, (own.get(device) || 0) + share);
      } else if (this.plan.device[child] >= 0) {
        // Operators that take no time count a little, so that a block of them has a colour.
        const device = this.plan.device[child];
        own.set(device, (own.get(device) || 0) + this.seconds[child] + 1e-15);
      }
    }
    const sum = [...own.values()].reduce((a, b) => a + b, 0);
    this.shares[block] = [...own].map(([device, part]) => [device, part / sum]).sort((a, b) => a[0] - b[0]);
  }

  /** Least and largest positive number, for a logarithmic scale. */
  scale(values) {
    let low = Infinity, high = 0;
    for (const value of values) {
      if (value > 0 && value < Infinity) { low = Math.min(low, value); high = Math.max(high, value); }
    }
    return low < Infinity ? [low, high] : [1, 1];
  }

  /** Stripes [colour, share] of an item. */
  stripes(item, mode, moved) {
    const nodes = this.graph.types.length;
    if (mode === "moved") {
      const share = moved[item] / this.operators[item];
      return share ? [["#c2188b", share], [NOWHERE, 1 - share]] : [[NOWHERE, 1]];
    }
    if (mode === "device") {
      if (item < nodes) return [[deviceColour(this.plan.device[item], this.devices), 1]];
      const shares = this.shares[item - nodes];
      return shares.length ? shares.map(([d, share]) => [deviceColour(d, this.devices), share]) : [[NOWHERE, 1]];
    }
    return [[this.heat(this[mode][item], this.scales[mode], mode === "slack"), 1]];
  }

  /** Little slack is hot; much of everything else is. */
  heat(value, [low, high], little) {
    if (value === Infinity || (value <= 0 && !little)) return NOWHERE;
    if (value <= 0) return heatColour(1);
    const share = high > low ? Math.log(value / low) / Math.log(high / low) : 1;
    return heatColour(little ? 0.85 * (1 - share) : share);
  }
}

/** Operators of each item whose device differs between two plans. */
function movedOperators(graph, first, second) {
  const nodes = graph.types.length, moved = new Float64Array(graph.names.length);
  for (let n = 0; n < nodes; n++) moved[n] = first.device[n] === second.device[n] ? 0 : 1;
  for (let block = graph.children.length - 1; block >= 0; block--) {
    for (const child of graph.children[block]) moved[nodes + block] += moved[child];
  }
  return moved;
}
