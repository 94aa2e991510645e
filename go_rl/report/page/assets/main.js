// The page: builds its parts and ties them together.

const MOST_FOUND = 200;

function showPage(page, data) {
  const { graph, plans } = data;
  const items = plans.map((plan) => new PlanItems(graph, plan));
  page.append(element("h1", "", data.title), summary(plans));
  const state = graphStage(page, graph, items);
  for (const each of items) planSections(page, graph, each, items.length > 1, state);
  state.select(null);
  return state;
}

function summary(plans) {
  const table = element("table", "facts");
  if (plans.length > 1) table.append(element("tr", "head", element("th", "", ""), ...plans.map((p) => element("td", "", `plan ${p.letter}`))));
  const verdicts = plans.map((p) => element("td", "", element("span", `verdict ${p.verdict.ok ? "good" : "bad"}`, `${p.verdict.ok ? "accepted" : "rejected"}: ${p.verdict.text}`), ...p.verdict.violations.map((v) => element("div", "", v))));
  const names = [...new Set(plans.flatMap((p) => p.facts.map(([name]) => name)))];
  table.append(element("tr", "", element("th", "", "independent checker"), ...verdicts));
  for (const name of names) {
    const values = plans.map((p) => element("td", "", (p.facts.find(([other]) => other === name) || ["", "–"])[1]));
    table.append(element("tr", "", element("th", "", name), ...values));
  }
  const notes = [...new Set(plans.flatMap((p) => p.notes))].map((note) => element("li", "", note));
  return element("div", "", table, notes.length ? element("ul", "notes", ...notes) : null);
}

/** Search, colours and the graph under each plan; returns what other parts may do with it. */
function graphStage(page, graph, items) {
  const camera = new Camera(), tip = element("div", ""), details = element("div", "box details"), found = element("div", "box found");
  const legend = element("div", "legend"), views = element("div", "views");
  tip.id = "tip";
  const state = { views: [], times: [], selected: null, mode: "device", camera };
  const hooks = {
    hover: (item, event, owner) => showTip(tip, graph, owner, item, event),
    select: (item) => state.select(item),
  };
  state.select = (item) => {
    state.selected = item;
    for (const view of state.views) { view.selected = item; view.redraw(); }
    for (const time of state.times) time.select(item);
    fillDetails(details, graph, items, item, state.go);
  };
  state.go = (item) => { state.select(item); state.views[0].focus(item); };
  state.tip = (owner, item, event) => showTip(tip, graph, owner, item, event);
  page.append(tools(graph, items, state, legend, found), legend, element("div", "stage", views, element("div", "aside", found, details)), tip);
  for (const each of items) {
    const canvas = element("canvas", ""), frame = element("div", "view", canvas);
    if (items.length > 1) frame.append(element("b", "", `plan ${each.plan.letter}: ${each.plan.method}, ${secondsText(each.plan.value)}`));
    views.append(frame);
    const own = { ...hooks, hover: (item, event) => hooks.hover(item, event, each) };
    state.views.push(new GraphView(canvas, graph, each, camera, own));
  }
  const moved = items.length > 1 ? movedOperators(graph, items[0].plan, items[1].plan) : null;
  for (const view of state.views) view.moved = moved;
  state.colour = (mode) => {
    state.mode = mode;
    for (const view of state.views) { view.mode = mode; view.redraw(); }
    fillLegend(legend, items, mode, moved);
  };
  state.colour("device");
  return state;
}

function tools(graph, items, state, legend, found) {
  const search = element("input", "");
  search.type = "search";
  search.placeholder = "search operators, types, source lines";
  search.id = "search";
  search.oninput = () => searchGraph(graph, state, search.value, found);
  search.onkeydown = (event) => { if (event.key === "Enter" && found.firstChild) found.firstChild.click(); };
  const colours = element("span", "", "colour: ");
  for (const mode of items.length > 1 ? [...MODES, "moved"] : MODES) {
    const button = element("button", mode === "device" ? "on" : "", mode);
    button.dataset.mode = mode;
    button.onclick = () => {
      for (const other of colours.querySelectorAll("button")) other.className = other === button ? "on" : "";
      state.colour(mode);
    };
    colours.append(button);
  }
  const zooms = element("span", "");
  const middle = () => [state.views[0].width / 2, state.views[0].height / 2];
  for (const [text, act] of [["+", () => state.camera.zoom(1.5, ...middle())], ["−", () => state.camera.zoom(1 / 1.5, ...middle())],
    ["whole graph", () => state.camera.glide(state.camera.fitting(state.views[0].boxOf(state.views[0].root)))]]) {
    const button = element("button", "", text);
    button.onclick = act;
    zooms.append(button);
  }
  return element("div", "tools", element("span", "", search), colours, zooms);
}

function searchGraph(graph, state, text, found) {
  const wanted = text.trim().toLowerCase(), nodes = graph.types.length;
  found.replaceChildren();
  let matches = null;
  if (wanted) {
    matches = new Int32Array(graph.names.length);
    let count = 0;
    for (let n = 0; n < nodes; n++) {
      if (![graph.names[n], graph.types[n], graph.sources[n]].some((s) => s.toLowerCase().includes(wanted))) continue;
      for (let up = n; up >= 0; up = graph.parent[up] < 0 ? -1 : nodes + graph.parent[up]) matches[up]++;
      if (count++ >= MOST_FOUND) continue;
      const row = element("div", "", graph.names[n]);
      row.onclick = () => state.go(n);
      found.append(row);
    }
    found.append(element("span", "", count > MOST_FOUND ? `${count.toLocaleString("en")} found, the first ${MOST_FOUND} listed` : `${count} found`));
  }
  for (const view of state.views) { view.matches = matches; view.redraw(); }
}

