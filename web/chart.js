// Draws every chart of the page with ECharts, in place of the static drawing below it.
// The page is whole without this script.
import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomInsideComponent,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";

use([
  CustomChart,
  LineChart,
  ScatterChart,
  AriaComponent,
  DataZoomInsideComponent,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
  SVGRenderer,
]);

// The same shapes as in the static drawing: tones are told apart without colour too.
const SYMBOLS = {
  sustained: "circle",
  degraded: "triangle",
  invalid: "path://M0 2L2 0L10 8L18 0L20 2L12 10L20 18L18 20L10 12L2 20L0 18L8 10Z",
  undecided: "diamond",
  metered: "rect",
};
const LINE = "path://M0 4H16V6H0Z";
const MOST_DOTS = 12;
const SPARSE = 200; // points of a cloud from which on they are drawn smaller

function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

function number(value) {
  // Fast answers are tenths of a millisecond, on axes in seconds.
  if (Math.abs(value) < 1) return value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

// Short enough to stand beside an axis.
function tick(value) {
  if (Math.abs(value) < 10000) return number(value);
  return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 2 });
}

// A bar has its two ends and its height.
function barsOf(line, shared) {
  return {
    ...shared,
    type: "custom",
    data: line.data.slice(0, -1).map(([low, count], i) => [low, line.data[i + 1][0], count]),
    encode: { x: [0, 1], y: 2 },
    renderItem: (_, api) => {
      const [left, top] = api.coord([api.value(0), api.value(2)]);
      const [right, floor] = api.coord([api.value(1), 0]);
      const shape = { x: left, y: top, width: Math.max(right - left - 1, 1), height: floor - top };
      return { type: "rect", shape, style: { fill: shared.color, opacity: 0.8 } };
    },
    clip: true,
  };
}

// An interval has its two ends and its row.
function intervalsOf(line, shared) {
  const pairs = line.data.filter((_, i) => i % 2 === 0).map(([low, row], i) => [low, line.data[2 * i + 1][0], row]);
  return {
    ...shared,
    type: "custom",
    data: pairs,
    encode: { x: [0, 1], y: 2 },
    renderItem: (_, api) => {
      const [left, y] = api.coord([api.value(0), api.value(2)]);
      const [right] = api.coord([api.value(1), api.value(2)]);
      const style = { stroke: shared.color, lineWidth: 2.2 };
      const stroke = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
      const children = [stroke(left, y, right, y), stroke(left, y - 5, left, y + 5), stroke(right, y - 5, right, y + 5)];
      return { type: "group", children };
    },
  };
}

function seriesOf(line, colour) {
  const tone = colour(line.tone);
  const shared = { name: line.name, data: line.data, color: tone, emphasis: { focus: "series" } };
  if (line.kind === "points") {
    return { ...shared, type: "scatter", symbol: SYMBOLS[line.tone] ?? "rect", symbolSize: 13, itemStyle: { opacity: 1 }, z: 5 };
  }
  if (line.kind === "cloud") {
    const few = line.data.length <= SPARSE;
    const symbol = line.tone === "degraded" ? "triangle" : "circle";
    const itemStyle = { opacity: few ? 0.85 : 0.55 };
    const symbolSize = (few ? 6 : 4) + (symbol === "triangle" ? 3 : 0);
    return { ...shared, type: "scatter", symbol, symbolSize, itemStyle, z: 2, emphasis: { disabled: true } };
  }
  if (line.kind === "bars") return barsOf(line, shared);
  if (line.kind === "intervals") return intervalsOf(line, shared);
  return {
    ...shared,
    type: "line",
    showSymbol: line.kind === "line" && line.data.length <= MOST_DOTS,
    symbol: "circle",
    symbolSize: 8,
    lineStyle: { width: line.kind === "dashed" ? 1.5 : 2.2, type: line.kind === "dashed" ? "dashed" : "solid" },
    areaStyle: line.kind === "area" ? { opacity: 0.12 } : undefined,
    silent: line.kind === "dashed",
    z: 4,
  };
}

// N and its interval: an empty line that carries the marks, so that hiding a series keeps them.
function bandOf(band, colour) {
  const on = band.axis === "x" ? "xAxis" : "yAxis";
  const lines = band.at === null ? [] : [{ [on]: band.at }];
  const position = band.axis === "x" ? "end" : "insideEndTop";
  return {
    name: "N",
    type: "line",
    data: [],
    silent: true,
    markArea: {
      itemStyle: { color: colour("n"), opacity: 0.16 },
      data: [[{ [on]: band.low }, { [on]: band.high }]],
    },
    markLine: {
      symbol: "none",
      animation: false,
      lineStyle: { color: colour("n"), width: 1.5, type: "solid" },
      label: { formatter: band.label, color: colour("n"), fontWeight: 600, position },
      data: lines,
    },
  };
}

// Stretches of time: each named where the pointer is, and at least as wide as a line.
function spansOf(spans, colour) {
  return {
    name: "spans",
    type: "line",
    data: [],
    markArea: {
      label: { show: false },
      emphasis: { label: { show: false } },
      data: spans.map((span) => {
        const style = { color: colour(span.tone), opacity: 0.22, borderColor: colour(span.tone), borderWidth: 1.5 };
        return [{ name: span.label, xAxis: span.low, itemStyle: style, span }, { xAxis: span.high }];
      }),
    },
  };
}

