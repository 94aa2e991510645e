// The graph on a canvas: blocks open as they get large, and close as they get small.

const READABLE = 12, READABLE_BLOCK = 36; // pixels of height from which an operator, a block is drawn
const LARGE = 0.4; // share of the view from which a block is open, however small what it holds
const MOST_SCALE = 4;

/** What part of the drawing is shown; shared by two plans side by side. */
class Camera {
  constructor() {
    this.x = 0; this.y = 0; this.scale = 1;
    this.views = [];
    this.isMoved = false;
  }

  changed() { for (const view of this.views) view.redraw(); }

  zoom(factor, x, y) {
    const scale = Math.min(Math.max(this.scale * factor, this.least()), MOST_SCALE);
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.isMoved = true;
    this.changed();
  }

  least() { return 0.5 * this.fitting(this.views[0].boxOf(this.views[0].root)).scale; }

  pan(dx, dy) { this.x += dx; this.y += dy; this.isMoved = true; this.changed(); }

  /** Camera on which a box fills the view. */
  fitting([x, y, w, h], most = MOST_SCALE / 2) {
    const view = this.views[0], scale = Math.min((0.96 * view.width) / w, (0.96 * view.height) / h, most);
    return { scale, x: view.width / 2 - scale * (x + w / 2), y: view.height / 2 - scale * (y + h / 2) };
  }