function fillLegend(legend, items, mode, moved) {
  legend.replaceChildren();
  if (mode === "moved") {
    const swatch = element("span", "swatch");
    swatch.style.background = "#c2188b";
    legend.append(swatch, `on another device in plan B: ${moved[items[0].graph.types.length].toLocaleString("en")} operators`);
    return;
  }
  if (mode === "device") {
    const most = Math.max(...items.map((each) => each.devices)), word = items[0].plan.word;
    for (let d = 0; d < most; d++) {
      const swatch = element("span", "swatch");
      swatch.style.background = deviceColour(d, most);
      legend.append(element("span", "", swatch, `${word} ${d}`));
    }
    return;
  }
  const bar = element("i", ""), [low, high] = items[0].scales[mode];
  const stops = [0, 0.33, 0.66, 1].map((t) => heatColour(mode === "slack" ? 1 - t : t));
  bar.style.background = `linear-gradient(90deg, ${stops.join(",")})`;
  const text = mode === "memory" ? bytesText : secondsText;
  const what = { seconds: "time of an operator, or of all in a block", memory: "weights and results", slack: "how much longer it could take before the iteration does; of a block the least" }[mode];
  legend.append(mode === "slack" ? "0 s" : text(low), bar, text(high), ` (log) ${what}`);
}

function showTip(tip, graph, items, item, event) {
  if (item === null || !event) { tip.style.display = "none"; return; }
  tip.replaceChildren(element("b", "", shortened(graph.names[item], 90)), element("table", "", ...itemRows(graph, items, item, true)));
  placeTip(tip, event);
}

function placeTip(tip, event) {
  tip.style.display = "block";
  const right = event.clientX + 16 + tip.offsetWidth > window.innerWidth, low = event.clientY + 16 + tip.offsetHeight > window.innerHeight;
  tip.style.left = `${Math.max(2, right ? event.clientX - 12 - tip.offsetWidth : event.clientX + 16)}px`;
  tip.style.top = `${Math.max(2, low ? event.clientY - 12 - tip.offsetHeight : event.clientY + 16)}px`;
}

function planSections(page, graph, items, isOneOfTwo, state) {
  const { plan } = items, whose = isOneOfTwo ? `plan ${plan.letter}: ` : "";
  const heading = (text, small) => element("h2", "", `${whose}${text} `, element("small", "", small));
  const loads = element("div", "", heading(`loads of ${plan.word}s`, `black mark: ${plan.valueName}, and the memory there is (none where it is beyond the scale); green: weights, blue: live tensors at the peak`), element("div", "scroll", loadsTable(items)));
  page.append(element("div", "pair", loads, plan.timetable ? timeline(graph, items, state, heading) : withoutTimeline(plan, heading)));
  if (plan.methods && plan.methods.values.some((v) => v)) page.append(methodsSection(plan, heading));
}

function timeline(graph, items, state, heading) {
  const { plan } = items, frame = element("div", "times");
  const order = plan.timetable.inOrder ? "as replayed" : "operators one after the other, then transfers";
  const times = element("div", "", heading("one iteration", `${order}; hover names, click selects, Ctrl or Shift + wheel zooms, drag moves`), frame, kindLegend(plan.timetable));
  state.times.push(new TimelineView(frame, graph, items, {
    bar: (view, i, event) => state.tip(items, i === null || view.times.node[i] < 0 ? null : view.times.node[i], event),
    select: state.go,
  }));
  return times;
}

function withoutTimeline(plan, heading) {
  return element("div", "", heading("one iteration", "not replayed"), element("p", "", `There is no timeline: ${plan.obstacle}`));
}

function kindLegend(times) {
  const legend = element("div", "legend");
  for (const kind of [...new Set(times.kind)].sort((a, b) => a - b)) {
    const swatch = element("span", "swatch");
    swatch.style.background = KIND_COLOURS[times.kinds[kind]] || "#8a8f98";
    legend.append(element("span", "", swatch, times.kinds[kind]));
  }
  return legend;
}

function methodsSection(plan, heading) {
  const chart = element("div", ""), buttons = element("span", "");
  let axis = 0, hot = null;
  const draw = () => chart.replaceChildren(curvesChart(plan, axis, hot));
  ["samples", "seconds"].forEach((text, i) => {
    const button = element("button", i ? "" : "on", text);
    button.onclick = () => {
      axis = i;
      for (const other of buttons.children) other.className = other === button ? "on" : "";
      draw();
    };
    buttons.append(button);
  });
  draw();
  const table = methodsTable(plan, (name) => { hot = name; draw(); });
  return element("div", "pair",
    element("div", "", heading("progress of the methods", "distance from the best, cut off above ten times"), buttons, chart),
    element("div", "", heading("methods", "a row lights up its line"), element("div", "scroll", table)));
}
