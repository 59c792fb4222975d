package releases

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed modules.txt
var modules string

// Project is a module and its releases, oldest first. Releases of another major version may have another module path.
type Project struct {
	Name     string
	Releases []string // module@version
}

// Projects returns what modules.txt lists: lines of a name, a module and its versions. Lines of the same name continue
// each other.
func Projects() (list []Project) {
	for line := range strings.Lines(modules) {
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(line, "#") {
			continue
		}
		i := slices.IndexFunc(list, func(p Project) bool { return p.Name == words[0] })
		if i < 0 {
			list = append(list, Project{Name: words[0]})
			i = len(list) - 1
		}
		for _, v := range words[2:] {
			list[i].Releases = append(list[i].Releases, words[1]+"@"+v)
		}
	}
	return list
}

// CRD is one CRD of a release.
type CRD struct {
	Name string
	File string
	JSON json.RawMessage
}

// Pair is a CRD in two consecutive releases that differ.
type Pair struct {
	Project, CRD     string
	OldName, NewName string // releases
	Old, New         []byte
}

// Pairs returns the pairs of a project, and how many of its releases could be had. CRDs that did not change, but for
// descriptions and annotations, are no pair.
func Pairs(ctx context.Context, p Project, say func(string, ...any)) (list []Pair, loaded int, err error) {
	var before map[string]CRD
	var release string
	for _, r := range p.Releases {
		crds, err := Load(ctx, r, say)
		if err != nil {
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
			say("%s: %v", r, err)
			continue
		}
		loaded++
		now := map[string]CRD{}
		for _, c := range crds {
			// A release may have a CRD in several files, for example in a chart: the first one counts.
			if _, ok := now[c.Name]; !ok {
				now[c.Name] = c
			}
		}
		names := make([]string, 0, len(now))
		for name := range now {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			was, ok := before[name]
			if ok && !bytes.Equal(bare(was.JSON), bare(now[name].JSON)) {
				list = append(list, Pair{p.Name, name, release, r, was.JSON, now[name].JSON})
			}
		}
		before, release = now, r
	}
	return list, loaded, nil
}

// Cached returns those of the releases that were downloaded before.
func Cached(list []string) (cached []string) {
	for _, r := range list {
		if file, err := cacheFile(r); err == nil {
			if _, err := os.Stat(file); err == nil {
				cached = append(cached, r)
			}
		}
	}
	return cached
}

func cacheFile(release string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "espalier-conformance", "releases-1", strings.NewReplacer("/", "_", "@", "-").Replace(release)+".json.gz"), nil
}

// bare returns a CRD without its metadata and descriptions.
func bare(crd []byte) []byte {
	var v map[string]any
	if json.Unmarshal(crd, &v) != nil {
		return crd
	}
	delete(v, "metadata")
	delete(v, "status")
	out, err := json.Marshal(withoutDescriptions(v))
	if err != nil {
		return crd
	}
	return out
}

func withoutDescriptions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if _, text := x.(string); text && k == "description" {
				delete(v, k)
				continue
			}
			v[k] = withoutDescriptions(x)
		}
	case []any:
		for i := range v {
			v[i] = withoutDescriptions(v[i])
		}
	}
	return v
}

// Load returns the CRDs of a release, sorted by name and file: from the cache, or from the module, which is downloaded and
// deleted again.
func Load(ctx context.Context, release string, say func(string, ...any)) ([]CRD, error) {
	file, err := cacheFile(release)
	if err != nil {
		return nil, err
	}
	if data, err := os.ReadFile(file); err == nil {
		var list []CRD
		zr, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			err = json.NewDecoder(zr).Decode(&list)
		}
		if err == nil {
			return list, nil
		}
	}
	say("%s: downloading", release)
	list, err := download(ctx, release)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	if err := json.NewEncoder(zw).Encode(list); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return list, os.WriteFile(file, buf.Bytes(), 0o644)
}

// download fetches a module with the go command, which verifies it, into a module cache of its own.
func download(ctx context.Context, release string) ([]CRD, error) {
	tmp, err := os.MkdirTemp("", "espalier-releases-")
	if err != nil {
		return nil, err
	}
	defer func() {
		clean := exec.Command("chmod", "-R", "u+w", tmp) // the go command makes its cache read-only
		_ = clean.Run()
		os.RemoveAll(tmp)
	}()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", release)
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PWD="+tmp, "GOMODCACHE="+filepath.Join(tmp, "cache"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var info struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &info); jsonErr == nil && info.Error != "" {
		return nil, errors.New(info.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("go mod download failed: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return read(info.Dir)
}

// read returns the CRDs in the YAML files below a folder. Files that are not YAML, such as templates, are left out.
func read(dir string) (list []CRD, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == "testdata" || e.Name() == "test" || e.Name() == "tests" {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte("CustomResourceDefinition")) {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		for doc := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
			if c, ok := parse(doc); ok {
				c.File = rel
				list = append(list, c)
			}
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b CRD) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File)) })
	return list, err
}

func parse(doc []byte) (c CRD, ok bool) {
	if !bytes.Contains(doc, []byte("CustomResourceDefinition")) {
		return c, false
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Names struct {
				Plural string `json:"plural"`
			} `json:"names"`
		} `json:"spec"`
	}
	data, err := yaml.YAMLToJSON(doc)
	if err != nil || json.Unmarshal(data, &head) != nil {
		return c, false
	}
	if head.Kind != "CustomResourceDefinition" || head.APIVersion != "apiextensions.k8s.io/v1" || head.Metadata.Name == "" || head.Spec.Names.Plural == "" {
		return c, false
	}
	return CRD{Name: head.Metadata.Name, JSON: data}, true
}
