// Command site builds the site from the pages of the repository with Hugo:
//
//	*.md, docs/, conformance/, … ─────────── title ──▶ content/ ┐
//	espalier man --markdown ───── commands, flags ───▶ content/ ├─ Hugo ─▶ pages ─ Pagefind ─▶ index
//	go/doc, espalier.schema.json, /metrics ─ tables ─▶ content/ ┘
//
// The paths of pages are those of the repository, so that links between them hold in both places. What
// links to a file that is no page leads to the repository. Hugo ends with an error if a link leads nowhere.
//
// The site works without JavaScript, except for search. This module pins Hugo, and package.json
// what makes the index and checks the result in a browser: see check.mjs.
package main
