package check

import (
	"cmp"
	"slices"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// checkLeader finds two leaders at a time by their fencing tokens: in the order of
// revisions tokens never go back, and a token has one holder.
func checkLeader(ix *index, r *report) {
	leads := slices.Clone(ix.h.Leads)
	slices.SortStableFunc(leads, func(a, b history.Lead) int { return cmp.Compare(a.Revision, b.Revision) })
	holders := map[int64]string{}
	highest := int64(0)
	for i, lead := range leads {
		if i > 0 && lead.Token < highest {
			r.add(Violation{Rule: "token"}, "%s wrote at revision %d with token %d after token %d was in use", lead.Holder, lead.Revision, lead.Token, highest)
		}
		if i == 0 || lead.Token > highest {
			highest = lead.Token
		}
		if holder, known := holders[lead.Token]; known && holder != lead.Holder {
			r.add(Violation{Rule: "holder"}, "token %d is of %s and of %s, which wrote at revision %d", lead.Token, holder, lead.Holder, lead.Revision)
			continue
		}
		holders[lead.Token] = lead.Holder
	}
}
