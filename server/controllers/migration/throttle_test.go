package migration

import (
	"testing"
	"time"
)

// A migration rests while transactions are slow or users are there, and recovers.
func TestThrottle(t *testing.T) {
	users := int64(0)
	th := &throttle{load: func() int64 { return users }}
	spend := func(n int, took time.Duration) (rest time.Duration) {
		for range n {
			rest = th.after(took, 10)
		}
		return rest
	}
	if rest := spend(100, 10*time.Millisecond); rest != 0 || th.batch(2) != maxOps-reserved {
		t.Errorf("idle: rests %v with batches of %d", rest, th.batch(2))
	}
	if rest := spend(30, 30*time.Millisecond); rest < 15*time.Millisecond || rest > maxLonely*30*time.Millisecond {
		t.Errorf("slow without users: rests %v", rest)
	}
	if rest := spend(30, 10*time.Millisecond); rest != 0 {
		t.Errorf("idle again: rests %v", rest)
	}
	users = 3
	if rest := spend(30, 2*time.Millisecond); rest < minPause*2*time.Millisecond || th.batch(2) > maxOps/4 {
		t.Errorf("with users: rests %v with batches of %d", rest, th.batch(2))
	}
	if rest := spend(30, 6*time.Millisecond); rest != maxPause*6*time.Millisecond {
		t.Errorf("with users who make it slow: rests %v", rest)
	}
	users = 0
	if rest := spend(200, 10*time.Millisecond); rest != 0 || th.batch(2) != maxOps-reserved {
		t.Errorf("after the users: rests %v with batches of %d", rest, th.batch(2))
	}
	if th.batch(2) < 2 || th.after(time.Second, 0) != 0 {
		t.Error("a batch has an object, and reading costs no pause")
	}
}
