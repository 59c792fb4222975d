package diff

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/crd/witness"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// subject is what a witness of a change has to break.
type subject struct {
	at      *place
	keyword string       // that the new CRD refuses an object for
	rule    *syntax.Rule // if the keyword is x-kubernetes-validations
	hint    string       // JSON of a value that may be refused
	doubt   string       // the part of the message that says why nothing was proven
	// decidable changes are Breaking with a witness, and Risky without one.
	decidable bool
}

// structural are the changes besides demands and rules that a witness can show, and the keyword that the new CRD
// refuses the object for; it is empty if it prunes fields, or refuses the object at the place in any way.
var structural = map[finding.ID]string{
	"additional-properties-closed": "", "embedded-changed": "", "field-removed": "", "field-specified": "", "int-or-string-removed": "",
	"list-map-keys-changed": "", "list-type-changed": "", "nullable-removed": "nullable", "preserve-removed": "", "type-changed": "",
}

const noWitness = " (Espalier found no object that the old CRD accepts and the new one rejects)"

// decide searches for a witness of each change that breaks, or may break, writers or stored objects. A change with a witness
// is Breaking. Without one, a change is Risky if only an object can decide it.
func (c *comparer) decide(changes []Change, pair *witness.Pair) {
	var open []int // the changes without a witness
	for i := range changes {
		if x, about := &changes[i], &c.subjects[i]; searchable(x, about) && settle(x, about, pair.Glance) != witness.Found {
			open = append(open, i)
		}
	}
	for _, i := range open {
		x, about := &changes[i], &c.subjects[i]
		if settle(x, about, pair.Find) == witness.NotFound && about.decidable && x.Level == Breaking {
			x.Level = Risky
			x.Message += noWitness
		}
	}
}

// searchable reports whether a witness can show that a change breaks something.
func searchable(x *Change, about *subject) bool {
	if x.Level == Safe || x.Breaks&(Writers|Stored) == 0 {
		return false
	}
	if !about.decidable {
		keyword, ok := structural[x.Check]
		if !ok || x.Level != Breaking {
			return false
		}
		about.keyword = keyword
	}
	return true
}

// settle searches for a witness of a change.
func settle(x *Change, about *subject, find func(witness.Focus) (witness.Witness, witness.Result)) witness.Result {
	focus := witness.Focus{Path: about.at.steps(), Keyword: about.keyword, Rule: about.rule}
	if about.hint != "" {
		focus.Hints = []string{about.hint}
	}
	w, result := find(focus)
	if result == witness.Found {
		x.Level = Breaking
		x.Witness = Witness{string(w.Object), string(w.Before), w.Refusal}
		x.Message = strings.Replace(x.Message, about.doubt, "", 1)
	}
	return result
}

// steps returns the place as a path of a witness.
func (p *place) steps() (list []witness.Step) {
	for ; p != nil; p = p.parent {
		switch {
		case p.named:
			list = append(list, witness.Step{Name: p.name})
		case p.name == "[*]":
			list = append(list, witness.Step{Into: witness.Item})
		default:
			list = append(list, witness.Step{Into: witness.Value})
		}
	}
	slices.Reverse(list)
	return list
}

// encoded returns a text as JSON.
func encoded(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil { // no text fails
		return nil
	}
	return b
}
