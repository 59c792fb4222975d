package cel

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/plan"
)

func programsInUse() int {
	table.Lock()
	defer table.Unlock()
	return len(table.programs)
}

func TestEqualRulesAreOneProgram(t *testing.T) {
	const shared = `"s":{"type":"object","properties":{"only":{"type":"string","const-of-this-test":1}},"x-kubernetes-validations":[{"rule":"self.only != 'x'"}]}`
	settle(t, func() bool { return programsInUse() == 0 }) // what other tests have left
	nodes := plan.Count()
	func() {
		a, one := compileSchema(t, specWith(shared+`,"a":{"type":"string"}`, `{"rule":"true"}`))
		b, two := compileSchema(t, specWith(shared+`,"b":{"type":"string"}`, `{"rule":"true"}`))
		if programsInUse() != 0 {
			t.Error("programs are made before they are used")
		}
		if errs, _, _ := attempt(t, one, `{"spec":{"s":{"only":"y"}}}`, "", false); errs != nil {
			t.Error(errs)
		}
		if errs, _, _ := attempt(t, two, `{"spec":{"s":{"only":"y"}}}`, "", false); errs != nil {
			t.Error(errs)
		}
		if n := programsInUse(); n != 3 {
			t.Errorf("there are %d programs, want one for each spec and a shared one", n)
		}
		runtime.KeepAlive([]any{a, b, one, two})
	}()
	settle(t, func() bool { return programsInUse() == 0 && plan.Count() <= nodes })
}

// settle waits until what is not used any more has been collected.
func settle(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d programs and %d nodes", programsInUse(), plan.Count())
		}
		runtime.GC()
	}
}

func TestConcurrentUse(t *testing.T) {
	_, set := compileSchema(t, specWith(everything, `{"rule":"self.l.all(x, x in self.l2) && self.m == self.m2","message":"m"}`))
	done := make(chan string)
	for i := range 8 {
		go func() {
			errs, _, ok := attempt(t, set, anObject, "", i%2 == 0)
			done <- fmt.Sprint(errs, ok)
		}()
	}
	for range 8 {
		if got := <-done; got != "[] true" {
			t.Error(got)
		}
	}
}
