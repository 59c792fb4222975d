// Command pictures draws the pictures of the documents as SVG, from text in the repository:
//
//	docs/pictures/*.txt ── rows of boxes and arrows ──▶ docs/pictures/*.svg
//	docs/results.json   ── bars ──────────────────────▶ docs/pictures/speed.svg
//	docs/pictures/*.txtar ── commands, run ──────────▶ docs/pictures/*.svg
//	docs/results.json   ── plots ─────────────────────▶ docs/pictures/scale.svg
//
// A test fails if a picture is not what its source says.
package main
