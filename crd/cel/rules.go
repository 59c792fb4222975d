package cel

import (
	"runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Compile returns the rules of a schema, to be given to its Validate.
//
// It does not look at the rules: each is compiled when a value that it applies
// to is first seen, and what is wrong with it is then reported as an error of
// the object, as the API server does. Check finds it before.
func Compile(s *espalier.Schema) (*espalier.Rules, error) {
	compiled, err := compilePart(bridge.Plan(s), true)
	if err != nil {
		return nil, err
	}
	return bridge.Rules(compiled).(*espalier.Rules), nil
}

// set is the rules of a schema. It is safe for concurrent use.
type set struct {
	root     *plan.Node
	resource bool // the root is a resource: rules see its apiVersion, kind and metadata
	lang     *language
	views    *resources
	used     *used
	// substituted are nodes whose rules are compiled for another node.
	substituted map[*plan.Node]*plan.Node
}

var _ exec.Rules = (*set)(nil)

// compilePart returns the rules of a plan, or of a part of one.
func compilePart(root *plan.Node, resource bool) (*set, error) {
	l, err := storedLanguage()
	if err != nil {
		return nil, err
	}
	s := &set{root: root, resource: resource, lang: l, views: new(resources), used: new(used)}
	if root.Flags&plan.RulesBelow != 0 {
		s.substituted = s.views.substitutions(root, resource)
	}
	plan.Hold(root)
	runtime.AddCleanup(s, func(u *used) { u.release(root) }, s.used)
	return s, nil
}

// programs returns the compiled rules of a node, nil if they are not to be run.
func (s *set) programs(n *plan.Node, resource bool) *programs {
	declared := n
	if len(s.substituted) > 0 {
		if d, ok := s.substituted[n]; ok {
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
