// Numbers and names as text.

/** Value in the first unit of [[size, name], ...] that it reaches. */
function inUnit(value, units) {
  const [size, name] = units.find(([least]) => value >= least) || units[units.length - 1];
  return `${Number((value / size).toPrecision(4))} ${name}`;
}

function secondsText(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  return inUnit(seconds, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
}

function bytesText(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  return inUnit(bytes, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
}

function flopsText(flops) {
  return inUnit(flops, [[1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"], [1, "FLOP"]]);
}

function percentText(share) {
  return `${Number((100 * share).toPrecision(3))} %`;
}

/** The text with an ellipsis in the middle where it is longer than `most` characters. */
function shortened(text, most) {
  if (text.length <= most) return text;
  if (most < 3) return "";
  const tail = Math.floor((most - 1) / 3);
  return `${text.slice(0, most - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** A new element: its class, and content that is text or elements; text is never read as HTML. */
function element(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content.filter((part) => part !== null && part !== undefined));
  return made;
}

/** A row of a table of facts. */
function fact(name, ...content) {
  return element("tr", "", element("td", "", name), element("td", "", ...content));
}
