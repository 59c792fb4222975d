package webhook

import "testing"

// A handler that returns at its deadline releases what it holds before the write that
// it has begun adds the rest.
func TestLateAnswersDoNotCount(t *testing.T) {
	t.Parallel()
	b := &budget{hosts: map[string]int64{}}
	ctx, release := Hold(t.Context())
	h := ctx.Value(holdKey{}).(*hold)
	for _, when := range []string{"before", "after"} {
		if !b.take("webhook", countStep) {
			t.Fatal("there is no room")
		}
		if when == "after" {
			release()
		}
		h.add(func() { b.give("webhook", countStep) })
	}
	if b.total != 0 || len(b.hosts) != 0 {
		t.Errorf("%d bytes are still counted, of %v", b.total, b.hosts)
	}
}
