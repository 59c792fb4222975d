package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

// settingsName is the file that sets severities and exclusions for the tree
// below it.
const settingsName = ".espalier.yaml"

// off is the severity of a check that is turned off.
const off = "off"

// settings are those of a file.
type settings struct {
	// Checks sets the severity of checks: error, warning, info or off.
	Checks map[finding.ID]string `json:"checks,omitempty"`
	// Rules is the old name of Checks, which files still use. settings moves it to Checks.
	Rules map[finding.ID]string `json:"rules,omitempty"`
	// Exclude lists patterns of files that are not read unless they are named
	// themselves, and of files for which some checks are turned off.
	Exclude []exclusion `json:"exclude,omitempty"`
	// CRDs lists files, folders and patterns with CRDs, as --crd does.
	CRDs []string `json:"crds,omitempty"`
	// FailOn is the least severity of findings with which check and validate exit with 1, or never.
	FailOn string `json:"failOn,omitempty"`
	// Baseline is the file with findings that are known.
	Baseline string `json:"baseline,omitempty"`
	// Waivers lists changes that diff does not report.
	Waivers []waiver `json:"waivers,omitempty"`
	// Cluster names the cluster of the project.
	Cluster clusterSettings `json:"cluster,omitzero"`

	dir string // of the file: patterns are relative to it
}

// clusterSettings name a cluster by a context of the user's own kubeconfig. They cannot name a kubeconfig: the file may
// come with a cloned repository, and a kubeconfig names programs to run.
type clusterSettings struct {
	Context string `json:"context,omitempty"`
}

type exclusion struct {
	Path   string       `json:"path"`
	Checks []finding.ID `json:"checks,omitempty"` // none means all: the file is not read
	Rules  []finding.ID `json:"rules,omitempty"`  // the old name of Checks
}

// UnmarshalJSON accepts a bare pattern, too.
func (e *exclusion) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return yaml.UnmarshalStrict(b, &e.Path)
	}
	type plain exclusion
	return yaml.UnmarshalStrict(b, (*plain)(e))
}

// settings reads the file of --config, or the nearest one.
func (a *App) settings() (*settings, error) {
	path := a.config
	switch path {
	case "none":
		return &settings{}, nil
	case "":
		if path = nearestSettings(); path == "" {
			return &settings{}, nil
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &settings{dir: filepath.Dir(path)}
	if err := yaml.UnmarshalStrict(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.New(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: ")))
	}
	if err := s.renameRules(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for id, severity := range s.Checks {
		if severity == "false" { // what a bare off is in YAML 1.1
			severity = off
			s.Checks[id] = off
		}
		if _, known := checkByID(id); !known {
			return nil, fmt.Errorf("%s: there is no check %q: '%s checks' lists them", path, id, a.Name)
		}
		if _, err := finding.ParseSeverity(severity); err != nil && severity != off {
			return nil, fmt.Errorf("%s: check %s: use error, warning, info or off, not %q", path, id, severity)
		}
	}
	if _, err := failLevel(s.FailOn); err != nil {
		return nil, fmt.Errorf("%s: failOn: %w", path, err)
	}
	for i := range s.Waivers {
		if err := s.Waivers[i].check(); err != nil {
			return nil, fmt.Errorf("%s: waivers: %w", path, err)
		}
	}
	for _, e := range s.Exclude {
		if !doublestar.ValidatePattern(e.Path) || e.Path == "" {
			return nil, fmt.Errorf("%s: %q is not a pattern", path, e.Path)
		}
		for _, id := range e.Checks {
			if _, known := checkByID(id); !known {
				return nil, fmt.Errorf("%s: there is no check %q: '%s checks' lists them", path, id, a.Name)
			}
		}
	}
	return s, nil
}

// renameRules moves what files call rules, the old name, to checks.
func (s *settings) renameRules() error {
	if s.Checks != nil && s.Rules != nil {
		return errBothNames
	}
	if s.Rules != nil {
		s.Checks, s.Rules = s.Rules, nil
	}
	for i := range s.Exclude {
		e := &s.Exclude[i]
		if e.Checks != nil && e.Rules != nil {
			return fmt.Errorf("exclude %q: %w", e.Path, errBothNames)
		}
		if e.Rules != nil {
			e.Checks, e.Rules = e.Rules, nil
		}
	}
	return nil
}

var errBothNames = errors.New("both checks and rules are set: rules is the old name of checks, keep only checks")

// Excluded returns which files and folders the settings exclude from reading.
func (a *App) Excluded() (func(path string) bool, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	return s.excludes, nil
}

// nearestSettings looks in this folder and above it, up to the root of the
// repository.
func nearestSettings() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return settingsAbove(dir)
}

// settingsAbove looks in a folder and above it.
func settingsAbove(dir string) string {
	for {
		path := filepath.Join(dir, settingsName)
		if _, err := os.Stat(path); err == nil {
			return path
		} else if !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		parent := filepath.Dir(dir)
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || parent == dir {
			return ""
		}
		dir = parent
	}
}

// expand returns the files that paths name, without those that the settings exclude or that
// git ignores.
func (s *settings) expand(ctx context.Context, paths []string) ([]string, error) {
	ignored := ignored(ctx, paths)
	return manifest.Expand(paths, func(path string) bool { return s.excludes(path) || ignored(path) })
}

// crds are the files, folders and patterns with CRDs that the settings name.
func (s *settings) crds() (paths []string) {
	for _, p := range s.CRDs {
		paths = append(paths, filepath.Join(s.dir, filepath.FromSlash(p)))
	}
	return paths
}

// excludes reports whether a file or folder is not to be read.
func (s *settings) excludes(path string) bool {
	return slices.ContainsFunc(s.Exclude, func(e exclusion) bool { return len(e.Checks) == 0 && s.matches(e.Path, path) })
}

func (s *settings) matches(pattern, path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, abs)
	if err != nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	pattern = strings.TrimSuffix(pattern, "/")
	return doublestar.MatchUnvalidated(pattern, rel) || doublestar.MatchUnvalidated(pattern+"/**", rel)
}

// want sets the severity of a diagnostic from the settings, and reports whether to show it: whether its severity
// is at least least, and its check is not turned off.
func (s *settings) want(d *report.Diagnostic, least finding.Severity) bool {
	for _, e := range s.Exclude {
		if slices.Contains(e.Checks, d.Check) && s.matches(e.Path, d.File) {
			return false
		}
	}
	if name, set := s.Checks[d.Check]; set {
		if name == off {
			return false
		}
		d.Severity, _ = finding.ParseSeverity(name) // settings() has checked it
	}
	return d.Severity.AtLeast(least)
}

// choose keeps the diagnostics of a report that are wanted, in order.
func (s *settings) choose(r *report.Report, least finding.Severity) {
	kept := r.Diagnostics[:0]
	for _, d := range r.Diagnostics {
		if s.want(&d, least) {
			kept = append(kept, d)
		}
	}
	r.Diagnostics = kept
	r.Sort()
}
