package migration

import (
	"testing"
	"time"
)

// A migration rests while transactions are slow or users are there, and recovers.
func TestThrottle(t *testing.T) {
	var rate float64 // of users' requests in a second
	var begun float64
	now := time.Now()
	th := &throttle{begun: func() int64 { return int64(begun) }}
	spend := func(n int, took time.Duration) (rest time.Duration) {
		for range n {
			now = now.Add(rest + took)
			begun += rate * (rest + took).Seconds()
			rest = th.after(took, 10, now)
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
	rate = busy / 2 // a user who watches the migration does not slow it down
	if rest := spend(300, 10*time.Millisecond); rest != 0 || th.batch(2) != maxOps-reserved {
		t.Errorf("with an onlooker: rests %v with batches of %d", rest, th.batch(2))
	}
	rate = 100                     // ten times as long as its transactions
	spend(60, 10*time.Millisecond) // until it has noticed
	if rest := spend(30, 2*time.Millisecond); rest < 9*2*time.Millisecond || th.batch(2) > maxOps/4 {
		t.Errorf("with users: rests %v with batches of %d", rest, th.batch(2))
	}
	// Users are rarely at work at the moment when it looks: that must not make it fast.
	for range 500 {
		if rest := spend(1, 2*time.Millisecond); rest < 9*2*time.Millisecond || th.batch(2) > maxOps/4 {
			t.Fatalf("with users who go on: rests %v with batches of %d", rest, th.batch(2))
		}
	}
	if rest := spend(30, 6*time.Millisecond); rest != maxPause*6*time.Millisecond {
		t.Errorf("with users who make it slow: rests %v", rest)
	}
	rate = 20
	spend(300, 2*time.Millisecond)
	if rest := spend(30, 2*time.Millisecond); rest < 3*time.Millisecond || rest > 6*time.Millisecond {
		t.Errorf("with few users: rests %v", rest)
	}
	rate = 0
	if rest := spend(200, 10*time.Millisecond); rest != 0 || th.batch(2) != maxOps-reserved {
		t.Errorf("after the users: rests %v with batches of %d", rest, th.batch(2))
	}
	if th.batch(2) < 2 || th.after(time.Second, 0, now) != 0 {
		t.Error("a batch has an object, and reading costs no pause")
	}
}
