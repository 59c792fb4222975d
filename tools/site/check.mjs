// Checks the built site: links, in a browser at two widths, light and dark, with and without JavaScript, and
// accessibility with axe. Prints what it finds, and exits with 1 if there is something.
//
//	node check.mjs SITE [FOLDER FOR PICTURES]
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import axe from "axe-core";
import { LinkChecker } from "linkinator";
import { chromium } from "playwright-core";

const [site, pictures] = process.argv.slice(2);
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".wasm": "application/wasm" };
const problems = [];

// The site is served below a folder, as a project's pages are.
const server = createServer(async (req, res) => {
  let path = normalize(decodeURIComponent(new URL(req.url, "http://x").pathname));
  if (!path.startsWith("/espalier/")) return res.writeHead(404).end();
  path = path.slice("/espalier".length);
  if (path.endsWith("/")) path += "index.html";
  try {
    res.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(await readFile(join(site, path)));
  } catch {
    res.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const base = `http://127.0.0.1:${server.address().port}/espalier/`;

// Links elsewhere are not followed: this machine may have no way there.
const links = await new LinkChecker().check({ path: base, recurse: true, checkFragments: true, concurrency: 20, linksToSkip: [`^(?!${base})`] });
const followed = links.links.filter((l) => l.state !== "SKIPPED");
for (const l of followed) if (l.state === "BROKEN") problems.push(`${l.parent} links to ${l.url}: ${l.status}`);
if (followed.length < 300) problems.push(`only ${followed.length} links were followed`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const pages = ["", "docs/guides/first/", "docs/guides/", "docs/scale/", "docs/checks/bound-fraction/", "reference/commands/espalier_check/", "reference/metrics/", "reference/packages/espalier/"];
let seen = 0;
for (const [width, height] of [[390, 844], [1280, 900]]) {
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    for (const page of pages) {
      const tab = await context.newPage();
      const failed = [];
      tab.on("pageerror", (e) => failed.push(e.message));
      tab.on("requestfailed", (r) => failed.push(r.url()));
      const answer = await tab.goto(base + page);
      const where = `${page || "the first page"} (${width} px, ${colorScheme})`;
      if (!answer.ok()) problems.push(`${where}: ${answer.status()}`);
      for (const f of failed) problems.push(`${where}: ${f}`);
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) problems.push(`${where} is ${wide} px wider than the window`);
      await tab.evaluate(axe.source);
      const { violations } = await tab.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      for (const v of violations) {
        const line = `${where}: axe ${v.id} (${v.impact}): ${v.help}: ${v.nodes.length} × ${v.nodes[0].html.slice(0, 120)}`;
        if (v.impact === "serious" || v.impact === "critical") problems.push(line);
        else console.log(line);
      }
      if (pictures) {
        mkdirSync(pictures, { recursive: true });
        await tab.screenshot({ path: join(pictures, `${page.replaceAll("/", "_") || "start"}-${width}-${colorScheme}.png`) });
      }
      seen++;
      await tab.close();
    }
    await context.close();
  }
}

// Search finds a check by its name; without JavaScript there is no field, and everything else.
const tab = await browser.newPage();
await tab.goto(base + "docs/scale/");
await tab.fill("#query", "bound-fraction");
await tab.waitForSelector("#found li a", { timeout: 20_000 }).catch(() => problems.push("search finds nothing"));
if (!(await tab.locator("#found li a").allTextContents()).includes("bound-fraction")) problems.push("search does not find the page of a check");
const target = await tab.locator("#found li a").first().getAttribute("href", { timeout: 1000 }).catch(() => null);
if (target && !(await tab.request.get(new URL(target, base).href)).ok()) problems.push(`search leads to ${target}`);
const plain = await browser.newContext({ javaScriptEnabled: false });
const bare = await plain.newPage();
await bare.goto(base);
if (await bare.locator("#query").isVisible()) problems.push("without JavaScript there is a field for search");
await bare.locator("a", { hasText: "Start" }).first().click();
if (!(await bare.locator("h1").isVisible())) problems.push("without JavaScript links lead nowhere");
await browser.close();
server.close();

for (const p of problems) console.log(p);
console.log(`site: ${followed.length} links, ${seen} views of ${pages.length} pages: ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
