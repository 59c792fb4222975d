package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/forms"
	"github.com/espalier-dev/espalier/conformance/modes"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// A Difference is an input on which the two sides disagree.
type Difference struct {
	What   string // schema, compile, normalize-request, normalize-storage, routes-…, validate-…, rules-costs
	Origin string // where the input came from
	Schema []byte
	Status bool
	Object []byte
	Source oracle.Source
	How    oracle.ValidateOptions // of validate-…, admit-…; the old object of request-…
	Form   *forms.Form            // of request-…
	Mode   string                 // of mode-…, or the compatibility version of crd-…
	At     string                 // compatibility version of rules-version
	Ours   string
	Theirs string
}

// String is a reproducer.
func (d *Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "DIFFERENCE (%s) from %s\nschema:  %s\n", d.What, d.Origin, d.Schema)
	if d.Status {
		b.WriteString("with the status subresource\n")
	}
	if d.Mode != "" {
		fmt.Fprintf(&b, "mode:    %s\n", d.Mode)
	}
	if d.Form != nil {
		fmt.Fprintf(&b, "form:    %s\n", d.Form)
	}
	if d.At != "" {
		fmt.Fprintf(&b, "version: %s\n", d.At)
	}
	if d.Object != nil {
		fmt.Fprintf(&b, "object:  %s\n", printable(d.Object))
	}
	if d.How.Old != nil {
		fmt.Fprintf(&b, "old:     %s\n", printable(d.How.Old))
	}
	if d.How.Scope != oracle.Unscoped {
		fmt.Fprintf(&b, "scope:   %s\n", d.How.Scope)
	}
	fmt.Fprintf(&b, "ours:    %s\ntheirs:  %s\n", printable([]byte(d.Ours)), printable([]byte(d.Theirs)))
	return b.String()
}

