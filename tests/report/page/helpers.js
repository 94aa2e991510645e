// Words of the scripts that the tests run on a page.
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const mouse = (canvas, kind, x, y) => {
  const edge = canvas.getBoundingClientRect();
  const at = { clientX: edge.left + x, clientY: edge.top + y, bubbles: true };
  canvas.dispatchEvent(new PointerEvent(kind, at));
};
const clickAt = (canvas, x, y) => {
  mouse(canvas, "pointerdown", x, y);
  mouse(canvas, "pointerup", x, y);
};
const middle = (view, item) => {
  const [x, y, w, h] = view.screenBox(item);
  return [x + w / 2, y + h / 2];
};
const textOf = (selector) => document.querySelector(selector).textContent;
