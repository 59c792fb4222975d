"use strict";
(() => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const one = (selector) => document.querySelector(selector);
  // By class, because the fields of a resource may be called anything.
  const input = one(".search input"), toast = one("body > .toast"), where = one(".brand .where");
  const current = () => one(".v.on");
  root.classList.add("scripted");

  let fading;
  function say(text) {
    toast.textContent = text;
    toast.classList.add("on");
    clearTimeout(fading);
    fading = setTimeout(() => toast.classList.remove("on"), 1600);
  }

  function copy(text, done) {
    const older = () => {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      say(document.execCommand("copy") ? done : "Could not copy");
      area.remove();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say(done), older);
    else older();
  }

  function show(section) {
    if (!section || section === current()) return;
    for (const v of all(".v")) v.classList.toggle("on", v === section);
    for (const a of all("nav a")) {
      if (a.dataset.version === section.id) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    }
    search();
  }

  function reveal(element) {
    for (let e = element.parentElement; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    const own = element.querySelector(":scope > details");
    if (own) own.open = true;
    element.scrollIntoView({ block: "start" });
  }

  function follow() {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* then it is meant as it is */ }
    const target = id && $(id);
    if (!target) return;
    if (target.classList.contains("v")) {
      show(target);
      scrollTo(0, 0);
    } else if (target.classList.contains("f")) {
      if (input.value) { input.value = ""; search(); }
      show(target.closest(".v"));
      for (const e of all(".hit")) e.classList.remove("hit");
      target.classList.add("hit");
      reveal(target);
    }
  }

  // The fields of a version and the text to search them by, made on first use.
  const indexes = new Map();
  function index(section) {
    if (!indexes.has(section)) {
      indexes.set(section, all(".f:not(.root)", section).map((element) => {
        const texts = all(":scope > .d, :scope > .c, :scope > .u", element);
        const name = element.querySelector(":scope > .h > .n");
        return {
          element, name, texts,
          path: element.id.toLowerCase(),
          text: [name].concat(texts).map((e) => e.textContent).join("\n").toLowerCase(),
        };
      }));
    }
    return indexes.get(section);
  }

  const marking = window.CSS && CSS.highlights && window.Highlight;
  function mark(rows, words) {
    if (!marking) return;
    CSS.highlights.delete("found");
    const ranges = [];
    for (const row of rows.slice(0, 400)) {
      for (const part of [row.name].concat(row.texts)) {
        const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
          const text = node.data.toLowerCase();
          if (text.length !== node.data.length) continue;
          for (const word of words) {
            for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
              const range = new Range();
              range.setStart(node, at);
              range.setEnd(node, at + word.length);
              ranges.push(range);
            }
          }
        }
      }
    }
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
  }

  let before = null; // which details were open when the search began
  function search() {
    const section = current();
    if (!section) return;
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const found = section.querySelector(".found");
    root.classList.toggle("searching", words.length > 0);
    if (!words.length) {
      found.textContent = "";
      mark([], words);
      if (before) for (const [details, open] of before) details.open = open;
      before = null;
      return;
    }
    before = before || all("details").map((details) => [details, details.open]);
    const rows = index(section);
    // The names above a field count, but not alone: all fields below would match.
    const hits = rows.filter((row) => words.every((w) => row.text.includes(w) || row.path.includes(w)) &&
      words.some((w) => row.text.includes(w) || w.includes(".")));
    const visible = new Set();
    for (const { element } of hits) {
      for (let e = element; e !== section && !(visible.has(e) && e !== element); e = e.parentElement) visible.add(e);
    }
    const hit = new Set(hits.map((row) => row.element));
    // What is below a field that was found can be looked at, unless more was found there.
    const open = new Set();
    for (const { element } of rows) {
      const below = open.has(element.parentElement.closest(".f"));
      const details = element.querySelector(":scope > details");
      if (below || hit.has(element) && details && !visible.has(details)) open.add(element);
      element.classList.toggle("no", !below && !visible.has(element));
      element.classList.toggle("way", !below && !hit.has(element));
    }
    for (const element of all(".std", section)) element.classList.toggle("no", !visible.has(element));
    for (const details of all("details", section)) details.open = visible.has(details);
    found.textContent = hits.length === 1 ? "1 field found" : hits.length + " fields found";
    mark(hits, words);
  }

  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 90);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === "Escape" && document.activeElement === input) {
      input.value = "";
      search();
      input.blur();
    }
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.l");
    if (link) {
      copy(link.href, "Link copied");
      return;
    }
    const button = event.target.closest("[data-do]");
    if (!button) return;
    switch (button.dataset.do) {
      case "expand":
      case "collapse":
        for (const details of all(".tree details", current())) details.open = button.dataset.do === "expand";
        break;
      case "copy":
        copy(button.closest(".card").querySelector("pre").textContent, "Example copied");
    }
  });

  // Deep in the tree, the bar says where that is.
  const group = where.textContent;
  let placing = false;
  addEventListener("scroll", () => {
    if (placing) return;
    placing = true;
    requestAnimationFrame(() => {
      placing = false;
      const tree = current() && current().querySelector(".tree");
      if (!tree) return;
      const box = tree.getBoundingClientRect(), top = one("header").offsetHeight;
      const under = box.top < top && document.elementFromPoint(box.left + box.width / 2, top + 24);
      const field = under && under.closest(".f[id]");
      let path = field ? field.querySelector(".n").title : "";
      if (path.length > 60) path = "…" + path.slice(-60).replace(/^[^.]*/, "");
      where.textContent = path || group;
      where.classList.toggle("deep", path !== "");
    });
  }, { passive: true });

  addEventListener("beforeprint", () => { for (const d of all(".v.on details")) d.open = true; });
  addEventListener("hashchange", follow);
  const query = new URLSearchParams(location.search).get("q");
  if (query) { input.value = query; search(); }
  follow();
})();