// printable shows control characters and invalid UTF-8 as Go escapes, so that a reproducer can be copied.
func printable(b []byte) string {
	s := string(b)
	if !strings.ContainsFunc(s, func(r rune) bool { return r == 0xfffd || r == 0xfeff || r < ' ' && r != '\n' || r == 0x7f }) {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// Schema compares the errors of a schema, those of defaults and rules included. Documents that cannot be decoded need
// only be refused by both. Where the reference crashes as DIVERGENCES.md describes there is nothing to compare with.
func Schema(schema []byte, status bool) (*Difference, oracle.Result) {
	ours, theirs := engine.Check(schema, status), oracle.Check(schema, status)
	if theirs.Panic != nil {
		if crashRow(theirs.Panic) != "" {
			return nil, theirs
		}
		return &Difference{What: "schema", Schema: schema, Status: status, Ours: ours.String(), Theirs: theirs.String()}, theirs
	}
	for try := 0; !equalResults(&ours, &theirs) && !sameContributors(schema, &ours, &theirs); try++ {
		// Of several things wrong with a default the reference names a random one.
		if try < calm && len(theirs.Defaults)+len(theirs.CEL) > 0 && len(ours.Errors) > 0 {
			theirs = oracle.Check(schema, status)
			continue
		}
		if outOfRange(ours.Undecodable) {
			return nil, theirs
		}
		a, b := onlyDifferent(ours, theirs)
		return &Difference{What: "schema", Schema: schema, Status: status, Ours: a, Theirs: b}, theirs
	}
	return nil, theirs
}

func equalResults(ours, theirs *oracle.Result) bool {
	return (ours.Undecodable != nil) == (theirs.Undecodable != nil) && slices.Equal(ours.Errors, theirs.All())
}

// sameContributors reports whether two results differ in nothing but which of several rules with the same cost they name
// as the most expensive ones: the reference meets them in random order.
func sameContributors(schema []byte, ours, theirs *oracle.Result) bool {
	a, b := difference(ours.Errors, theirs.All()), difference(theirs.All(), ours.Errors)
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	costs, _, err := oracle.Costs(schema)
	if err != nil {
		return false
	}
	total := map[string]uint64{}
	for _, c := range costs {
		total[oracle.Path+"."+c.Path] = c.Total
	}
	named := func(list []string) (all []uint64) {
		for _, e := range list {
			path, rest, _ := strings.Cut(e, ": ")
			cost, known := total[path]
			if !known || !strings.HasPrefix(rest, "Forbidden: contributed to estimated rule cost total") {
				return nil
			}
			all = append(all, cost)
		}
		slices.Sort(all)
		return all
	}
	x, y := named(a), named(b)
	return x != nil && slices.Equal(x, y)
}

// outOfRange reports whether a schema was refused for a number (DIVERGENCES.md, schema-number-range).
func outOfRange(err error) bool {
	return err != nil && strings.Contains(err.Error(), "out of the range of a 64-bit float")
}

// onlyDifferent renders two results without the errors that they share.
func onlyDifferent(ours, theirs oracle.Result) (string, string) {
	if ours.Undecodable != nil || theirs.Undecodable != nil {
		return ours.String(), theirs.String()
	}
	return minus(ours.Errors, theirs.All()), minus(theirs.All(), ours.Errors)
}

func minus(a, b []string) string {
	only := difference(a, b)
	if len(only) == 0 {
		return "(nothing besides)"
	}
	return strings.Join(only, "\n         ")
}

// A Pair is one schema compiled by both sides.
type Pair struct {
	schema   []byte
	ours     *engine.Schema
	theirs   *oracle.Schema
	embedded bool // the root itself is an embedded resource
	ruled    bool // it has CEL rules
	neutral  neutral
	mode     func(schema []byte) (*Pair, error) // compiles a schema in the same mode; nil for the way of a server
	strict   *modes.Strict                      // of the mode Strict

	plainOnce sync.Once
	plain     *tree.Node // see plainTree
}

func hasRules(schema []byte) bool {
	return bytes.Contains(schema, []byte(`"x-kubernetes-validations"`))
}

// Compile compiles a schema that both sides accept.
func Compile(schema []byte) (*Pair, *Difference) {
	theirs, theirErr := oracle.Compile(schema)
	ours, ourErr := engine.Compile(schema)
	if theirErr == nil && ourErr == nil {
		var root struct {
			Embedded bool `json:"x-kubernetes-embedded-resource"`
		}
		if err := json.Unmarshal(schema, &root); err != nil {
			return nil, &Difference{What: "compile", Schema: schema, Ours: "compiles", Theirs: err.Error()}
		}
		return &Pair{schema: schema, ours: ours, theirs: theirs, embedded: root.Embedded, ruled: hasRules(schema)}, nil
	}
	if outOfRange(ourErr) {
		return nil, nil
	}
	if ourErr == nil && strings.Contains(theirErr.Error(), "object root default value must be of object type") { // unreachable-root-default
		return nil, nil
	}
	d := &Difference{What: "compile", Schema: schema, Ours: fmt.Sprint(ourErr), Theirs: fmt.Sprint(theirErr)}
	if (theirErr == nil) == (ourErr == nil) {
		d = nil
	}
	return nil, d
}

// patience is how often the reference is asked again when both sides refuse an object in other words: of many things
// to refuse it for, the reference names a random one.
const patience = 20_000

// Normalize compares what becomes of an object. The result is the reference's.
func (p *Pair) Normalize(object []byte, source oracle.Source) (*Difference, oracle.Outcome) {
	tries := patience
	ours, theirs := p.ours.Normalize(object, source), p.theirs.Normalize(object, source)
	if ours.Err == nil || theirs.Err == nil {
		tries = 0 // nothing is random about accepting
	}
	for try := 0; !p.equal(ours, theirs); try++ {
		if try >= tries {
			return p.difference(object, source, ours.String(), theirs.String()), theirs
		}
		theirs = p.theirs.Normalize(object, source)
	}
	return nil, theirs
}

// routes marks the differences that Routes finds.
const routes = "routes-"

// Routes compares the engine's other ways to the same result: without a report, and on a decoded object.
func (p *Pair) Routes(object []byte, source oracle.Source, want oracle.Outcome) *Difference {
	if got := p.ours.Bytes(object, source); !bytes.Equal(got.Bytes, want.Bytes) || (got.Err != nil) != (want.Err != nil) {
		return p.route(object, source, "without a report: "+got.String(), want.String())
	}
	if want.Malformed {
		return nil
	}
	obj, err := oracle.Decode(object)
	if err != nil {
		return nil
	}
	err = p.ours.Value(obj, source)
	if (err != nil) != (want.Err != nil) {
		return p.route(object, source, fmt.Sprintf("as a value: error %v", err), want.String())
	}
	if err != nil {
		return nil
	}
	if got := oracle.Marshal(obj); !bytes.Equal(got, want.Bytes) && !bytes.Equal(got, reread(want.Bytes)) { // value-negative-zero
		return p.route(object, source, "as a value: "+string(got), want.String())
	}
	return nil
}

// reread is what an object becomes when its bytes are read and written once more.
func reread(object []byte) []byte {
	obj, err := oracle.Decode(object)
	if err != nil {
		return nil
	}
	return oracle.Marshal(obj)
}

func (p *Pair) difference(object []byte, source oracle.Source, ours, theirs string) *Difference {
	return &Difference{What: "normalize-" + source.String(), Schema: p.schema, Object: object, Source: source, Ours: ours, Theirs: theirs}
}

func (p *Pair) route(object []byte, source oracle.Source, ours, theirs string) *Difference {
	d := p.difference(object, source, ours, theirs)
	d.What = routes + source.String()
	return d
}

// equal compares outcomes. What the reference finds malformed must only be refused; what it refuses for other reasons
// (metadata, kind, apiVersion) must be refused in the same words.
func (p *Pair) equal(ours, theirs oracle.Outcome) bool {
	switch {
	case theirs.Malformed:
		return ours.Err != nil
	case theirs.Err != nil:
		return ours.Err != nil && !ours.Malformed && ours.Err.Error() == theirs.Err.Error()
	}
	return ours.Err == nil && bytes.Equal(ours.Bytes, theirs.Bytes) &&
		(slices.Equal(ours.Unknown, theirs.Unknown) || capped(ours.Unknown, theirs.Unknown) ||
			p.embedded && slices.Equal(ours.Unknown, slices.Compact(theirs.Unknown))) // embedded-root-twice
}

// strictLimit is how many strict errors the reference's JSON decoder reports for one metadata.
const strictLimit = 100

// capped reports whether theirs are ours without those that the reference's decoder did not list (DIVERGENCES.md,
// metadata-unknown-limit).
func capped(ours, theirs []string) bool {
	if len(theirs) < strictLimit || len(ours) <= len(theirs) {
		return false
	}
	for _, path := range theirs {
		if _, ok := slices.BinarySearch(ours, path); !ok {
			return false
		}
	}
	return true
}
