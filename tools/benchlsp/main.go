package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchlsp:", err)
		os.Exit(1)
	}
}

var (
	keys     = flag.Int("keys", 1000, "keys to type in each file")
	crds     = flag.Int("crds", 300, "CRDs in the workspace")
	size     = flag.Int("size", 200_000, "bytes of the file")
	compare  = flag.Int("compare", 0, "documents for which to compare the findings with those of espalier validate")
	edits    = flag.Duration("edits", 0, "how long to type random edits")
	program  = flag.String("program", "", "the program espalier (default: built from this repository)")
	maxP99   = flag.Float64("max-p99", 50, "fail if p99 is above this number of milliseconds")
	maxBytes = flag.Float64("max-memory", 150, "fail if memory is above this number of MB")
	seed     = flag.Uint64("seed", 1, "of objects and edits")
)

func run() error {
	flag.Parse()
	ctx := context.Background()
	archive, err := findArchive()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "espalier-benchlsp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if *program == "" {
		if *program, err = build(ctx, work); err != nil {
			return err
		}
	}
	all, err := readCorpus(archive, *crds)
	if err != nil {
		return err
	}
	folder := filepath.Join(work, "workspace")
	if err := os.MkdirAll(filepath.Join(folder, "crds"), 0o755); err != nil {
		return err
	}
	total := 0
	for _, f := range all {
		total += len(f.text)
		if err := os.WriteFile(filepath.Join(folder, "crds", f.name), f.text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("workspace: %d CRDs, %.1f MB\n", len(all), float64(total)/1e6)
	g := &generator{rng: rand.New(rand.NewPCG(*seed, 0)), crds: all}
	if *compare > 0 {
		if err := compareFindings(ctx, g, folder); err != nil {
			return err
		}
	}
	if *edits > 0 {
		if err := randomEdits(ctx, g, folder); err != nil {
			return err
		}
	}
	return measure(ctx, g, folder)
}

// build builds the program.
func build(ctx context.Context, work string) (string, error) {
	workspace, err := filepath.Abs("../go.work")
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "espalier")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", "..", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/espalier")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+workspace)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building espalier failed: %w\n%s", err, out)
	}
	return path, nil
}

// timing is what typing in one file took.
type timing struct {
	name     string
	p50, p99 time.Duration
	memory   int64
}

// measure types in a file of many objects, and in a file with one large CRD.
func measure(ctx context.Context, g *generator, folder string) error {
	largest := slices.MinFunc(g.crds, func(a, b crdFile) int { return distance(len(a.text), *size) - distance(len(b.text), *size) })
	var worst timing
	for _, f := range []struct{ name, text string }{
		{"objects", g.file(*size)},
		{"one CRD", string(largest.text)},
	} {
		t, err := typeIn(ctx, g, folder, f.name, f.text)
		if err != nil {
			return err
		}
		worst.p50, worst.p99, worst.memory = max(worst.p50, t.p50), max(worst.p99, t.p99), max(worst.memory, t.memory)
	}
	p50, p99, mb := milliseconds(worst.p50), milliseconds(worst.p99), float64(worst.memory)/1e6
	fmt.Printf("lsp: p50 %.1f ms p99 %.1f ms, memory %.0f MB\n", p50, p99, mb)
	if p99 > *maxP99 || mb > *maxBytes {
		return fmt.Errorf("the limits are p99 %.0f ms and %.0f MB", *maxP99, *maxBytes)
	}
	return nil
}

