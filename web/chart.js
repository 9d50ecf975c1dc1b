// Draws every chart of the page with ECharts, in place of the static drawing below it.
// The page is whole without this script.
import { LineChart, ScatterChart } from "echarts/charts";
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

use([
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

function seriesOf(line, colour) {
  const tone = colour(line.tone);
  const shared = { name: line.name, data: line.data, color: tone, emphasis: { focus: "series" } };
  if (line.kind === "points") {
    return { ...shared, type: "scatter", symbol: SYMBOLS[line.tone], symbolSize: 13, itemStyle: { opacity: 1 }, z: 5 };
  }
  if (line.kind === "cloud") {
    const itemStyle = { opacity: 0.35 };
    return { ...shared, type: "scatter", symbolSize: 4, itemStyle, z: 2, emphasis: { disabled: true } };
  }
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
    axisLabel: { color: colour("quiet"), formatter: number, hideOverlap: true },
    axisLine: { lineStyle: { color: colour("rule") } },
    splitLine: { show: false, lineStyle: { color: colour("rule") } },
    min: range[0],
    max: range[1],
    ...more,
  };
}

function option(chart, colour) {
  const series = chart.series.map((line) => seriesOf(line, colour));
  if (chart.band) series.push(bandOf(chart.band, colour));
  if (chart.spans.length) series.push(spansOf(chart.spans, colour));
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.summary}` } },
    textStyle: { fontFamily: "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif" },
    grid: { left: 58, right: 20, top: 56, bottom: 46 },
    legend: {
      top: 0,
      left: 0,
      itemWidth: 16,
      itemHeight: 10,
      textStyle: { color: colour("text") },
      data: chart.series
        .filter((line) => line.kind !== "cloud")
        .map((line) => ({ name: line.name, icon: line.kind === "points" ? undefined : LINE })),
    },
    tooltip: {
      trigger: "item",
      confine: true,
      backgroundColor: colour("card"),
      borderColor: colour("rule"),
      textStyle: { color: colour("text") },
      renderMode: "richText",
      formatter: ({ componentType, data, seriesName, value }) =>
        componentType === "markArea"
          ? `${data.name}\n${number(data.span.low)} to ${number(data.span.high)} ${chart.x_label}`
          : `${seriesName}\n${number(value[0])} ${chart.x_label}\n${number(value[1])} ${chart.y_label}`,
    },
    dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" }],
    xAxis: axis(chart.x_label, chart.x_range, colour, { nameGap: 28 }),
    yAxis: axis(chart.y_label, chart.y_range, colour, {
      nameGap: 42,
      splitLine: { show: true, lineStyle: { color: colour("rule") } },
    }),
    series,
  };
}

function draw(chart) {
  const figure = document.getElementById(chart.id);
  const box = document.createElement("div");
  box.className = "drawn";
  figure.querySelector(".static").before(box);
  figure.classList.add("is-drawn");
  const drawing = init(box, null, { renderer: "svg" });
  drawing.setOption(option(chart, colours()));
  new ResizeObserver(() => drawing.resize()).observe(box);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => drawing.setOption(option(chart, colours()), true));
}

const charts = JSON.parse(document.getElementById("charts").textContent);
charts.forEach(draw);
document.documentElement.dataset.charts = String(charts.length);
