// Draws the flame graphs of a page. Everything else on it is drawn without a script.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";

// The table above a flame graph says the same without this script. A differential flame graph has
// the times of two services, in ms per request: `a` and `b`; `differs` where that is not chance.
const FLAME_ROW = 18;

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
  figure.querySelector("h4").after(box, said);
  const total = data.value;
  const isPair = "a" in data;
  const sayOne = (node) => {
    const share = (100 * node.data.value) / total;
    return `${node.data.name}: ${share.toFixed(1)} %, ${node.data.value} samples`;
  };
  const say = isPair ? sayBoth : sayOne;
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
    .onHover((node) => {
      said.textContent = say(node);
    });
  select(box).datum(data).call(graph);
}

document.querySelectorAll(".flame").forEach(drawFlame);
