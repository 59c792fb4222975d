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

// crdPrefix marks the differences that CRD finds.
const crdPrefix = "crd-"

func crdKind(o oracle.CRDOptions) string {
	kind := "create"
	if o.Old != nil {
		kind = "update"
	}
	if o.Verbatim {
		kind += "-verbatim"
	}
	return crdPrefix + kind
}

// crdHow is the reverse of crdKind.
func crdHow(what string, old []byte) oracle.CRDOptions {
	return oracle.CRDOptions{Old: old, Verbatim: strings.HasSuffix(what, "-verbatim")}
}

// CRD compares the results of validating a whole CRD, created or changed. The result is the reference's.
func CRD(doc []byte, o oracle.CRDOptions) (*Difference, oracle.CRDResult) {
	ours, theirs := engine.CRD(doc, o), oracle.CRD(doc, o)
	if theirs.Panic != nil && ours.Panic == nil && crashRow(theirs.Panic) != "" {
		return nil, theirs
	}
	for try := 0; !equalCRDs(&ours, &theirs); try++ {
		if len(ours.Errors) > 0 && len(theirs.Errors) > 0 && (try < calm || try < coercions && onlyCoerced(ours.Errors, theirs.Errors)) {
			theirs = oracle.CRD(doc, o)
			continue
		}
		if outOfRange(ours.Undecodable) {
			return nil, theirs
		}
		d := &Difference{What: crdKind(o), Mode: o.Compatibility, Object: doc, Ours: ours.String(), Theirs: theirs.String()}
		d.How.Old = o.Old
		if ours.Undecodable == nil && theirs.Undecodable == nil && ours.Panic == nil && theirs.Panic == nil {
			a, b := slices.Concat(ours.Errors, ours.Warnings), slices.Concat(theirs.Errors, theirs.Warnings)
			d.Ours, d.Theirs = minus(a, b), minus(b, a)
		}
		return d, theirs
	}
	return nil, theirs
}

// coercions is how often the reference is asked again for a default with unknown fields that has another fault. Every one
// of its walks over the default drops unknown fields of metadata if it meets them before the fault, and the error shows
// what is left in the end. It shows all of them in about one of eight answers.
const coercions = 400

// onlyCoerced reports whether errors differ only in how they show defaults with unknown fields.
func onlyCoerced(ours, theirs []string) bool {
	a, b := difference(ours, theirs), difference(theirs, ours)
	return len(a) == len(b) && !slices.ContainsFunc(slices.Concat(a, b), func(e string) bool {
		return !strings.HasSuffix(e, ": must not have unknown fields")
	})
}

// contributor is an error that names one of the most expensive rules. Which ones of equal cost is random; that the costs
// are right is what Schema and Costs compare.
var contributor = regexp.MustCompile(`^.*(: Forbidden: contributed to estimated rule cost total)`)

func equalCRDs(ours, theirs *oracle.CRDResult) bool {
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

// CRDCounts is what has been compared of whole CRDs.
type CRDCounts struct {
	CRDs              atomic.Int64 // of the corpus
	Created, Changed  atomic.Int64 // mutated ones
	Refused, Crashed  atomic.Int64 // by the reference, of all
	Undecoded, Warned atomic.Int64
}

// String is a part of a line of progress.
func (c *CRDCounts) String() string {
	return fmt.Sprintf("CRDs %d, mutated and created %d, mutated and changed %d (refused %d, undecodable %d, with warnings %d, crashes of the reference %d)",
		c.CRDs.Load(), c.Created.Load(), c.Changed.Load(), c.Refused.Load(), c.Undecoded.Load(), c.Warned.Load(), c.Crashed.Load())
}

// crd compares one CRD, taken for a request and verbatim.
func (r *runner) crd(doc, old []byte, origin string) {
	for _, verbatim := range []bool{false, true} {
		d, theirs := CRD(doc, oracle.CRDOptions{Old: old, Verbatim: verbatim})
		if d != nil {
			r.differ(d, origin)
		}
		if verbatim {
			continue
		}
		c := &r.counts.CRDCounts
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

// crds compares the CRDs of the corpus: created, and changed into what they are.
func (r *runner) crds(list []corpus.CRD) {
	r.each(len(list), func(i int) {
		x := &list[i]
		origin := x.Name + " of " + x.Source
		r.crd(x.JSON, nil, origin)
		if d, _ := CRD(x.JSON, oracle.CRDOptions{Old: x.JSON}); d != nil {
			r.differ(d, origin)
		}
		r.counts.CRDs.Add(1)
	})
}

// mutatedCRDs compares mutated CRDs, created and changed.
func (r *runner) mutatedCRDs(g *mutate.CRDs, round uint64) {
	r.each(r.cfg.CRDs, func(i int) {
		seed := r.cfg.Seed + round*uint64(r.cfg.CRDs) + uint64(i)
		m := g.Make(seed)
		r.crd(m.New, nil, fmt.Sprintf("CRD %d of %s %v", seed, m.Base, m.Applied))
		r.counts.Created.Add(1)
		if !bytes.Equal(m.Old, m.New) {
			r.crd(m.New, m.Old, fmt.Sprintf("change %d of %s %v", seed, m.Base, m.Applied))
		} else {
			r.crd(m.Old, m.Old, fmt.Sprintf("no change %d of %s %v", seed, m.Base, m.Applied))
		}
		r.counts.Changed.Add(1)
	})
}