  /** Move there in a quarter of a second. */
  glide(target) {
    const from = { scale: this.scale, x: this.x, y: this.y };
    let start = null;
    this.isMoved = true;
    const frame = (now) => {
      start = start === null ? now : start;
      const t = Math.min(1, (now - start) / 250), ease = t * t * (3 - 2 * t);
      for (const key of ["scale", "x", "y"]) this[key] = from[key] + ease * (target[key] - from[key]);
      this.changed();
      if (t < 1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }
}

class GraphView {
  /** `hooks`: hover(item or null, event) and select(item or null). */
  constructor(canvas, graph, items, camera, hooks) {
    Object.assign(this, { canvas, graph, items, camera, hooks });
    this.nodes = graph.types.length;
    this.root = this.nodes;
    this.mode = "device";
    this.moved = null;
    this.selected = null;
    this.matches = null;
    this.linesOf = graph.children.map(() => []);
    for (let i = 0; i < graph.lines.length; i += 2) this.linesOf[graph.parent[graph.lines[i]]].push(i);
    this.typical = graph.children.map((held) => this.typicalHeight(held));
    camera.views.push(this);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  boxOf(item) { return this.graph.box.slice(4 * item, 4 * item + 4); }

  /** Median height of what a block holds, over the height at which that can be read. */
  typicalHeight(held) {
    const heights = held.map((i) => this.graph.box[4 * i + 3] / (i < this.nodes ? READABLE : READABLE_BLOCK));
    return heights.sort((a, b) => a - b)[heights.length >> 1] || 0;
  }

  /** Open: what holds everything, what can be read, and what fills most of the view. */
  isOpen(item) {
    if (item < this.nodes) return false;
    if (item === this.root || this.typical[item - this.nodes] * this.camera.scale >= 1) return true;
    const [, , w, h] = this.screenBox(item);
    return w > LARGE * this.width || h > LARGE * this.height;
  }

  screenBox(item) {
    const { scale, x, y } = this.camera, box = this.graph.box, at = 4 * item;
    return [box[at] * scale + x, box[at + 1] * scale + y, box[at + 2] * scale, box[at + 3] * scale];
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth; this.height = this.canvas.clientHeight;
    if (!this.width) return;
    this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!this.camera.isMoved) Object.assign(this.camera, this.camera.fitting(this.boxOf(this.root)));
    this.redraw();
  }

  redraw() {
    if (this.isWaiting || !this.context) return;
    this.isWaiting = true;
    requestAnimationFrame(() => { this.isWaiting = false; this.draw(); });
  }

  draw() {
    this.context.clearRect(0, 0, this.width, this.height);
    this.drawn = 0;
    this.drawInside(this.root);
    if (this.selected !== null) this.drawSelection();
  }

  isVisible([x, y, w, h]) { return x < this.width && y < this.height && x + w > 0 && y + h > 0; }

  drawInside(block) {
    for (const i of this.linesOf[block - this.nodes]) this.drawLine(i);
    for (const child of this.graph.children[block - this.nodes]) {
      const box = this.screenBox(child);
      if (!this.isVisible(box)) continue;
      this.drawn++;
      if (this.isOpen(child)) { this.drawFrame(child, box); this.drawInside(child); }
      else this.drawItem(child, box);
    }
  }

  drawLine(i) {
    const [from, to] = [this.graph.lines[i], this.graph.lines[i + 1]];
    const a = this.screenBox(from), b = this.screenBox(to);
    const left = Math.min(a[0], b[0]), top = Math.min(a[1], b[1]);
    const right = Math.max(a[0] + a[2], b[0] + b[2]), bottom = Math.max(a[1] + a[3], b[1] + b[3]);
    if (!this.isVisible([left, top, right - left, bottom - top])) return;
    this.context.strokeStyle = this.isCrossing(from, to) ? "#4a5568" : "#b9c1cc";
    this.context.lineWidth = 0.6 + 0.25 * Math.log10(1 + this.graph.lineBytes[i / 2] / 1e3);
    this.curve(a, b);
  }

  /** Down from one box to the other, or sideways to one that is not below. */
  curve(a, b) {
    const c = this.context, isBelow = b[1] >= a[1] + a[3] - 1, isRight = b[0] + b[2] / 2 > a[0] + a[2] / 2;
    c.beginPath();
    if (isBelow) {
      const x = a[0] + a[2] / 2, y = a[1] + a[3], toX = b[0] + b[2] / 2, toY = b[1], bend = Math.max((toY - y) / 2, 4);
      c.moveTo(x, y);
      c.bezierCurveTo(x, y + bend, toX, toY - bend, toX, toY);
    } else {
      const x = isRight ? a[0] + a[2] : a[0], toX = isRight ? b[0] : b[0] + b[2];
      const y = a[1] + a[3] / 2, toY = b[1] + b[3] / 2, bend = (isRight ? 1 : -1) * Math.max(Math.abs(toX - x) / 2, 6);
      c.moveTo(x, y);
      c.bezierCurveTo(x + bend, y, toX - bend, toY, toX, toY);
    }
    c.stroke();
  }

  isCrossing(from, to) {
    const a = this.mainDevice(from), b = this.mainDevice(to);
    return a >= 0 && b >= 0 && a !== b;
  }

  mainDevice(item) {
    if (item < this.nodes) return this.items.plan.device[item];
    const shares = this.items.shares[item - this.nodes];
    return shares.length ? shares.reduce((a, b) => (b[1] > a[1] ? b : a))[0] : -1;
  }

  drawFrame(item, [x, y, w, h]) {
    const c = this.context;
    c.fillStyle = "#5b6b8010";
    c.strokeStyle = "#8c97a8";
    c.lineWidth = 1;
    c.fillRect(x, y, w, h);
    c.strokeRect(x, y, w, h);
    const head = Math.min(...this.graph.children[item - this.nodes].map((child) => this.screenBox(child)[1])) - y;
    if (head >= 11) this.text(this.fitted(this.graph.names[item], w - 10), x + 5, Math.max(y, 0) + Math.min(head / 2, 11), "#47525f");
  }

  drawItem(item, [x, y, w, h]) {
    const c = this.context;
    let at = x;
    for (const [colour, share] of this.items.stripes(item, this.mode, this.moved)) {
      c.fillStyle = colour;
      c.fillRect(at, y, Math.max(share * w, 0.5), h);
      at += share * w;
    }
    const matched = this.matches ? this.matches[item] : 0;
    if (this.matches && !matched) { c.fillStyle = "#ffffffb0"; c.fillRect(x, y, w, h); }
    if (w > 5) {
      c.strokeStyle = matched ? "#c2188b" : item < this.nodes ? "#0004" : "#000a";
      c.lineWidth = matched ? 3 : 1;
      c.strokeRect(x, y, w, h);
    }
    if (h >= 10 && w >= 24) this.label(item, x, y, w, h);
  }

  label(item, x, y, w, h) {
    const isBlock = item >= this.nodes, name = this.graph.names[item];
    const short = isBlock ? name : this.graph.types[item];
    const lines = isBlock
      ? [short, `${this.items.operators[item].toLocaleString("en")} ${w < 90 ? "ops" : "operators"}`, secondsText(this.items.seconds[item])]
      : [short, name.slice(name.lastIndexOf("/") + 1)];
    const shown = lines.slice(0, Math.max(1, Math.floor((h - 2) / 14)));
    const high = 14 * shown.length, top = y + (h - high) / 2;
    const written = shown.map((line) => this.fitted(line, w - 9));
    if (!written[0]) return;
    const wide = Math.max(...written.map((line) => this.context.measureText(line).width));
    this.context.fillStyle = "#ffffffd0";
    this.context.fillRect(x + 2, Math.max(top, y + 1), Math.min(w - 4, wide + 6), Math.min(high, h - 2));
    written.forEach((line, i) => this.text(line, x + 5, top + 7 + 14 * i, i ? "#47525f" : "#111"));
  }

  /** The text, shortened to a width in pixels. */
  fitted(text, width) {
    this.context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    const wide = this.context.measureText(text).width;
    return wide <= width ? text : shortened(text, Math.floor((text.length * width) / wide) - 1);
  }

  text(text, x, y, colour) {
    this.context.textBaseline = "middle";
    this.context.fillStyle = colour;
    this.context.fillText(text, x, y);
  }

  /** The item itself, or the closed block around it. */
  shown(item) {
    let found = item;
    for (let up = item; up !== this.root; up = this.nodes + this.graph.parent[up]) if (up !== item && !this.isOpen(up)) found = up;
    return found;
  }

  drawSelection() {
    const c = this.context, { senders, receivers } = this.graph;
    if (this.selected < this.nodes) {
      c.lineWidth = 2.2;
      for (let e = 0; e < senders.length; e++) {
        if (senders[e] !== this.selected && receivers[e] !== this.selected) continue;
        const ends = [this.shown(senders[e]), this.shown(receivers[e])];
        if (ends[0] === ends[1]) continue;
        c.strokeStyle = receivers[e] === this.selected ? "#0b5cad" : "#d55e00";
        this.curve(this.screenBox(ends[0]), this.screenBox(ends[1]));
      }
    }
    c.strokeStyle = "#c2188b";
    c.lineWidth = 3;
    c.strokeRect(...this.screenBox(this.shown(this.selected)));
  }

  /** The innermost item that is drawn at a point of the canvas. */
  at(x, y) {
    let block = this.root, found = null;
    for (;;) {
      const inside = this.graph.children[block - this.nodes].find((child) => {
        const [left, top, w, h] = this.screenBox(child);
        return x >= left && x <= left + w && y >= top && y <= top + h;
      });
      if (inside === undefined) return found;
      found = inside;
      if (!this.isOpen(inside)) return found;
      block = inside;
    }
  }

  /** Show an item large enough to be read: operators with what is around them. */
  focus(item) {
    const around = item < this.nodes ? this.nodes + this.graph.parent[item] : item;
    const target = this.camera.fitting(this.boxOf(around));
    if (item < this.nodes && target.scale * this.typical[around - this.nodes] < 1) {
      const [x, y, w, h] = this.boxOf(item);
      target.scale = 1.2 / this.typical[around - this.nodes];
      target.x = this.width / 2 - target.scale * (x + w / 2);
      target.y = this.height / 2 - target.scale * (y + h / 2);
    }
    this.camera.glide(target);
  }

  listen() {
    let held = null;
    const place = (event) => [event.offsetX, event.offsetY];
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.camera.zoom(Math.exp(-event.deltaY * 0.0015), ...place(event));
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => { held = { at: place(event), moved: false }; });
    this.canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (!held) return this.hooks.hover(this.at(x, y), event);
      const dx = x - held.at[0], dy = y - held.at[1];
      if (!held.moved && Math.hypot(dx, dy) < 4) return undefined;
      Object.assign(held, { moved: true, at: [x, y] });
      return this.camera.pan(dx, dy);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const wasClick = held && !held.moved;
      held = null;
      if (wasClick) this.click(this.at(...place(event)));
    });
    this.canvas.addEventListener("pointerleave", () => { held = null; this.hooks.hover(null); });
    this.canvas.addEventListener("dblclick", (event) => {
      if (this.at(...place(event)) === null) this.camera.glide(this.camera.fitting(this.boxOf(this.root)));
    });
  }

  click(item) {
    if (item !== null && item >= this.nodes && !this.isOpen(item)) this.focus(item);
    this.hooks.select(item);
  }
}
