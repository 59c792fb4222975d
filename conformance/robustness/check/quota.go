package check

// checkQuota finds namespaces with more objects than their quota admits.
func checkQuota(ix *index, r *report) {
	for _, q := range ix.h.Quotas {
		if q.Count > q.Hard {
			r.add(Violation{Rule: "exceeded"}, "a namespace has %d objects at revision %d, and its quota is %d", q.Count, q.Revision, q.Hard)
		}
	}
}
