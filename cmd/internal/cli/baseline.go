package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/finding"
)

// baselineVersion changes when the file changes its meaning.
const baselineVersion = 1

// A baseline has the findings that a project had when it began to use the program. They are
// not reported again: only what is new.
type baseline struct {
	SchemaVersion int             `json:"schemaVersion"`
	Findings      []baselineEntry `json:"findings"`
}

// baselineEntry is a finding without its line, which changes with every edit above it.
type baselineEntry struct {
	baselineKey
	Count int `json:"count,omitempty"` // if it is there more than once
}

type baselineKey struct {
	File    string     `json:"file"` // from the folder of the baseline, with slashes
	Check   finding.ID `json:"check"`
	Object  string     `json:"object,omitempty"`
	Message string     `json:"message"`
}

// maxBaseline bounds the file.
const maxBaseline = 64 << 20

// readBaseline returns how often a finding is in the baseline.
func readBaseline(path string) (map[baselineKey]int, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxBaseline {
		return nil, fmt.Errorf("read the baseline: %s is larger than %d MiB", path, maxBaseline>>20)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the baseline: %w: make it with --write-baseline", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	var b baseline
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("read the baseline %s: %w", path, err)
	}
	if b.SchemaVersion != baselineVersion {
		return nil, fmt.Errorf("read the baseline %s: schemaVersion is %d, and this program reads %d: make it again with --write-baseline", path, b.SchemaVersion, baselineVersion)
	}
	known := make(map[baselineKey]int, len(b.Findings))
	for _, e := range b.Findings {
		known[e.baselineKey] += max(e.Count, 1)
	}
	return known, nil
}

// keyIn is what a finding is known by in the baseline of a folder.
func keyIn(dir string, d *report.Diagnostic) baselineKey {
	file := d.File
	if abs, err := filepath.Abs(file); err == nil {
		if rel, err := filepath.Rel(dir, abs); err == nil {
			file = filepath.ToSlash(rel)
		}
	}
	return baselineKey{file, d.Check, d.Object, d.Message}
}

// folderOf is the folder of a file, as an absolute path.
func folderOf(path string) (string, error) {
	abs, err := filepath.Abs(path)
	return filepath.Dir(abs), err
}

// leaveOut removes the findings of a baseline from a report, and returns how many of the
// baseline are gone.
func leaveOut(r *report.Report, path string) (gone int, err error) {
	known, err := readBaseline(path)
	if err != nil {
		return 0, err
	}
	dir, err := folderOf(path)
	if err != nil {
		return 0, err
	}
	r.Diagnostics = slices.DeleteFunc(r.Diagnostics, func(d report.Diagnostic) bool {
		key := keyIn(dir, &d)
		if known[key] == 0 {
			return false
		}
		known[key]--
		return true
	})
	for _, n := range known {
		gone += n
	}
	return gone, nil
}

// writeBaseline writes the findings of a report, in the order of the report.
func writeBaseline(r *report.Report, path string) error {
	dir, err := folderOf(path)
	if err != nil {
		return err
	}
	b := baseline{SchemaVersion: baselineVersion, Findings: []baselineEntry{}}
	index := map[baselineKey]int{}
	for i := range r.Diagnostics {
		key := keyIn(dir, &r.Diagnostics[i])
		at, twice := index[key]
		if !twice {
			index[key] = len(b.Findings)
			b.Findings = append(b.Findings, baselineEntry{baselineKey: key})
			continue
		}
		b.Findings[at].Count = max(b.Findings[at].Count, 1) + 1
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	return nil
}
