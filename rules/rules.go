package rules

import (
	"runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Options say how rules are compiled. There is nothing to say yet.
type Options struct{}

// Compile returns the rules of a schema, to be given to its Validate.
//
// It does not look at the rules: each is compiled when a value that it applies
// to is first seen, and what is wrong with it is then reported as an error of
// the object, as the API server does. Check finds it before.
func Compile(s *espalier.Schema, _ Options) (*Set, error) { return compilePart(s.Plan(), true) }

// Set is the rules of a schema. It is safe for concurrent use.
type Set struct {
	root     *plan.Node
	resource bool // the root is a resource: rules see its apiVersion, kind and metadata
	lang     *language
	views    *resources
	used     *used
	// disguised are nodes whose rules are compiled for another node.
	disguised map[*plan.Node]*plan.Node
}

var (
	_ exec.Rules     = (*Set)(nil)
	_ espalier.Rules = (*Set)(nil)
)

// compilePart returns the rules of a plan, or of a part of one.
func compilePart(root *plan.Node, resource bool) (*Set, error) {
	l, err := storedLanguage()
	if err != nil {
		return nil, err
	}
	s := &Set{root: root, resource: resource, lang: l, views: new(resources), used: new(used)}
	if root.Flags&plan.RulesBelow != 0 {
		s.disguised = s.views.disguises(root, resource)
	}
	plan.Hold(root)
	runtime.AddCleanup(s, func(u *used) { u.release(root) }, s.used)
	return s, nil
}

// programs returns the compiled rules of a node, nil if they are not to be run.
func (s *Set) programs(n *plan.Node, resource bool) *programs {
	declared := n
	if len(s.disguised) > 0 {
		if d, ok := s.disguised[n]; ok {
			if d == nil {
				return nil
			}
			declared = d
		}
	}
	p := s.used.get(programsKey{n, declared, resource})
	p.compile(s.lang, s.views)
	return p
}
