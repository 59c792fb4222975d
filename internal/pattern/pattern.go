package pattern

import (
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"weak"
)

// Pattern is a regular expression. It is safe for concurrent use.
type Pattern struct {
	expr    string
	prepare sync.Once
	ready   atomic.Pointer[matcher] // nil until the first match
}

// matcher is what a pattern matches with: an automaton, or a regexp where that
// would be too large.
type matcher struct {
	automaton
	general *regexp.Regexp
}

// registry holds the patterns of the process that are in use.
var registry = struct {
	sync.Mutex
	patterns map[string]weak.Pointer[Pattern]
}{patterns: map[string]weak.Pointer[Pattern]{}}

// Compile checks expr and prepares it for matching. Errors are those of
// [regexp.Compile], which has none of its own beyond syntax.
func Compile(expr string) (*Pattern, error) {
	if p := registered(expr); p != nil {
		return p, nil
	}
	if _, err := syntax.Parse(expr, syntax.Perl); err != nil {
		return nil, err
	}
	return register(expr), nil
}

func registered(expr string) *Pattern {
	registry.Lock()
	defer registry.Unlock()
	return registry.patterns[expr].Value()
}

// register returns the pattern that others find from now on: a new one, unless
// another caller was faster.
func register(expr string) *Pattern {
	registry.Lock()
	defer registry.Unlock()
	if p := registry.patterns[expr].Value(); p != nil {
		return p
	}
	// A clone, because expr may be a small part of a large document.
	p := &Pattern{expr: strings.Clone(expr)}
	registry.patterns[p.expr] = weak.Make(p)
	runtime.AddCleanup(p, forget, p.expr)
	return p
}

// forget drops the entry of a pattern that is no longer in use, unless another one
// has taken its place.
func forget(expr string) {
	registry.Lock()
	defer registry.Unlock()
	if registry.patterns[expr].Value() == nil {
		delete(registry.patterns, expr)
	}
}

// String returns the expression.
func (p *Pattern) String() string { return p.expr }

// Match reports whether text contains a match of the pattern.
func (p *Pattern) Match(text []byte) bool {
	m := p.ready.Load()
	if m == nil {
		m = p.build()
	}
	if m.general != nil {
		return m.general.Match(text)
	}
	return m.run(text)
}

func (p *Pattern) build() *matcher {
	p.prepare.Do(func() {
		m := &matcher{}
		if a, ok := newAutomaton(p.expr); ok {
			m.automaton = a
		} else {
			m.general = regexp.MustCompile(p.expr) // Compile has checked it
		}
		p.ready.Store(m)
	})
	return p.ready.Load()
}
