package lsp

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

// pause is how long the server waits for the next keystroke before it validates. Fast typists need 60 ms
// for a key; programs that send several changes at once need less than this.
const pause = 5 * time.Millisecond

// The checks that depend on what else the workspace has.
const idCRDMissing finding.ID = "crd-missing"

// schedule validates a file soon. A run that is under way for an older text ends. The caller holds the
// mutex.
func (s *Server) schedule(d *document) {
	if d.cancel != nil {
		d.cancel()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	d.cancel = cancel
	s.running.Go(func() {
		defer cancel()
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		defer s.survive("validating " + d.path)
		s.diagnose(ctx, d)
	})
}

// scheduleOthers validates all open files except one.
func (s *Server) scheduleOthers(except *document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.documents {
		if d != except {
			s.schedule(d)
		}
	}
}

// diagnose validates a file and publishes the result, unless the file changes meanwhile.
func (s *Server) diagnose(ctx context.Context, d *document) {
	s.mu.Lock()
	text, version, chunks, options := d.text, d.version, d.split(), s.options.Options
	skipped := d.skipped
	s.mu.Unlock()
	if skipped {
		return
	}
	settings := s.settingsFor(d.path)
	var crds []CRD
	for i, c := range chunks {
		if ctx.Err() != nil {
			return
		}
		c.parse(s.engine)
		if c.err != nil {
			// Objects of a CRD that is being typed are validated by its last good form.
			s.mu.Lock()
			if good := d.lastGood[i]; good != nil {
				crds = append(crds, good.crds...)
			}
			s.mu.Unlock()
			continue
		}
		crds = append(crds, c.crds...)
	}
	if s.workspace.setOpen(d.path, crds) {
		s.scheduleOthers(d)
	}
	generation, scanned := s.workspace.state()
	out := []Diagnostic{}
	if settings.Excludes(d.path) || s.engine.Fragments(&manifest.File{Name: d.path, Text: []byte(text.content)}) {
		chunks = nil
	}
	suppressed := func(int, finding.ID) bool { return false }
	if len(chunks) > 0 && strings.Contains(text.content, "espalier:ignore") {
		// Comments may be about the whole file.
		whole := &chunk{name: d.path, content: text.content, parsedChunk: &parsedChunk{file: &manifest.File{Name: d.path, Text: []byte(text.content)}}}
		var wrong []report.Diagnostic
		suppressed, wrong = s.engine.Suppressions(whole.file, settings, options)
		for i := range wrong {
			out = append(out, s.diagnostic(text, whole, &wrong[i]))
		}
	}
	before, at := 0, 0 // lines before the chunk, and where they were counted to
	for _, c := range chunks {
		before, at = before+strings.Count(text.content[at:c.offset], "\n"), c.offset
		for _, x := range s.chunk(ctx, c, generation, settings, options) {
			if x.Check == idCRDMissing && !scanned {
				continue // its CRD may come yet
			}
			if suppressed(before+x.Line, x.Check) {
				continue
			}
			out = append(out, s.diagnostic(text, c, &x))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Notifications go out in the order of the mutex: an older result cannot overtake a newer one.
	if ctx.Err() == nil && d.version == version && s.documents[d.uri] == d {
		s.notify("textDocument/publishDiagnostics", publishParams{URI: d.uri, Version: version, Diagnostics: out})
	}
}

// chunk returns what the commands report for a chunk.
func (s *Server) chunk(ctx context.Context, c *chunk, generation int, settings Settings, options Options) []report.Diagnostic {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []report.Diagnostic
	for i, o := range c.objects {
		if ctx.Err() != nil {
			return nil
		}
		if o.APIVersion == "" && o.Kind == "" {
			continue // not a manifest
		}
		b := basis{settings: settings, options: options}
		group, _, ok := strings.Cut(o.APIVersion, "/")
		if !ok {
			group = ""
		}
		if b.crd = s.workspace.Find(GroupKind{group, o.Kind}); b.crd == nil {
			b.generation = generation
		}
		r := &c.results[i]
		if !r.valid || r.basis != b {
			*r = result{valid: true, basis: b, diagnostics: s.engine.Diagnose(o, s.workspace, options, settings)}
		}
		all = append(all, r.diagnostics...)
	}
	if c.err != nil && !template(c.content) {
		all = append(all, s.engine.Syntax(c.file, c.err, settings)...)
	}
	slices.SortStableFunc(all, func(a, b report.Diagnostic) int { return a.Line - b.Line })
	return all
}

// diagnostic translates a finding of a chunk.
func (s *Server) diagnostic(t *text, c *chunk, x *report.Diagnostic) Diagnostic {
	from, to := c.place(x)
	d := Diagnostic{
		Range: t.span(c.offset+from, c.offset+to), Severity: severityOf(x.Severity), Code: string(x.Check), Source: "espalier", Message: message(x),
	}
	if page := s.engine.Page(x.Check); page != "" {
		d.CodeDescription = &codeDescription{Href: page}
	}
	for _, n := range x.Notes {
		related := relatedPlace{Location: Location{URI: pathToURI(c.name), Range: d.Range}, Message: n.Message}
		if n.Line > 0 && n.File != "" && n.File != c.name {
			at := Position{Line: n.Line - 1, Character: utf16Column(n.Excerpt, n.Column)}
			end := Position{Line: n.Line - 1, Character: utf16Column(n.Excerpt, n.EndColumn)}
			related.Location = Location{URI: pathToURI(n.File), Range: Range{Start: at, End: end}}
		}
		d.RelatedInformation = append(d.RelatedInformation, related)
	}
	return d
}

// utf16Column converts a column that counts characters from 1. Without the text of the line characters
// are taken for ASCII.
func utf16Column(line string, column int) int {
	units := 0
	for _, r := range line {
		if column--; column < 1 {
			return units
		}
		units += utf16Length(r)
	}
	return units + max(column-1, 0)
}

// message is what editors show: what is wrong, then what to do.
func message(x *report.Diagnostic) string {
	text := x.Message
	if x.Summary != "" {
		text = x.Summary
	}
	if x.Fix != "" {
		text += "\n" + x.Fix
	}
	return text
}

func severityOf(s finding.Severity) int {
	switch s {
	case finding.Error:
		return severityError
	case finding.Warning:
		return severityWarning
	}
	return severityInformation
}

// place returns where a finding is in the text of the chunk. A place within a CEL expression is extended
// to the name that begins there.
func (c *chunk) place(x *report.Diagnostic) (from, to int) {
	if x.Line == 0 {
		return 0, 0
	}
	from = c.file.Offset(x.Line, x.Column)
	to = c.file.Offset(x.Line, max(x.EndColumn, x.Column))
	if x.EndColumn-x.Column == 1 {
		for to < len(c.content) && isName(c.content[to-1]) && isName(c.content[to]) {
			to++
		}
	}
	if to == from && from < len(c.content) && c.content[from] != '\n' && c.content[from] != '\r' {
		_, n := utf8.DecodeRuneInString(c.content[from:])
		to += n
	}
	return from, to
}

func isName(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

var _ Kinds = (*workspace)(nil)

// objectAt returns the object of a chunk around a byte of it, as far as lines tell.
func (c *chunk) objectAt(offset int) *manifest.Document {
	var best *manifest.Document
	for _, o := range c.objects {
		at := o.At(0)
		if best == nil || c.file.Offset(at.Line, at.Column) <= offset {
			best = o
		}
	}
	return best
}
