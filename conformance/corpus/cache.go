package corpus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// layout is part of every cache key: raise it when entries, or what is collected, change.
const layout = "3"

// A cache file is one line of JSON (cacheHeader), then the schemas one after the other, before each first one of a CRD the
// CRD.
type cacheHeader struct {
	Name     string
	Unparsed int
	Entries  []cacheEntry
}

type cacheEntry struct {
	Name   string
	Status bool `json:",omitempty"`
	Whole  int  `json:",omitempty"` // length of the CRD; of the first entry only
	Len    int
}

func cacheFile(key string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key = strings.NewReplacer("/", "_", "@", "-").Replace(key)
	return filepath.Join(dir, "espalier-conformance", "corpus-"+layout, key), nil
}

// readCache returns a source's entries if they were converted before. Whatever is wrong with the cache, the answer is
// to convert again.
func readCache(key string, o Options) (*part, bool) {
	file, err := cacheFile(key)
	if err != nil || o.NoCache {
		return nil, false
	}
	began := time.Now()
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, false
	}
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	var h cacheHeader
	if !ok || json.Unmarshal(line, &h) != nil {
		return nil, false
	}
	p := &part{source: Source{Name: h.Name, Unparsed: h.Unparsed, FromCache: true}}
	for _, e := range h.Entries {
		if e.Len < 0 || e.Whole < 0 || e.Whole+e.Len > len(rest) {
			return nil, false
		}
		x := entry{Name: e.Name, Status: e.Status}
		if e.Whole > 0 {
			x.CRD = rest[:e.Whole:e.Whole]
		}
		rest = rest[e.Whole:]
		x.JSON, rest = rest[:e.Len:e.Len], rest[e.Len:]
		p.entries = append(p.entries, x)
	}
	p.count()
	p.source.Convert = time.Since(began)
	return p, true
}

// writeCache stores a source's entries. It renames a finished file into place, because two runs may write at a time.
func writeCache(key string, p *part) error {
	file, err := cacheFile(key)
	if err != nil {
		return nil // no cache directory, no cache
	}
	h := cacheHeader{Name: p.source.Name, Unparsed: p.source.Unparsed}
	var body []byte
	for _, e := range p.entries {
		h.Entries = append(h.Entries, cacheEntry{e.Name, e.Status, len(e.CRD), len(e.JSON)})
		body = append(append(body, e.CRD...), e.JSON...)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(append(line, '\n'), body...))
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	return err
}
