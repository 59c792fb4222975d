// Search in the index that Pagefind has made. Without JavaScript the field is hidden.
const input = document.querySelector("#query"), found = document.querySelector("#found");
const index = new URL("pagefind/pagefind.js", import.meta.url); // this file is in the root of the site
input.closest("search").hidden = false;
let pagefind;
let last = 0;

async function show() {
  const query = input.value.trim(), turn = ++last;
  if (!query) return found.replaceChildren();
  pagefind ??= await import(index);
  await pagefind.options({ baseUrl: new URL("../", index).pathname });
  const { results } = await pagefind.search(query);
  const pages = await Promise.all(results.slice(0, 10).map((r) => r.data()));
  if (turn !== last) return;
  const list = document.createElement("ul");
  for (const page of pages) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = page.url;
    link.textContent = page.meta.title;
    const text = item.appendChild(document.createElement("p"));
    text.innerHTML = page.excerpt; // Pagefind escapes it, but for the marks
  }
  found.replaceChildren(pages.length ? list : "Nothing found.");
}

input.addEventListener("input", () => show().catch((e) => found.replaceChildren(`Search failed: ${e.message}`)));
input.addEventListener("keydown", (e) => { if (e.key === "Escape") { input.value = ""; found.replaceChildren(); } });
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.target.closest("input, textarea")) { e.preventDefault(); input.focus(); }
});
