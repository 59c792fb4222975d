package quota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
)

// A ledger is the controller's record of one quota: its last state in etcd, and the
// reservations whose objects the watch has not delivered. Quotas and objects come
// from one watch, so the ledger sees a reservation before its object.
//
// A reservation does not name its object. If there are several, a stored object
// removes the oldest. The ledger still counts enough for all running requests, which
// have reserved and not stored their objects yet:
//
//   - Each stored object has removed one reservation. So the queue has at least as
//     many reservations as there are running requests, and they are the youngest.
//   - If no reservation in the queue has expired, all of them count.
//   - If one has expired, the queue still has all younger reservations. Those of the
//     running requests are among them, because a reservation expires only after the
//     maximum time of a request.
type ledger struct {
	quota    *corev1.ResourceQuota // as it was last seen in the watch
	reserved map[corev1.ResourceName][]reservation
	// mine are the revisions of the controller's own last writes, which reserve nothing.
	// The watch may be behind by both steps of a limit.
	mine [2]string
	// complete says that reservations of before the watch are in the queue.
	complete bool
	// took is how long it took to count what the quota limits.
	took time.Duration
}

// reservation is how much status.used was raised by one write.
type reservation struct {
	at       time.Time
	amount   resource.Quantity
	revision string
}

// see records a new state of the quota. It reports whether the controller must act: a
// client has changed the limits, or has lowered or removed status.used.
func (l *ledger) see(q *corev1.ResourceQuota, now time.Time) (changed bool) {
	before := l.quota
	l.quota = q
	if before == nil || before.UID != q.UID {
		l.reserved = map[corev1.ResourceName][]reservation{}
		l.complete = len(q.Status.Used) == 0
		return true
	}
	if slices.Contains(l.mine[:], q.ResourceVersion) {
		return false
	}
	for name := range q.Status.Hard {
		used, counted := q.Status.Used[name]
		more := less(used, before.Status.Used[name])
		switch {
		case !counted:
			changed = true // also if it was 0
		case more.Sign() > 0:
			l.reserved[name] = append(l.reserved[name], reservation{now, more, q.ResourceVersion})
		case more.Sign() < 0:
			changed = true
		}
	}
	return changed || !equality.Semantic.DeepEqual(before.Spec, q.Spec) || !quotav1.Equals(q.Status.Hard, q.Spec.Hard)
}

// wrote notes that a revision is the controller's own, which the watch may have
// brought already.
func (l *ledger) wrote(revision string) {
	l.mine = [2]string{l.mine[1], revision}
	for name, queue := range l.reserved {
		l.reserved[name] = slices.DeleteFunc(queue, func(r reservation) bool { return r.revision == revision })
	}
}

// settle removes an amount that objects now use from the oldest reservations. It
// returns the rest of the amount, which was not reserved. If objects have become
// smaller, amount and rest are negative.
func (l *ledger) settle(name corev1.ResourceName, amount resource.Quantity) (rest resource.Quantity) {
	queue := l.reserved[name]
	for amount.Sign() > 0 && len(queue) > 0 {
		taken := amount
		if queue[0].amount.Cmp(taken) < 0 {
			taken = queue[0].amount
		}
		amount = less(amount, taken)
		if queue[0].amount = less(queue[0].amount, taken); queue[0].amount.IsZero() {
			queue = queue[1:]
		}
	}
	if len(queue) == 0 {
		queue = nil // and its array
	}
	l.reserved[name] = queue
	return amount
}

// pending drops the reservations from before since, and returns the sum of the others.
func (l *ledger) pending(name corev1.ResourceName, since time.Time) resource.Quantity {
	queue := l.reserved[name]
	for len(queue) > 0 && queue[0].at.Before(since) {
		queue = queue[1:]
	}
	l.reserved[name] = queue
	sum := number(0)
	for _, r := range queue {
		sum.Add(r.amount)
	}
	return sum
}

// less returns a quantity without another; both stay as they are.
func less(a, b resource.Quantity) resource.Quantity {
	a = a.DeepCopy()
	a.Sub(b)
	return a
}

// A tally is the bytes of the objects of a namespace: those of a scan, and those of
// the changes after its revision.
type tally struct {
	known    bool
	total    int64
	revision int64    // of the scan
	since    []change // that came while the scan was going on
}

type change struct{ revision, bytes int64 }

// add notes a change.
func (t *tally) add(c change) {
	switch {
	case !t.known:
		t.since = append(t.since, c)
	case c.revision > t.revision:
		t.total += c.bytes
	}
}

// scanned notes the sum at a revision.
func (t *tally) scanned(revision, total int64) {
	t.known, t.revision, t.total = true, revision, total
	since := t.since
	t.since = nil
	for _, c := range since {
		t.add(c)
	}
}

// before adds the reservations from before the watch began: the amounts in
// status.used of q for which there is neither an object nor a reservation in the queue.
// They expire as late as reservations that are made now.
//
// q is the quota, and there has the amounts of the stored objects, both as of now.
// status.used of q includes the reservations that the watch has delivered until now.
func (l *ledger) before(q *corev1.ResourceQuota, there corev1.ResourceList, now time.Time) {
	l.complete = true
	for name, used := range q.Status.Used {
		unknown := less(used, there[name])
		for _, r := range l.reserved[name] {
			if !r.at.After(now) {
				unknown.Sub(r.amount)
			}
		}
		if unknown.Sign() > 0 {
			l.reserved[name] = append(l.reserved[name], reservation{at: now, amount: unknown})
		}
	}
}
