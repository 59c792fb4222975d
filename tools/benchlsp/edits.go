package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf16"
)

// randomEdits types for a while, and compares what the server says about its text with what a new server says about
// the editor's.
func randomEdits(ctx context.Context, g *generator, folder string) error {
	c, err := startServer(ctx, *program, folder)
	if err != nil {
		return err
	}
	defer c.stop(ctx)
	if err := c.ready(ctx, g, folder); err != nil {
		return err
	}
	path := filepath.Join(folder, "edited.yaml")
	begin := g.file(20_000)
	text := utf16.Encode([]rune(begin))
	if err := c.open(ctx, path, begin); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(*seed, 2))
	pieces := []string{"a", "x: 1\n", "\n", "\r\n", "  ", "- ", "---\n", "😀", "\"", "'", "[", "}", "|\n", "#", ": ", "\t", "&a *a", "!!", "\r", "ü", "kind: List\n", "items:\n"}
	version, total := 1, 0
	for end := time.Now().Add(*edits); time.Now().Before(end); {
		var changes []change
		for range 1 + rng.IntN(4) {
			from := boundary(text, rng.IntN(len(text)+1))
			to := from
			if rng.IntN(2) == 0 {
				to = boundary(text, min(from+rng.IntN(60), len(text)))
			}
			to = max(from, to)
			piece := pieces[rng.IntN(len(pieces))]
			if rng.IntN(50) == 0 {
				piece = "---\n" + g.object(true)
			}
			changes = append(changes, change{&span{positionOf(text, from), positionOf(text, to)}, piece})
			text = slices.Concat(text[:from], utf16.Encode([]rune(piece)), text[to:])
			total++
		}
		version++
		if err := c.change(ctx, path, version, changes...); err != nil {
			return err
		}
		if rng.IntN(10) == 0 {
			at := positionOf(text, boundary(text, rng.IntN(len(text)+1)))
			params := map[string]any{"textDocument": map[string]any{"uri": uri(path)}, "position": at, "range": span{at, at}, "context": map[string]any{}}
			method := []string{"textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/codeAction"}[rng.IntN(4)]
			if err := c.conn.Call(ctx, method, params, nil); err != nil {
				return fmt.Errorf("%s: %w", method, err)
			}
		}
		if total%500 < 4 { // now and then all is read
			if _, err := c.await(path, version, nil); err != nil {
				return err
			}
		}
		if len(text) > 200_000 || len(text) < 5_000 {
			begin = g.file(20_000)
			text = utf16.Encode([]rune(begin))
			version++
			if err := c.change(ctx, path, version, change{nil, begin}); err != nil {
				return err
			}
		}
	}
	got, err := c.await(path, version, nil)
	if err != nil {
		return err
	}
	again, err := startServer(ctx, *program, folder)
	if err != nil {
		return err
	}
	defer again.stop(ctx)
	if err := again.ready(ctx, g, folder); err != nil {
		return err
	}
	if err := again.open(ctx, path, string(utf16.Decode(text))); err != nil {
		return err
	}
	want, err := again.await(path, 1, nil)
	if err != nil {
		return err
	}
	if !slices.Equal(got.Diagnostics, want.Diagnostics) {
		return errors.New("after the edits the server reports something else than for the same text in a new file")
	}
	fmt.Printf("edits: %d random edits in %v, no crash, the same text\n", total, *edits)
	return nil
}

// boundary moves an index out of pairs: surrogates, and \r\n.
func boundary(text []uint16, i int) int {
	if i > 0 && i < len(text) && (text[i] >= 0xDC00 && text[i] <= 0xDFFF || text[i] == '\n' && text[i-1] == '\r') {
		i--
	}
	return i
}

func positionOf(text []uint16, at int) position {
	p := position{}
	for i := range at {
		p.Character++
		if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			p = position{Line: p.Line + 1}
		}
	}
	return p
}
