"use strict";
// Follows a command: the server sends fragments of the page, and at the end the whole report.
const at = (id) => document.getElementById(id);
const link = at("link"), stop = at("stop");
let asked = false;

function tell(text, isLost) {
  if (link.textContent !== text) link.textContent = text;
  link.classList.toggle("lost", Boolean(isLost));
}

// What the reader has unfolded or scrolled aside stays so, and the keyboard stays where it was.
function put(id, html) {
  const box = at(id);
  // Sections fold parts of the same name.
  const key = (one) => `${one.closest("[id]").id} ${one.tagName} ${one.ariaLabel ?? one.textContent}`;
  const open = new Set(), aside = new Map();
  for (const one of box.querySelectorAll("summary, .scroll")) {
    if (one.matches("[open] > summary")) open.add(key(one));
    if (one.scrollLeft) aside.set(key(one), one.scrollLeft);
  }
  const focused = box.contains(document.activeElement) ? key(document.activeElement) : null;
  box.innerHTML = html;
  for (const one of box.querySelectorAll("summary, .scroll, a")) {
    const name = key(one);
    if (open.has(name)) one.parentElement.open = true;
    if (aside.has(name)) one.scrollLeft = aside.get(name);
    if (name === focused) one.focus({ preventScroll: true });
  }
}

const events = new EventSource("events");
events.addEventListener("open", () => tell("Live"));
events.addEventListener("now", (event) => {
  const now = JSON.parse(event.data);
  if (at("step").textContent !== now.step) at("step").textContent = now.step;
  document.title = now.title;
  put("now", now.html);
});
events.addEventListener("results", (event) => put("results", JSON.parse(event.data).html));
events.addEventListener("end", (event) => {
  events.close();
  const html = JSON.parse(event.data).html;
  if (!html) {
    tell("The command has ended.");
    if (stop) stop.disabled = true;
    return;
  }
  document.open();
  document.write(html);
  document.close();
});
events.addEventListener("error", () => tell("Connection lost: the command has ended, or this browser was too slow.", true));

if (stop) stop.addEventListener("click", async () => {
  stop.disabled = true;
  if (asked || !confirm("Stop this command? What was measured is kept.")) {
    stop.disabled = asked;
    return;
  }
  asked = true;
  try {
    const answer = await fetch("stop", { method: "POST" });
    tell(answer.ok ? "Stopping: requests under way end first." : "It could not be stopped.", !answer.ok);
  } catch {
    tell("It could not be reached.", true);
  }
});
