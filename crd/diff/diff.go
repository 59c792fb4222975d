package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
)

// Audience is a set of the clients and objects that a change affects.
type Audience uint8

// The audiences.
const (
	// Writers send objects that were written for the old CRD: now
	// refused, pruned or stored as something else.
	Writers Audience = 1 << iota
	// Readers receive objects: with fields or values that they do not know, or
	// without those that they count on.
	Readers
	// Stored objects lie in etcd: refused on an update, pruned or defaulted
	// when read, or not readable.
	Stored
)

// AllAudiences is the set of all audiences.
const AllAudiences = Writers | Readers | Stored

// String lists the members, as in "writers, stored objects".
func (a Audience) String() string {
	var names []string
	for i, name := range []string{"writers", "readers", "stored objects"} {
		if a>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Level says how bad a change is.
type Level uint8

// The levels, from harmless to bad.
const (
	// Safe changes do not break any client; their audience may notice them.
	Safe Level = iota
	// Risky changes break depending on data or on clients, or cannot be
	// decided: the message says which.
	Risky
	// Breaking changes break the audience for some objects that are valid now.
	Breaking
)

// String returns "safe", "risky" or "breaking".
func (l Level) String() string { return [...]string{"safe", "risky", "breaking"}[l] }

// Severity returns the severity of a finding about a change of this level.
func (l Level) Severity() finding.Severity { return finding.Info - finding.Severity(l) }

// Change is one difference between two CRDs.
type Change struct {
	Check   finding.ID // identifier, one of Checks
	Level   Level      //
	Breaks  Audience   // whom it breaks; for a Safe change who may notice it
	Version string     // of the resource; "v1 to v2" where the storage version changes; empty for the CRD itself
	Path    string     // in objects, such as spec.list[*].name or spec.labels.*; empty for whole objects
	// OldPointer and NewPointer are RFC 6901 pointers into the documents: to
	// what changed or, where it is absent, to what it is absent from.
	OldPointer, NewPointer string
	Old, New               string // the values, shortened; empty if absent
	Message                string // what changed, who breaks, why
	Fix                    string // what to do instead; may be empty
	// Witness proves that the change breaks. Its Object is empty if none was found, or none was searched for.
	Witness Witness
}

// Witness is an object that the old CRD stores, and that the new one refuses or prunes.
type Witness struct {
	Object  string // JSON
	Before  string // for CEL rules about updates: the stored object that Object is to replace
	Refusal string // what the new CRD says
}

// Compare lists the changes from one CRD to another, of either version of the
// API: first those of the CRD itself, then those of each version, sorted by path.
// It fails if it cannot read a schema.
func Compare(old, now *crd.CRD) ([]Change, error) {
	c := newComparer(len(old.JSON) + len(now.JSON))
	if err := c.crds(old, now); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path))
	})
	return c.changes, nil
}

// What a comparison does at most.
const (
	maxChanges = 10_000
	maxText    = 16 << 20 // bytes in paths and messages
	proofSteps = 1 << 17  // places looked at by proofs about logical keywords
)

// comparer holds one comparison.
type comparer struct {
	changes  []Change
	subjects []subject // of the changes of the current version
	text     int
	omitted  bool

	version string
	touched Audience // whom changes of the version can concern

	steps  int // places that may still be looked at
	proofs int // the same, within proofs
	hashes map[*schema]digest

	patterns map[[2]string]containment
	automata int // steps that may still be taken to compare patterns
	parsed   int // rules that may still be parsed

	proving int  // depth of proofs: nothing is reported
	refuted bool // what is to be proven does not hold
}

func newComparer(size int) *comparer {
	return &comparer{
		touched: AllAudiences, steps: 1<<16 + 16*size, proofs: proofSteps, parsed: maxParsedRules, automata: maxAutomata,
		hashes: map[*schema]digest{}, patterns: map[[2]string]containment{},
	}
}

// report notes a change at a place of the current version.
func (c *comparer) report(at *place, x Change) { c.reportOn(subject{at: at}, x) }

// reportOn notes a change, and what a witness of it has to break.
func (c *comparer) reportOn(about subject, x Change) {
	at := about.at
	x.Breaks &= c.touched
	if x.Breaks == 0 && x.Level != Safe {
		x.Level = Safe
	}
	if c.proving > 0 {
		c.refuted = c.refuted || x.Level != Safe && x.Breaks&(Writers|Stored) != 0
		return
	}
	if c.omitted {
		return
	}
	x.Version, x.Path = c.version, at.path()
	if x.Fix == "" && x.Level != Safe {
		x.Fix = fixes[x.Check]
	}
	c.text += len(x.Path) + len(x.Message) + len(x.OldPointer) + len(x.NewPointer)
	if len(c.changes) >= maxChanges || c.text > maxText {
		c.omitted = true
		x = Change{Check: "not-compared", Level: Risky, Breaks: AllAudiences, Version: c.version,
			Message: "the CRDs differ in too many places: further changes are not listed"}
	}
	c.changes = append(c.changes, x)
	c.subjects = append(c.subjects, about)
}

// spend takes n steps of the budget and reports false if none is left, or if a proof has
// failed already.
func (c *comparer) spend(n int) bool {
	if c.proving > 0 {
		c.proofs -= n
		if c.proofs < 0 {
			c.refuted = true
		}
		return !c.refuted
	}
	if c.steps < 0 {
		return false
	}
	if c.steps -= n; c.steps < 0 {
		c.report(nil, Change{Check: "not-compared", Level: Risky, Breaks: AllAudiences,
			Message: "the schemas are too complex to compare completely: changes that were not compared may be breaking"})
		return false
	}
	return true
}
