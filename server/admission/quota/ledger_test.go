package quota

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func quotaOf(revision int, used int64) *corev1.ResourceQuota {
	hard := corev1.ResourceList{"count/a": *resource.NewQuantity(1000, resource.DecimalSI)}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "n", UID: "u", ResourceVersion: strconv.Itoa(revision)},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"count/a": *resource.NewQuantity(used, resource.DecimalSI)}},
	}
}

// TestPendingCoversRequests has requests that reserve, and then write, fail or take
// their time: what is pending is never less than what is on its way, and nothing once
// all time is over.
func TestPendingCoversRequests(t *testing.T) {
	const life = 60
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		l, start := &ledger{}, time.Unix(0, 0)
		l.see(quotaOf(0, 0), start)
		var ends []int // of the requests that are on their way and are going to write
		used, now := int64(0), 0
		for step := range 400 {
			now += random.IntN(3)
			at := start.Add(time.Duration(now) * time.Second)
			switch random.IntN(3) {
			case 0:
				used++
				l.see(quotaOf(step+1, used), at)
				if random.IntN(4) > 0 { // others fail
					ends = append(ends, now+random.IntN(life))
				}
			default:
				for i := 0; i < len(ends); i++ {
					if ends[i] <= now || random.IntN(4) == 0 {
						ends = append(ends[:i], ends[i+1:]...)
						l.settle("count/a", number(1))
						break
					}
				}
			}
			for i := 0; i < len(ends); i++ { // none takes longer than its life
				if ends[i] < now {
					ends = append(ends[:i], ends[i+1:]...)
					l.settle("count/a", number(1))
					i--
				}
			}
			if got := l.pending("count/a", at.Add(-life*time.Second)); got.Value() < int64(len(ends)) {
				t.Fatalf("seed %d, step %d: %d are pending and %d requests on their way", seed, step, got.Value(), len(ends))
			}
		}
		if got := l.pending("count/a", start.Add(time.Duration(now+life+1)*time.Second)); !got.IsZero() {
			t.Errorf("seed %d: %d are pending at the end", seed, got.Value())
		}
	}
}

// TestOwnWritesReserveNothing gets the response of a write before the watch event, and
// after it.
func TestOwnWritesReserveNothing(t *testing.T) {
	now := time.Now()
	l := &ledger{}
	l.see(quotaOf(1, 5), now)
	l.wrote("2")
	l.see(quotaOf(2, 7), now)
	if n := l.pending("count/a", now.Add(-time.Minute)); !n.IsZero() {
		t.Errorf("the answer first: %d", n.Value())
	}
	l.see(quotaOf(3, 9), now)
	l.see(quotaOf(4, 10), now)
	l.wrote("3")
	if n := l.pending("count/a", now.Add(-time.Minute)); n.Value() != 1 {
		t.Errorf("the watch first: %d", n.Value())
	}
	if l.see(quotaOf(5, 11), now) {
		t.Error("a reservation gives reason to count")
	}
	if !l.see(quotaOf(6, 3), now) {
		t.Error("that somebody lowers what is used gives no reason to count")
	}
	l.see(quotaOf(7, 0), now)
	without := quotaOf(8, 0)
	without.Status.Used = nil
	if !l.see(without, now) {
		t.Error("that somebody removes what is used gives no reason to count")
	}
}

// TestReservationsBeforeTheWatch: reservations are the part of status.used without
// stored objects.
func TestReservationsBeforeTheWatch(t *testing.T) {
	now := time.Now()
	l := &ledger{}
	l.see(quotaOf(1, 5), now)
	l.see(quotaOf(2, 6), now)
	l.before(l.quota, corev1.ResourceList{"count/a": number(3)}, now)
	if n := l.pending("count/a", now.Add(-time.Minute)); n.Value() != 3 || !l.complete {
		t.Errorf("%d are pending", n.Value())
	}
}

// TestPartsOfUnits: amounts are exact, whatever their units.
func TestPartsOfUnits(t *testing.T) {
	now, amount := time.Now(), resource.MustParse
	used := func(revision int, text string) *corev1.ResourceQuota {
		q := quotaOf(revision, 0)
		q.Status.Used["count/a"] = amount(text)
		return q
	}
	l := &ledger{}
	for i, text := range []string{"100m", "350m", "1"} {
		l.see(used(i, text), now)
	}
	if rest := l.settle("count/a", amount("300m")); !rest.IsZero() {
		t.Errorf("%s is left of what was reserved", rest.String())
	}
	if n := l.pending("count/a", now.Add(-time.Minute)); n.Cmp(amount("600m")) != 0 {
		t.Errorf("%s is pending", n.String())
	}
	if rest := l.settle("count/a", amount("601m")); rest.Cmp(amount("1m")) != 0 {
		t.Errorf("%s was not reserved", rest.String())
	}
	if rest := l.settle("count/a", amount("-5m")); rest.Cmp(amount("-5m")) != 0 {
		t.Errorf("%s is free", rest.String())
	}
}

func TestTally(t *testing.T) {
	c := tally{}
	c.add(change{10, 100})
	c.add(change{12, -30})
	c.scanned(11, 500)
	c.add(change{11, 7})
	c.add(change{13, 1})
	if c.total != 471 {
		t.Errorf("%d", c.total)
	}
}