function axis(label, range, colour, more) {
  return {
    type: "value",
    name: label,
    nameLocation: "middle",
    nameTextStyle: { color: colour("quiet") },
    axisLabel: { color: colour("quiet"), formatter: tick, hideOverlap: true },
    axisLine: { lineStyle: { color: colour("rule") } },
    splitLine: { show: false, lineStyle: { color: colour("rule") } },
    min: range[0],
    max: range[1],
    ...more,
  };
}

function words(chart, { componentType, data, seriesName, seriesIndex, value }) {
  if (componentType === "markArea") {
    return `${data.name}\n${number(data.span.low)} to ${number(data.span.high)} ${chart.x_label}`;
  }
  const kind = chart.series[seriesIndex].kind;
  const row = chart.rows[chart.rows.length - value[value.length - 1]];
  if (kind === "intervals") return `${row}\n${number(value[0])} to ${number(value[1])} ${chart.x_label}`;
  if (kind === "bars") {
    return `${number(value[0])} to ${number(value[1])} ${chart.x_label}\n${number(value[2])} ${chart.y_label}`;
  }
  const y = chart.rows.length ? row : `${number(value[1])} ${chart.y_label}`;
  return `${seriesName}\n${number(value[0])} ${chart.x_label}\n${y}`;
}

// A row has its name in place of a number.
function rowsOf(chart) {
  if (!chart.rows.length) return {};
  const formatter = (value) => chart.rows[chart.rows.length - value] ?? "";
  return { interval: 1, axisLabel: { formatter, interval: 0, overflow: "truncate" }, nameGap: 0 };
}

function option(chart, colour, width) {
  const named = rowsOf(chart);
  const left = chart.rows.length ? Math.min(chart.left, 0.45 * width) : 58;
  const lines = chart.series.filter((line) => line.kind !== "cloud");
  const listed = lines.length ? lines : chart.series.filter((line) => line.data.length);
  const series = chart.series.map((line) => seriesOf(line, colour));
  if (chart.band) series.push(bandOf(chart.band, colour));
  if (chart.spans.length) series.push(spansOf(chart.spans, colour));
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.summary}` } },
    textStyle: { fontFamily: "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif" },
    grid: { left, right: 20, top: 56, bottom: 46 },
    legend: {
      top: 0,
      left: 0,
      itemWidth: 16,
      itemHeight: 10,
      textStyle: { color: colour("text") },
      data: listed.map((line) => ({
        name: line.name,
        icon: ["points", "cloud", "bars"].includes(line.kind) ? undefined : LINE,
      })),
    },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: colour("card"),
      borderColor: colour("rule"),
      textStyle: { color: colour("text") },
      renderMode: "richText",
      formatter: (item) => words(chart, item),
    },
    dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" }],
    xAxis: axis(chart.x_label, chart.x_range, colour, { nameGap: 28 }),
    yAxis: axis(chart.y_label, chart.y_range, colour, {
      nameGap: 42,
      splitLine: { show: true, lineStyle: { color: colour("rule") } },
      interval: chart.y_step, // else the last label may lie on the one before it
      ...named,
      axisLabel: {
        color: colour("quiet"),
        formatter: tick,
        hideOverlap: true,
        ...named.axisLabel,
        width: chart.rows.length ? left - 12 : undefined,
      },
    }),
    series,
  };
}

function draw(chart) {
  const figure = document.getElementById(chart.id);
  const box = document.createElement("div");
  box.className = "drawn";
  if (chart.rows.length) box.style.height = `${chart.height}px`;
  figure.querySelector(".static").before(box);
  figure.classList.add("is-drawn");
  const drawing = init(box, null, { renderer: "svg" });
  const redraw = () => drawing.setOption(option(chart, colours(), box.clientWidth), true);
  redraw();
  new ResizeObserver(() => {
    drawing.resize();
    if (chart.rows.length) redraw();
  }).observe(box);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
}

// The table above a flame graph says the same without this script.
const FLAME_ROW = 18;

function warmth(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 1000;
  return `hsl(${28 + (hash % 24)} 75% ${58 + (hash % 14)}%)`;
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
  const say = (node) => {
    const share = (100 * node.data.value) / total;
    return `${node.data.name}: ${share.toFixed(1)} %, ${node.data.value} samples`;
  };
  const graph = flamegraph()
    .width(box.clientWidth || 900)
    .cellHeight(FLAME_ROW)
    .minFrameSize(1)
    .transitionDuration(0)
    .selfValue(false)
    .label(say)
    .setColorMapper((node) => warmth(node.data.name))
    .onHover((node) => {
      said.textContent = say(node);
    });
  select(box).datum(data).call(graph);
}

const charts = JSON.parse(document.getElementById("charts").textContent);
charts.forEach(draw);
document.querySelectorAll(".flame").forEach(drawFlame);
document.documentElement.dataset.charts = String(charts.length);
