// Keeps the page as the simulated GitHub is, and sends what is clicked. No framework: four parts are swapped when they change.
"use strict";

const POLL_MS = 600;
const LOST_MS = 3000;
const COPIED_MS = 1500;
const shown = {};
let tag = "";

/** Find out which <details> a reader has opened, so that a swap does not close them. */
function openDetails(part) {
  return [...part.querySelectorAll("details")].map((one) => one.open);
}

function swap(name, html) {
  const part = document.getElementById(`part-${name}`);
  if (shown[name] === html) return;
  const keys = new Set([...part.querySelectorAll("[data-key]")].map((one) => one.dataset.key));
  const open = openDetails(part);
  const scrolled = part.querySelector("ul")?.scrollTop ?? 0;
  const first = shown[name] === undefined;
  shown[name] = html;
  part.innerHTML = html;
  const details = part.querySelectorAll("details");
  if (details.length === open.length) details.forEach((one, index) => { if (open[index]) one.open = true; });
  if (scrolled) part.querySelector("ul").scrollTop = scrolled;
  if (!first) {
    for (const one of part.querySelectorAll("[data-key]")) {
      if (!keys.has(one.dataset.key)) one.classList.add("fresh");
    }
  }
  localTimes(part);
  copyButtons(part);
}

/** Give every block of code a button, as GitHub does. */
function copyButtons(root) {
  for (const block of root.querySelectorAll(".markdown pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    block.append(button);
  }
}

async function copy(button) {
  const text = button.parentElement.querySelector("code").textContent.replace(/\n$/, "");
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    button.classList.add("done");
  } catch {
    button.textContent = "Not allowed";  // the browser does not let us; the text can still be selected
  }
  setTimeout(() => { button.textContent = "Copy"; button.classList.remove("done"); }, COPIED_MS);
}

function localTimes(root) {
  for (const one of root.querySelectorAll("time")) {
    const at = new Date(one.dateTime);
    one.textContent = at.toLocaleTimeString();
    one.title = at.toLocaleString();
  }
}

async function refresh() {
  const answer = await fetch("/parts", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
  if (answer.status !== 200) return;
  tag = answer.headers.get("ETag");
  for (const [name, html] of Object.entries(await answer.json())) swap(name, html);
}

async function poll() {
  try {
    await refresh();
    document.body.classList.remove("lost");
  } catch {
    document.body.classList.add("lost");  // the demo was stopped
  }
  setTimeout(poll, document.body.classList.contains("lost") ? LOST_MS : POLL_MS);
}

async function ask(action, asked) {
  try {
    const answer = await fetch(`/act/${action}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Demo": "1" },
      body: JSON.stringify(asked),
    });
    return answer.ok ? await answer.json() : { text: await answer.text(), tone: "no" };
  } catch {
    return { text: "The demo does not answer: was it stopped?", tone: "no" };
  }
}

/** Show at once what came of a click; the server tells how it goes on. */
function say(told) {
  const line = document.createElement("p");
  line.textContent = told.text;
  line.className = told.tone;
  document.getElementById("part-said").replaceChildren(line);
  delete shown.said;
}

async function act(action, asked) {
  const told = await ask(action, asked);
  say(told);
  if (told.tone === "ok") await refresh();
  return told.tone === "ok";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button) {
    const { act: action, ...asked } = button.dataset;
    button.closest("details.menu")?.removeAttribute("open");
    act(action, asked);
    return;
  }
  if (event.target.classList.contains("copy")) {
    copy(event.target);
    return;
  }
  const chip = event.target.closest("[data-text]");
  if (chip) {
    const box = document.querySelector("#comment textarea");
    box.value = chip.dataset.text;
    box.focus();
    box.scrollIntoView({ block: "center", behavior: "smooth" });
    return;
  }
  if (!event.target.closest("details.menu")) document.getElementById("menu-fail").removeAttribute("open");
});

document.getElementById("comment").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  if (await act("comment", { as: form.elements.as.value, body: form.elements.body.value })) form.elements.body.value = "";
});

document.querySelector("#comment textarea").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.getElementById("comment").requestSubmit();
});

localTimes(document);
copyButtons(document);
poll();
