package espaliertest_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

// spoilt are the bugs of the guide, and what the test says of each.
var spoilt = map[string]struct {
	spoil func(*controller)
	says  string
}{
	"stale-cache":           {func(c *controller) { c.list = c.listFromCache }, `three Webs have [12] ports`},
	"ignored-conflict":      {func(c *controller) { c.enlist = c.enlistOnce }, `three Webs have [012] entries in the sitemap`},
	"non-idempotent-create": {func(c *controller) { c.createPage = c.createGenerated }, `three Webs have [4-9] pages`},
}

// TestSpoiltWebs fails, for the test that runs it in a process of its own.
func TestSpoiltWebs(t *testing.T) {
	bug, ok := spoilt[os.Getenv("ESPALIERTEST_BUG")]
	if !ok {
		t.Skip("it is to fail: TestExploreFindsBugs runs it")
	}
	espaliertest.Explore(t, 100, func(t *testing.T, config *rest.Config) {
		c := newController(config)
		bug.spoil(c)
		checkWebs(t, config, c)
	}, espaliertest.CRDs("testdata/webs.yaml"))
}

var (
	repeat    = regexp.MustCompile(`espaliertest: seed (\d+) fails\. To repeat it: go test -run '(\S+)'\n`)
	schedules = regexp.MustCompile(`(?m)^ *--- (?:PASS|FAIL): TestSpoiltWebs/`)
	heading   = regexp.MustCompile(`(?m)^ *(?:---|===) `)
	onWire    = regexp.MustCompile(`(?m)^ +\d+\.\d{3}s +(\d+ .*)$`)
)

// TestExploreFindsBugs: Explore fails for each bug of the guide, says how to repeat
// the failure, and the same fails again then, after the same events.
func TestExploreFindsBugs(t *testing.T) {
	for bug, c := range spoilt {
		t.Run(bug, func(t *testing.T) {
			out := runSpoilt(t, bug, "TestSpoiltWebs")
			if !regexp.MustCompile(c.says).MatchString(out) {
				t.Errorf("it does not say %q:\n%s", c.says, out)
			}
			found := repeat.FindStringSubmatch(out)
			if found == nil {
				t.Fatalf("it does not say how to repeat it:\n%s", out)
			}
			t.Logf("%s: found by seed %s, after %d schedules", bug, found[1], len(schedules.FindAllString(out, -1)))
			again := runSpoilt(t, bug, found[2])
			if n := len(schedules.FindAllString(again, -1)); n != 1 {
				t.Errorf("-run %s runs %d schedules:\n%s", found[2], n, again)
			}
			_, out, _ = strings.Cut(out, found[0])
			out = heading.Split(out, 2)[0]
			if before, after := events(out), events(again); before == "" || before != after {
				t.Errorf("the events are\n%s\nand were\n%s", after, before)
			}
		})
	}
}

// events are those on the wire, without times.
func events(out string) string {
	var b strings.Builder
	for _, m := range onWire.FindAllStringSubmatch(out, -1) {
		b.WriteString(m[1] + "\n")
	}
	return b.String()
}

// runSpoilt runs tests that fail.
func runSpoilt(t *testing.T, bug, run string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.timeout", "5m", "-test.run", run)
	cmd.Env = append(os.Environ(), "ESPALIERTEST_BUG="+bug)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("it does not fail: %v\n%s", err, out)
	}
	return string(out)
}

// TestSameSeedSameOrder has the example's controller repeat a schedule.
func TestSameSeedSameOrder(t *testing.T) {
	const seed = 48 // a schedule of many faults
	times := espaliertest.Repetitions(5)
	orders := espaliertest.Repeat(t, seed, times, func(t *testing.T, config *rest.Config) {
		checkWebs(t, config, newController(config))
	}, espaliertest.CRDs("testdata/webs.yaml"))
	checkSame(t, orders, times)
}

// TestWorkersAreRepeated has several goroutines make requests at the same time.
func TestWorkersAreRepeated(t *testing.T) {
	const seed, workers = 4, 4
	times := espaliertest.Repetitions(4)
	orders := espaliertest.Repeat(t, seed, times, func(t *testing.T, config *rest.Config) {
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		var wait sync.WaitGroup
		for i := range workers {
			wait.Go(func() {
				page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("page-", i)}}
				for range 5 {
					// Whatever comes of it: the next step follows.
					_, _ = maps.Create(t.Context(), page, metav1.CreateOptions{})
					if got, err := maps.Get(t.Context(), page.Name, metav1.GetOptions{}); err == nil {
						got.Data = map[string]string{"n": got.ResourceVersion}
						_, _ = maps.Update(t.Context(), got, metav1.UpdateOptions{})
					}
					_ = maps.Delete(t.Context(), page.Name, metav1.DeleteOptions{})
				}
			})
		}
		wait.Wait()
	})
	checkSame(t, orders, times)
	// They do take turns: no worker is done before another one begins.
	for i := range workers {
		if first := strings.Index(orders[0], fmt.Sprint("page-", i)); first > len(orders[0])/2 {
			t.Errorf("the workers are not mixed:\n%s", orders[0])
		}
	}
}

// checkSame fails if orders differ, or are about too little.
func checkSame(t *testing.T, orders []string, times int) {
	t.Helper()
	if len(orders) != times {
		t.Fatalf("%d of %d runs", len(orders), times)
	}
	same := 0
	for _, order := range orders {
		if order == orders[0] {
			same++
		} else {
			t.Errorf("another order:\n%s\ninstead of\n%s", order, orders[0])
		}
	}
	if faults := strings.Count(orders[0], "["); faults < 5 {
		t.Errorf("the schedule has only %d faults:\n%s", faults, orders[0])
	}
	t.Logf("the same order of %d events %d of %d times", strings.Count(orders[0], "\n"), same, times)
}