func distance(a, b int) int { return max(a-b, b-a) }

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// typeIn opens a file and types letters at the ends of lines with values, then deletes each.
func typeIn(ctx context.Context, g *generator, folder, name, text string) (*timing, error) {
	c, err := startServer(ctx, *program, folder)
	if err != nil {
		return nil, err
	}
	defer c.stop(ctx)
	path := filepath.Join(folder, "typed.yaml")
	began := time.Now()
	if err := c.ready(ctx, g, folder); err != nil {
		return nil, err
	}
	if err := c.open(ctx, path, text); err != nil {
		return nil, err
	}
	p, err := c.await(path, 1, nil)
	if err != nil {
		return nil, err
	}
	ready := time.Since(began)
	found := len(p.Diagnostics)
	lines := strings.Split(text, "\n")
	rng := rand.New(rand.NewPCG(*seed, 1))
	took := make([]time.Duration, 0, *keys)
	t := &timing{name: name}
	line, column := 0, 0
	before := c.processor()
	for version := 2; len(took) < *keys; version++ {
		at := position{line, column}
		c1 := change{&span{at, position{line, column + 1}}, ""}
		if version%2 == 0 {
			for line = rng.IntN(len(lines)); !strings.Contains(lines[line], ": "); line = rng.IntN(len(lines)) {
			}
			column = len(utf16.Encode([]rune(strings.TrimRight(lines[line], "\"'|>- "))))
			at = position{line, column}
			c1 = change{&span{at, at}, "x"}
		}
		sent := time.Now()
		if err := c.change(ctx, path, version, c1); err != nil {
			return nil, err
		}
		if _, err := c.await(path, version, nil); err != nil {
			return nil, err
		}
		took = append(took, time.Since(sent))
		now, _ := c.memory()
		t.memory = max(t.memory, now)
		time.Sleep(20 * time.Millisecond) // between keys; the collector may run, as it does for people
	}
	_, peak := c.memory()
	processor := (c.processor() - before) / time.Duration(len(took))
	slices.Sort(took)
	t.p50, t.p99 = took[len(took)/2], took[len(took)*99/100]
	fmt.Printf("%s: %.0f KB, %d findings, ready after %.1f s; %d keys: p50 %.1f ms, p99 %.1f ms, slowest %.1f ms, %.1f ms of processor each; memory %.0f MB (peak since the start %.0f MB)\n",
		name, float64(len(text))/1e3, found, ready.Seconds(), len(took), milliseconds(t.p50), milliseconds(t.p99), milliseconds(took[len(took)-1]), milliseconds(processor), float64(t.memory)/1e6, float64(peak)/1e6)
	return t, nil
}

// finding is what both programs say.
type finding struct {
	Rule    string `json:"rule"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	Summary string `json:"summary"` // what the server shows, if not empty
}

// compareFindings compares the server with espalier validate.
func compareFindings(ctx context.Context, g *generator, folder string) error {
	const perFile = 50
	c, err := startServer(ctx, *program, folder)
	if err != nil {
		return err
	}
	defer c.stop(ctx)
	if err := c.ready(ctx, g, folder); err != nil {
		return err
	}
	documents, findings := 0, 0
	for documents < *compare {
		var b strings.Builder
		for range min(perFile, *compare-documents) {
			b.WriteString("---\n" + g.object(true))
			documents++
		}
		path := filepath.Join(folder, fmt.Sprintf("compare-%d.yaml", documents))
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			return err
		}
		want, err := validate(ctx, folder, path)
		if err != nil {
			return err
		}
		got, err := served(ctx, c, path, b.String())
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					return fmt.Errorf("%s: finding %d of %d and %d differs:\nserver:   %+v\nvalidate: %+v", path, i, len(got), len(want), got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
				}
			}
		}
		findings += len(want)
	}
	fmt.Printf("findings: %d documents, %d findings, the same as espalier validate\n", documents, findings)
	return nil
}

func validate(ctx context.Context, folder, path string) ([]finding, error) {
	cmd := exec.CommandContext(ctx, *program, "validate", "--crd", filepath.Join(folder, "crds"), path, "-o", "json", "--config", "none")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, fmt.Errorf("espalier validate: %w", err)
	}
	var report struct {
		Findings    []finding `json:"findings"`
		Diagnostics []finding `json:"diagnostics"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, err
	}
	all := append(report.Findings, report.Diagnostics...)
	for i := range all {
		if all[i].Summary != "" {
			all[i].Message, all[i].Summary = all[i].Summary, ""
		}
	}
	sortFindings(all)
	return all, nil
}

// served returns what the server reports. Its message is the text of the finding, then the fix on another line.
func served(ctx context.Context, c *client, path, text string) ([]finding, error) {
	if err := c.open(ctx, path, text); err != nil {
		return nil, err
	}
	p, err := c.await(path, 1, nil)
	if err != nil {
		return nil, err
	}
	var all []finding
	for _, d := range p.Diagnostics {
		message, _, _ := strings.Cut(d.Message, "\n")
		all = append(all, finding{Rule: d.Code, Line: d.Range.Start.Line + 1, Message: message})
	}
	sortFindings(all)
	return all, nil
}

func sortFindings(all []finding) {
	for i := range all {
		all[i].Message, _, _ = strings.Cut(all[i].Message, "\n")
	}
	slices.SortFunc(all, func(a, b finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Rule+a.Message, b.Rule+b.Message)
	})
}
