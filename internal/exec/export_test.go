package exec

import (
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Valid is the checker's answer.
func Valid(n *plan.Node, d *jsondoc.Doc, typed bool) bool {
	c := newChecker(d, typed)
	defer c.release()
	return c.value(jsondoc.Root, n)
}
