package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/syntax"
)

type schema = syntax.Schema

// place is where in objects the walk is. Steps are linked, and written out only
// for what is reported: schemas may be deep.
type place struct {
	parent *place
	name   string // of a property; "[*]" for items, "*" for values of maps
	named  bool
}

func (p *place) property(name string) *place { return &place{p, name, true} }
func (p *place) items() *place               { return &place{p, "[*]", false} }
func (p *place) values() *place              { return &place{p, "*", false} }

// path renders the place as in spec.list[*].name.
func (p *place) path() string {
	var steps []*place
	for ; p != nil; p = p.parent {
		steps = append(steps, p)
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		switch s := steps[i]; {
		case s.named && (s.name == "" || strings.ContainsAny(s.name, `.[]*"`)):
			b.WriteString("[" + strconv.Quote(s.name) + "]")
		case !s.named && s.name == "[*]":
			b.WriteString(s.name)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// pointer is an RFC 6901 pointer, linked like a place.
type pointer struct {
	parent *pointer
	text   string // tokens, with their slashes
}

func (p *pointer) to(tokens ...string) *pointer {
	var b []byte
	for _, t := range tokens {
		b = syntax.AppendToken(b, t)
	}
	return &pointer{p, string(b)}
}

func (p *pointer) String() string {
	var steps []string
	for ; p != nil; p = p.parent {
		steps = append(steps, p.text)
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

const maxShown = 80

// shorten cuts a value for display.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
