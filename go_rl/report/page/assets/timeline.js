// One iteration: a row for each engine, link or device.

const KIND_COLOURS = { matmul: "#0072b2", convolution: "#cc79a7", elementwise: "#009e73", reduction: "#e69f00",
  movement: "#56b4e9", gather: "#f0e442", control: "#000000", transfer: "#d55e00" };
const ROW = 20, LABEL = 110, AXIS = 20, THINNEST = 0.35;

class TimelineView {
  constructor(frame, graph, items, hooks) {
    Object.assign(this, { frame, graph, items, hooks });
    this.times = items.plan.timetable;
    this.start = 0; this.length = this.times.length || 1;
    this.canvas = element("canvas", "");
    frame.append(this.canvas);
    this.height = ROW * this.times.rows.length + AXIS;
    this.canvas.style.height = `${this.height}px`;
    frame.style.height = `${Math.min(this.height + 4, 420)}px`;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(frame);
  }

  colour(i) { return KIND_COLOURS[this.times.kinds[this.times.kind[i]]] || "#8a8f98"; }

  toX(seconds) { return LABEL + ((seconds - this.start) / this.length) * (this.width - LABEL - 8); }

  draw() {
    const ratio = window.devicePixelRatio || 1, c = this.canvas.getContext("2d");
    this.width = this.canvas.clientWidth;
    if (!this.width) return;
    this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    c.textBaseline = "middle";
    this.drawRows(c);
    c.save();
    c.beginPath();
    c.rect(LABEL, 0, this.width, this.height);
    c.clip();
    for (let i = 0; i < this.times.row.length; i++) this.drawBar(c, i);
    c.restore();
    this.drawAxis(c);
  }

  drawRows(c) {
    this.times.rows.forEach(([label, device], row) => {
      c.fillStyle = "#f5f6f8";
      c.fillRect(LABEL, row * ROW + 2, this.width, ROW - 4);
      c.fillStyle = deviceColour(device, this.items.devices);
      c.fillRect(2, row * ROW + 5, 8, ROW - 10);
      c.fillStyle = "#1c2430";
      c.fillText(shortened(label, 16), 14, row * ROW + ROW / 2);
    });
  }

  drawBar(c, i) {
    const x = this.toX(this.times.start[i]), w = this.toX(this.times.start[i] + this.times.seconds[i]) - x;
    if (x > this.width || x + w < LABEL) return;
    const y = this.times.row[i] * ROW + 2, isHere = this.selected !== null && this.times.node[i] === this.selected;
    c.fillStyle = isHere ? "#c2188b" : this.colour(i);
    c.fillRect(x, y, Math.max(w - (w > 3 ? 0.5 : 0), THINNEST), ROW - 4);
    if (w > 40 && this.times.node[i] >= 0) {
      c.fillStyle = "#fff";
      c.fillText(shortened(this.graph.types[this.times.node[i]], Math.floor((w - 6) / 6.2)), x + 3, y + ROW / 2 - 2);
    }
  }

  drawAxis(c) {
    const y = ROW * this.times.rows.length, step = niceStep(this.length / 8);
    c.fillStyle = "#47525f";
    for (let t = Math.ceil(this.start / step) * step; t <= this.start + this.length * 1.0001; t += step) {
      c.fillRect(this.toX(t), y, 1, 4);
      c.fillText(secondsText(Number(t.toPrecision(6))), this.toX(t) - 12, y + 12);
    }
  }

  at(x, y) {
    const row = Math.floor(y / ROW), { times } = this;
    for (let i = times.row.length - 1; i >= 0; i--) {
      if (times.row[i] !== row) continue;
      const left = this.toX(times.start[i]), right = this.toX(times.start[i] + times.seconds[i]);
      if (x >= left - 0.5 && x <= right + 0.5) return i;
    }
    return null;
  }

  select(node) { this.selected = node; this.draw(); }

  listen() {
    let held = null;
    this.selected = null;
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom(Math.exp((event.deltaY || event.deltaX) * 0.002), event.offsetX);
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => { held = { x: event.offsetX, moved: false }; });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!held) return this.hooks.bar(this, this.at(event.offsetX, event.offsetY), event);
      const dx = event.offsetX - held.x;
      if (!held.moved && Math.abs(dx) < 4) return undefined;
      Object.assign(held, { moved: true, x: event.offsetX });
      return this.move(this.start - (dx / (this.width - LABEL)) * this.length);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const found = held && !held.moved ? this.at(event.offsetX, event.offsetY) : null;
      held = null;
      if (found !== null && this.times.node[found] >= 0) this.hooks.select(this.times.node[found]);
    });
    this.canvas.addEventListener("pointerleave", () => { held = null; this.hooks.bar(this, null); });
  }

  zoom(factor, x) {
    const at = this.start + ((x - LABEL) / (this.width - LABEL)) * this.length;
    const length = Math.min(this.times.length, this.length * factor);
    const start = at - ((at - this.start) * length) / this.length;
    this.length = length;
    this.move(start);
  }

  move(start) {
    this.start = Math.min(Math.max(start, 0), this.times.length - this.length);
    this.draw();
  }
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((m) => m * power >= least * 0.999);
}
