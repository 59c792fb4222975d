package lsp

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// document is a file that is open in the editor. The server's mutex protects it.
type document struct {
	uri      string
	path     string // of the file; the URI if it is no file
	version  int
	text     *text
	chunks   []*chunk // of text; nil until they are needed
	skipped  bool     // a language that is not YAML or JSON
	cancel   context.CancelFunc
	lastGood map[int]*chunk // by the number of the chunk: the last one that could be parsed
}

// split returns the chunks of the text. It uses those again that have not changed.
func (d *document) split() []*chunk {
	if d.chunks != nil {
		return d.chunks
	}
	d.chunks = cut(d.path, d.text.content, nil)
	return d.chunks
}

// change sets a new text.
func (d *document) change(t *text) {
	before := d.chunks
	for i, c := range before {
		if c.good() && i < maxChunks {
			if d.lastGood == nil {
				d.lastGood = make(map[int]*chunk)
			}
			d.lastGood[i] = c
		}
	}
	d.text = t
	d.chunks = cut(d.path, t.content, before)
}

// maxChunks bounds what is kept of a file of many documents for the time when they cannot be parsed.
const maxChunks = 1000

// chunk is a part of a file that is parsed on its own. Its content does not change.
type chunk struct {
	name    string
	content string
	offset  int // in the file; the only thing that differs between two uses of a chunk

	*parsedChunk
}

// parsedChunk is shared by the uses of a chunk.
type parsedChunk struct {
	mu      sync.Mutex  // held while the chunk is parsed or validated
	done    atomic.Bool // the next four are set, and do not change any more
	file    *manifest.File
	objects []*manifest.Document
	crds    []CRD
	err     error

	results []result // of objects, by index
}

// result is what was found in an object.
type result struct {
	valid       bool
	basis       basis
	diagnostics []report.Diagnostic
}

// basis is what a result depends on, besides the text.
type basis struct {
	crd        CRD
	generation int // of the set of kinds, if there is no CRD
	settings   Settings
	options    Options
}

// cut splits the text of a file. Chunks of before with the same content are used again.
func cut(name, content string, before []*chunk) []*chunk {
	ends, ok := manifest.Chunks([]byte(content))
	if !ok || len(ends) == 0 {
		ends = []int{len(content)}
	}
	var known map[string]*parsedChunk
	chunks := make([]*chunk, 0, len(ends))
	begin := 0
	for i, end := range ends {
		c := &chunk{name: name, content: content[begin:end], offset: begin}
		if i < len(before) && before[i].content == c.content {
			c.parsedChunk = before[i].parsedChunk
		} else {
			if known == nil {
				known = make(map[string]*parsedChunk, len(before))
				for _, b := range before {
					known[b.content] = b.parsedChunk
				}
			}
			c.parsedChunk = known[c.content]
		}
		if c.parsedChunk == nil {
			c.parsedChunk = &parsedChunk{}
		}
		chunks = append(chunks, c)
		begin = end
	}
	return chunks
}

// good reports whether the chunk has been parsed, and is valid YAML.
func (c *chunk) good() bool { return c.done.Load() && c.err == nil && len(c.objects) > 0 }

// parse reads the objects of the chunk, once.
func (c *chunk) parse(engine Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done.Load() {
		return
	}
	c.file = &manifest.File{Name: c.name, Text: []byte(c.content)}
	c.file.Lines() // finds them now: several goroutines ask for places
	c.objects, c.err = manifest.Objects(c.file)
	for _, o := range c.objects {
		if crd := engine.CRD(o); crd != nil {
			c.crds = append(c.crds, crd)
		}
	}
	c.results = make([]result, len(c.objects))
	c.done.Store(true)
}

// template reports whether the text has template actions, which Helm renders before anything reads it.
func template(content string) bool { return strings.Contains(content, "{{") }
