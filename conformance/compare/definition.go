package compare

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// definitionPrefix marks the differences that Definition finds.
const definitionPrefix = "definition-"

func definitionKind(o oracle.DefinitionOptions) string {
	kind := "create"
	if o.Old != nil {
		kind = "update"
	}
	if o.Verbatim {
		kind += "-verbatim"
	}
	return definitionPrefix + kind
}

// definitionHow is the reverse of definitionKind.
func definitionHow(what string, old []byte) oracle.DefinitionOptions {
	return oracle.DefinitionOptions{Old: old, Verbatim: strings.HasSuffix(what, "-verbatim")}
}

// Definition compares the verdicts on a whole CRD, created or changed. The result is the reference's.
func Definition(doc []byte, o oracle.DefinitionOptions) (*Difference, oracle.DefinitionVerdict) {
	ours, theirs := engine.Definition(doc, o), oracle.Definition(doc, o)
	if theirs.Panic != nil && ours.Panic == nil { // DIVERGENCES.md, reference-crash
		return nil, theirs
	}
	for try := 0; !equalDefinitions(&ours, &theirs); try++ {
		if try < calm && len(ours.Errors) > 0 && len(theirs.Errors) > 0 {
			theirs = oracle.Definition(doc, o)
			continue
		}
		if outOfRange(ours.Undecodable) {
			return nil, theirs
		}
		d := &Difference{What: definitionKind(o), Object: doc, Ours: ours.String(), Theirs: theirs.String()}
		d.How.Old = o.Old
		if ours.Undecodable == nil && theirs.Undecodable == nil && ours.Panic == nil {
			a, b := slices.Concat(ours.Errors, ours.Warnings), slices.Concat(theirs.Errors, theirs.Warnings)
			d.Ours, d.Theirs = minus(a, b), minus(b, a)
		}
		return d, theirs
	}
	return nil, theirs
}

// contributor is an error that names one of the most expensive rules. Which ones of equal cost is random; that the costs
// are right is what Verdict and Costs compare.
var contributor = regexp.MustCompile(`^.*(: Forbidden: contributed to estimated rule cost total)`)

func equalDefinitions(ours, theirs *oracle.DefinitionVerdict) bool {
	if ours.Panic != nil || (ours.Undecodable != nil) != (theirs.Undecodable != nil) {
		return false
	}
	if ours.Undecodable != nil {
		return true
	}
	if !slices.Equal(ours.Warnings, theirs.Warnings) {
		return false
	}
	if slices.Equal(ours.Errors, theirs.Errors) {
		return true
	}
	return slices.Equal(withoutContributors(ours.Errors), withoutContributors(theirs.Errors))
}

func withoutContributors(list []string) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = contributor.ReplaceAllString(e, "$1")
	}
	slices.Sort(out)
	return out
}

// DefinitionCounts is what has been compared of whole CRDs.
type DefinitionCounts struct {
	Definitions       atomic.Int64 // of the corpus
	Created, Changed  atomic.Int64 // mutated ones
	Refused, Crashed  atomic.Int64 // by the reference, of all
	Undecoded, Warned atomic.Int64
}

// String is a part of a line of progress.
func (c *DefinitionCounts) String() string {
	return fmt.Sprintf("definitions %d, mutated and created %d, mutated and changed %d (refused %d, undecodable %d, with warnings %d, crashes of the reference %d)",
		c.Definitions.Load(), c.Created.Load(), c.Changed.Load(), c.Refused.Load(), c.Undecoded.Load(), c.Warned.Load(), c.Crashed.Load())
}

// definition compares one CRD, taken for a request and verbatim.
func (r *runner) definition(doc, old []byte, origin string) {
	for _, verbatim := range []bool{false, true} {
		d, theirs := Definition(doc, oracle.DefinitionOptions{Old: old, Verbatim: verbatim})
		if d != nil {
			r.differ(d, origin)
		}
		if verbatim {
			continue
		}
		c := &r.counts.DefinitionCounts
		switch {
		case theirs.Panic != nil:
			c.Crashed.Add(1)
		case theirs.Undecodable != nil:
			c.Undecoded.Add(1)
		case len(theirs.Errors) > 0:
			c.Refused.Add(1)
		}
		if len(theirs.Warnings) > 0 {
			c.Warned.Add(1)
		}
	}
}

// definitions compares the CRDs of the corpus: created, and changed into what they are.
func (r *runner) definitions(list []corpus.Definition) {
	r.each(len(list), func(i int) {
		x := &list[i]
		origin := x.Name + " of " + x.Source
		r.definition(x.JSON, nil, origin)
		if d, _ := Definition(x.JSON, oracle.DefinitionOptions{Old: x.JSON}); d != nil {
			r.differ(d, origin)
		}
		r.counts.Definitions.Add(1)
	})
}

// mutatedDefinitions compares mutated CRDs, created and changed.
func (r *runner) mutatedDefinitions(g *mutate.Definitions, round uint64) {
	r.each(r.cfg.Definitions, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.Definitions) + uint64(i)
		m := g.Make(seed)
		r.definition(m.New, nil, fmt.Sprintf("definition %d of %s %v", seed, m.Base, m.Applied))
		r.counts.Created.Add(1)
		if !bytes.Equal(m.Old, m.New) {
			r.definition(m.New, m.Old, fmt.Sprintf("change %d of %s %v", seed, m.Base, m.Applied))
		} else {
			r.definition(m.Old, m.Old, fmt.Sprintf("no change %d of %s %v", seed, m.Base, m.Applied))
		}
		r.counts.Changed.Add(1)
	})
}
