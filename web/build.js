// Builds the report's script into the Python package, where it is committed: users have no Node.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const PACKAGE = "../src/loadstone/report/html";

await build({
  entryPoints: ["flame.js"],
  outfile: `${PACKAGE}/flame.js`,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2020"],
  charset: "ascii",
  legalComments: "eof",
  loader: { ".css": "empty" }, // page.css has the few rules of d3-flame-graph that are wanted
  define: { "process.env.NODE_ENV": '"production"' },
});

// The licences of what is in the bundle travel with it.
const D3 = ["array", "color", "dispatch", "ease", "format", "hierarchy", "interpolate", "scale", "selection", "time", "time-format", "timer", "transition"];
const notices = [
  "d3-flame-graph/LICENSE",
  ...D3.map((part) => `d3-${part}/LICENSE`),
].map(
  (name) => `=== ${name}\n\n${readFileSync(`node_modules/${name}`, "utf8").trim()}\n`,
);
writeFileSync(`${PACKAGE}/flame.LICENSES.txt`, notices.join("\n\n"));
