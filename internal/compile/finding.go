package compile

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// step is one element of a path into the schema: a keyword, or a keyword and
// a key or an index in its value.
type step struct {
	keyword string
	key     string
	index   int
	kind    stepKind
}

type stepKind uint8

const (
	plain stepKind = iota
	keyed
	indexed
)

// path leads from the root of the schema to one of its parts.
type path []step

// appendField appends the path as upstream writes it.
func (p path) appendField(dst []byte) []byte {
	for _, s := range p {
		if len(dst) > 0 {
			dst = append(dst, '.')
		}
		dst = append(dst, s.keyword...)
		switch s.kind {
		case keyed:
			dst = append(append(append(dst, '['), s.key...), ']')
		case indexed:
			dst = append(strconv.AppendInt(append(dst, '['), int64(s.index), 10), ']')
		}
	}
	return dst
}

// appendPointer appends the path as a JSON pointer.
func (p path) appendPointer(dst []byte) []byte {
	for _, s := range p {
		dst = syntax.AppendToken(dst, s.keyword)
		switch s.kind {
		case keyed:
			dst = syntax.AppendToken(dst, s.key)
		case indexed:
			dst = strconv.AppendInt(append(dst, '/'), int64(s.index), 10)
		}
	}
	return dst
}

// findings collects what a check finds and keeps its size within bounds: n
// findings at depth n have n² bytes of paths.
type findings struct {
	prefix string
	nilTop bool // there is no prefix; upstream then writes the root as <nil>
	list   []finding.Finding
	errors int
	room   [2]int // bytes left, by severity
}

// maxRendered bounds the bytes rendered for the findings of one severity. The
// two have separate budgets so that warnings never hide an error.
const maxRendered = 16 << 20

func (f *findings) full(s finding.Severity) bool { return f.room[s] <= 0 }

// fault is an error or warning of a check about a place.
type fault struct {
	kind   field.ErrorType
	bad    any
	detail string
	offset int
	at     path // appended to the path of the schema
	in     path // the same for the pointer
}

// add makes a finding of a fault at a schema whose path is at.
func (f *findings) add(r checkID, at path, x fault) {
	info := &Checks[r]
	if info.Severity == finding.Error {
		f.errors++
	}
	if f.full(info.Severity) {
		return
	}
	name := x.at.appendField(at.appendField([]byte(f.prefix)))
	if len(name) == 0 && f.nilTop {
		name = append(name, "<nil>"...)
	}
	pointer := x.in.appendPointer(at.appendPointer(nil))
	f.room[info.Severity] -= len(name) + len(pointer) + len(x.detail) + sizeOf(x.bad) + 64
	if len(f.list) == cap(f.list) {
		f.list = slices.Grow(f.list, max(8, len(f.list))) // append would grow by quarters, and copy more
	}
	f.list = append(f.list, finding.Finding{
		Check: info.ID, Severity: info.Severity,
		Type: x.kind, Path: string(name), BadValue: x.bad, Detail: x.detail,
		Pointer: string(pointer), Offset: x.offset,
	})
}

// sizeOf estimates how many bytes rendering x takes.
func sizeOf(x any) int {
	switch x := x.(type) {
	case string:
		return len(x)
	case word:
		return len(x)
	case json.RawMessage:
		return len(x)
	case *string:
		if x != nil {
			return len(*x)
		}
	case *dump:
		return x.size
	case *itemsDump:
		return x.size
	case []string:
		n := 0
		for _, s := range x {
			n += len(s) + 3
		}
		return n
	case []any:
		n := 0
		for _, e := range x {
			n += sizeOf(e) + 4
		}
		return n
	case map[string]any:
		n := 0
		for k, e := range x {
			n += len(k) + sizeOf(e) + 8
		}
		return n
	}
	return 0
}

// sorted returns the findings sorted by path and text, with a note if some are
// missing.
func (f *findings) sorted() []finding.Finding {
	if f.full(finding.Error) || f.full(finding.Warning) {
		r := &Checks[tooManyFindings]
		f.list = append(f.list, finding.Finding{
			Check: r.ID, Severity: r.Severity, Type: field.ErrorTypeTooMany, Path: f.prefix,
			BadValue: len(f.list), Detail: "further findings are left out",
		})
	}
	type keyed struct {
		text string
		at   int
	}
	order := make([]keyed, len(f.list))
	for i := range f.list {
		order[i] = keyed{f.list[i].Error(), i}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(
			cmp.Compare(f.list[a.at].Path, f.list[b.at].Path),
			cmp.Compare(a.text, b.text),
			cmp.Compare(f.list[a.at].Offset, f.list[b.at].Offset),
			cmp.Compare(a.at, b.at),
		)
	})
	out := make([]finding.Finding, len(order))
	for i, k := range order {
		out[i] = f.list[k.at]
	}
	return out
}
