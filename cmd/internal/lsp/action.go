package lsp

import (
	"context"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/espalier-dev/espalier/crd/splice"
)

// actionQuickFix is the kind of all actions.
const actionQuickFix = "quickfix"

type actionParams struct {
	TextDocument documentID `json:"textDocument"`
	Range        Range      `json:"range"`
	Context      struct {
		Only []string `json:"only"`
	} `json:"context"`
}

// CodeAction is a fix that the user may choose.
type CodeAction struct {
	Title       string        `json:"title"`
	Kind        string        `json:"kind"`
	Diagnostics []Diagnostic  `json:"diagnostics,omitempty"`
	IsPreferred bool          `json:"isPreferred,omitempty"`
	Edit        workspaceEdit `json:"edit"`
}

type workspaceEdit struct {
	Changes map[string][]TextEdit `json:"changes"`
}

func (s *Server) codeActionRequest(r *jsonrpc2.Request) (func(context.Context) (any, error), error) {
	var p actionParams
	if err := decode(r, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view(p.TextDocument.URI, p.Range.Start)
	var options = s.options.Options
	return func(ctx context.Context) (any, error) {
		actions := []CodeAction{}
		wanted := len(p.Context.Only) == 0
		for _, kind := range p.Context.Only {
			wanted = wanted || kind == "" || kind == actionQuickFix
		}
		if v == nil || !wanted {
			return actions, nil
		}
		return append(actions, s.actions(ctx, v, p.Range, options)...), nil
	}, nil
}

// actions returns the fixes of the findings that a range touches.
func (s *Server) actions(ctx context.Context, v *view, selected Range, options Options) []CodeAction {
	v.read(s.engine)
	generation, _ := s.workspace.state()
	var all []CodeAction
	for _, x := range s.chunk(ctx, v.chunk, generation, s.settingsFor(v.chunk.name), options) {
		d := s.diagnostic(v.text, v.chunk, &x)
		if d.Range.End.Line < selected.Start.Line || d.Range.Start.Line > selected.End.Line {
			continue
		}
		from, to := v.chunk.place(&x)
		object := v.chunk.objectAt(from)
		if object == nil {
			continue
		}
		for _, f := range s.engine.Fixes(object, &x, s.workspace) {
			edits, ok := v.edits(&f, object.Index, object.List, from, to)
			if !ok {
				continue
			}
			all = append(all, CodeAction{Title: f.Title, Kind: actionQuickFix, Diagnostics: []Diagnostic{d}, IsPreferred: f.Preferred,
				Edit: workspaceEdit{Changes: map[string][]TextEdit{v.uri: edits}}})
		}
	}
	return all
}

// edits makes the edits of the text that a fix is.
func (v *view) edits(f *Fix, index int, list string, from, to int) ([]TextEdit, bool) {
	if len(f.Edits) == 0 {
		return []TextEdit{{Range: v.span(from, to), NewText: f.Text}}, true
	}
	edits := make([]splice.Edit, len(f.Edits))
	for i, e := range f.Edits {
		e.Pointer = list + e.Pointer
		if e.From != "" {
			e.From = list + e.From
		}
		edits[i] = e
	}
	before := v.chunk.content
	after, err := splice.Apply([]byte(before), index, edits)
	if err != nil {
		return nil, false
	}
	return v.difference(before, string(after)), true
}

// difference is the smallest edit of whole lines that makes one text of another.
func (v *view) difference(before, after string) []TextEdit {
	begin, end := 0, 0
	for i := 0; i < min(len(before), len(after)) && before[i] == after[i]; i++ {
		if before[i] == '\n' {
			begin = i + 1
		}
	}
	for i := 1; i <= min(len(before), len(after))-begin && before[len(before)-i] == after[len(after)-i]; i++ {
		if i == len(before)-begin || i == len(after)-begin || before[len(before)-i-1] == '\n' && after[len(after)-i-1] == '\n' {
			end = i
		}
	}
	return []TextEdit{{Range: v.span(begin, len(before)-end), NewText: after[begin : len(after)-end]}}
}
