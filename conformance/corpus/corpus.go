package corpus

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed modules.txt
var manifest string

// A Schema is the openAPIV3Schema of one or more versions of CRDs.
type Schema struct {
	Name   string // of the first CRD that has it, and the version: certificates.cert-manager.io/v1
	Source string // module or archive
	JSON   []byte // compact, keys sorted
	Status bool   // whether one of its versions has the status subresource
	Copies int    // how many versions of CRDs have it
}

// A CRD is a whole document of apiextensions.k8s.io/v1.
type CRD struct {
	Name   string // certificates.cert-manager.io
	Source string
	JSON   []byte // compact, keys sorted
}

// A Source is a module or an archive, with what was found in it.
type Source struct {
	Name              string
	CRDs, Versions    int // distinct CRD documents within this source, and their versions
	WithRules         int // CRDs with CEL rules
	Unparsed          int // YAML files that mention CRDs and do not parse
	Download, Convert time.Duration
	FromCache         bool
}

// A Set is a loaded corpus. Total counts distinct CRD documents per source, Versions their versions with a schema.
type Set struct {
	Schemas   []Schema
	CRDs      []CRD // the distinct ones
	Sources   []Source
	Total     int
	WithRules int
	Versions  int
	Took      time.Duration
}

// Options choose the sources. The zero value loads every module and the archive if it can be found.
type Options struct {
	Short     bool      // only the modules marked short
	NoModules bool      // only the archive
	NoArchive bool      // only the modules
	Seeds     bool      // CRDs around the schemas of this repository as well, so that there always is a source
	NoCache   bool      // convert again, and write the cache
	Archive   string    // the archive's file; default: $ESPALIER_CORPUS, or ../shared/corpus beside the repository
	Progress  io.Writer // nil for silence
	Parallel  int       // downloads and conversions at a time, at most 4; default 2
}

// Modules lists the pinned modules as path@version.
func Modules(short bool) []string {
	var mods []string
	for line := range strings.Lines(manifest) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if !short || slices.Contains(f[1:], "short") {
			mods = append(mods, f[0])
		}
	}
	return mods
}

// Load collects the corpus. The order of its schemas depends on the sources only.
func Load(ctx context.Context, o Options) (*Set, error) {
	began := time.Now()
	var jobs []job
	if o.Seeds {
		jobs = append(jobs, seedSource{})
	}
	if !o.NoModules {
		for _, m := range Modules(o.Short) {
			jobs = append(jobs, module(m))
		}
	}
	if !o.NoArchive {
		if file := findArchive(o.Archive); file != "" {
			jobs = append(jobs, archive(file))
		} else if o.Archive != "" {
			return nil, fmt.Errorf("corpus archive %s: no such file", o.Archive)
		}
	}
	if len(jobs) == 0 {
		return nil, errors.New("corpus: no sources: no modules wanted and no archive found")
	}
	parts, err := runAll(ctx, jobs, o)
	if err != nil {
		return nil, err
	}
	set := merge(parts)
	set.Took = time.Since(began)
	return set, nil
}

// findArchive returns the archive's path, or "" if there is none. ESPALIER_CORPUS with a file that does not exist does
// without it.
func findArchive(given string) string {
	candidates := []string{given}
	if named := os.Getenv("ESPALIER_CORPUS"); given == "" && named != "" {
		candidates = []string{named}
	} else if dir, err := os.Getwd(); given == "" && err == nil {
		for range 5 {
			candidates = append(candidates, filepath.Join(dir, "shared", "corpus", "crds.tar.gz"))
			dir = filepath.Dir(dir)
		}
	}
	for _, c := range candidates {
		if info, err := os.Stat(c); c != "" && err == nil && !info.IsDir() {
			return c
		}
	}
	return ""
}

type job interface {
	name() string
	load(ctx context.Context, o Options, say func(string, ...any)) (*part, error)
}

// A part is what one source yields: every version of every distinct CRD of it, in order.
type part struct {
	source  Source
	entries []entry
}

type entry struct {
	Name   string
	Status bool
	CRD    []byte // the whole of it, for its first version: the number of these is the number of CRDs
	JSON   []byte
}

func runAll(ctx context.Context, jobs []job, o Options) ([]*part, error) {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		if o.Progress != nil {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(o.Progress, format+"\n", args...)
		}
	}
	parallel := min(o.Parallel, 4)
	if parallel <= 0 {
		parallel = 2
	}
	parts := make([]*part, len(jobs))
	errs := make([]error, len(jobs))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := ctx.Err(); err != nil {
				errs[i] = err
				return
			}
			p, err := j.load(ctx, o, say)
			if err != nil {
				errs[i] = fmt.Errorf("corpus %s: %w", j.name(), err)
				return
			}
			parts[i] = p
			s := p.source
			say("corpus %s: %d CRDs, %d versions, %d files unparsed (download %v, convert %v%s)", s.Name, s.CRDs, s.Versions,
				s.Unparsed, s.Download.Round(time.Millisecond), s.Convert.Round(time.Millisecond), cached(s.FromCache))
		})
	}
	wg.Wait()
	return parts, errors.Join(errs...)
}

func cached(yes bool) string {
	if yes {
		return ", cached"
	}
	return ""
}

// merge joins the parts and folds schemas with equal bytes into one.
func merge(parts []*part) *Set {
	set := &Set{}
	seen := map[[32]byte]int{}
	whole := map[[32]byte]bool{}
	for _, p := range parts {
		set.Sources = append(set.Sources, p.source)
		set.Total += p.source.CRDs
		set.WithRules += p.source.WithRules
		set.Versions += p.source.Versions
		for _, e := range p.entries {
			if bytes.HasPrefix(e.CRD, []byte(`{"apiVersion":"apiextensions.k8s.io/v1",`)) {
				if key := sha256.Sum256(e.CRD); !whole[key] {
					whole[key] = true
					name, _, _ := strings.Cut(e.Name, "/")
					set.CRDs = append(set.CRDs, CRD{name, p.source.Name, e.CRD})
				}
			}
			key := sha256.Sum256(e.JSON)
			if at, ok := seen[key]; ok {
				set.Schemas[at].Copies++
				set.Schemas[at].Status = set.Schemas[at].Status || e.Status
				continue
			}
			seen[key] = len(set.Schemas)
			set.Schemas = append(set.Schemas, Schema{Name: e.Name, Source: p.source.Name, JSON: e.JSON, Status: e.Status, Copies: 1})
		}
	}
	return set
}

// Bytes is the total size of the distinct schemas.
func (s *Set) Bytes() (n int) {
	for i := range s.Schemas {
		n += len(s.Schemas[i].JSON)
	}
	return n
}

// Unparsed is the number of files that were skipped.
func (s *Set) Unparsed() (n int) {
	for _, src := range s.Sources {
		n += src.Unparsed
	}
	return n
}

// Find returns the schema of a CRD's version (plural.group/version).
func (s *Set) Find(name string) (Schema, bool) {
	for _, x := range s.Schemas {
		if x.Name == name {
			return x, true
		}
	}
	return Schema{}, false
}
