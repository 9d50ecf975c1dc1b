// Draws the flame graphs of a page. Everything else on it is drawn without a script.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";

// The table above a flame graph says the same without this script. A differential flame graph has
// the times of two services, in ms per request: `a` and `b`; `differs` where that is not chance.
const FLAME_ROW = 18;
const HINT =
  "A click zooms, the outermost box zooms out. With the keyboard: arrow keys go from box to box, Enter zooms.";

function warmth(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 1000;
  return `hsl(${28 + (hash % 24)} 75% ${58 + (hash % 14)}%)`;
}

function difference(node, whole) {
  if (!node.data.differs) return "hsl(0 0% 82%)";
  const strength = Math.min(1, Math.abs((node.data.b - node.data.a) / (whole || 1)));
  return `hsl(${node.data.b > node.data.a ? 8 : 212} 80% ${84 - 24 * strength}%)`;
}

function sayBoth(node) {
  const { name, a, b } = node.data;
  const more = `${b > a ? "+" : ""}${(b - a).toFixed(2)}`;
  return `${name}: ${a.toFixed(2)} ms in A, ${b.toFixed(2)} ms in B (${more})`;
}

function drawFlame(figure) {
  const data = JSON.parse(figure.querySelector(".flame-data").textContent);
  const box = document.createElement("div");
  box.className = "flame-box";
  const said = document.createElement("p");
  said.className = "quiet flame-said";
  said.setAttribute("aria-live", "polite");
  said.textContent = HINT;
  figure.querySelector("h4").after(box, said);
  const total = data.value;
  const isPair = "a" in data;
  const sayOne = (node) => {
    const share = (100 * node.data.value) / total;
    return `${node.data.name}: ${share.toFixed(1)} %, ${node.data.value} sample${node.data.value === 1 ? "" : "s"}`;
  };
  const say = isPair ? sayBoth : sayOne;
  const tell = (node) => {
    said.textContent = say(node);
  };
  const graph = flamegraph()
    .width(box.clientWidth || 900)
    .cellHeight(FLAME_ROW)
    .minFrameSize(1)
    .transitionDuration(0)
    .selfValue(false)
    .label(say)
    .setColorMapper((node) =>
      isPair ? difference(node, data.b - data.a) : warmth(node.data.name),
    )
    .onHover(tell);
  select(box).datum(data).call(graph);
  // On paper the whole graph is as wide as the page.
  const svg = box.querySelector("svg");
  svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  // Boxes get their first width in a transition: a page that is printed at once would not have it.
  select(box).selectAll(".frame").each(function () {
    select(this).select("rect").interrupt().attr("width", this.getAttribute("width"));
  });
  followKeys(box, graph.zoomTo, tell);
}

// Lets the keyboard go from box to box: to the first callee above, the caller below, and aside.
function followKeys(box, zoom, tell) {
  const boxes = () => select(box).selectAll(".frame");
  let here = boxes().datum().ancestors().pop();
  box.tabIndex = 0;
  box.setAttribute("role", "application");
  box.setAttribute("aria-label", `Flame graph. ${HINT}`);
  box.addEventListener("keydown", (event) => {
    const beside = here.parent ? here.parent.children : [here];
    const place = beside.indexOf(here);
    const targets = {
      ArrowUp: here.children?.[0],
      ArrowDown: here.parent,
      ArrowLeft: beside[place - 1],
      ArrowRight: beside[place + 1],
      Enter: here,
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    here = targets[event.key] ?? here;
    if (event.key === "Enter") zoom(here);
    boxes().classed("here", (node) => node === here);
    tell(here);
  });
}

document.querySelectorAll(".flame").forEach(drawFlame);
