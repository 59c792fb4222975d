package suite

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

//go:embed reasons.txt
var reasonsText string

type fixtureChoice string

const (
	ourFixture      fixtureChoice = "process"
	upstreamFixture fixtureChoice = "original"
)

// Servers that the suite can be run against.
const (
	Espalier        = "espalier"         // ours, as a process
	Upstream        = "upstream"         // upstream's, inside the test, with nothing swapped: the baseline
	UpstreamProcess = "upstream-process" // upstream's, as a process: tells what the swapped fixture changes
)

// Options of a run.
type Options struct {
	Server   string         // one of the above
	Binary   string         // of the server, where it is a process
	Only     *regexp.Regexp // functions to run; nil for all
	Limit    time.Duration  // for one function
	Tenant   string         // of our server, which is tested in its place; empty for none
	Content  string         // what clients send; "" leaves it to them: protobuf for CRDs
	Progress io.Writer
}

// A Result is what became of one function.
type Result struct {
	Function string
	Outcome  string // pass, fail, skip
	Took     time.Duration
	Errors   []string // the first lines that tell why
	Reason   string   // why it is expected not to pass, if it is
}

// Run runs the suite, function by function.
func Run(ctx context.Context, o Options) ([]Result, error) {
	reasons, err := parseReasons(reasonsText)
	if err != nil {
		return nil, err
	}
	choice, kind := ourFixture, "espalier"
	switch o.Server {
	case Espalier:
	case Upstream:
		choice = upstreamFixture
	case UpstreamProcess:
		kind = "upstream"
	default:
		return nil, fmt.Errorf("no server %q: %s, %s or %s", o.Server, Espalier, Upstream, UpstreamProcess)
	}
	binaries, err := prepare(ctx, choice, o.Progress)
	if err != nil {
		return nil, err
	}
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return nil, err
	}
	defer etcd.Stop()
	environment := append(os.Environ(), "KUBE_INTEGRATION_ETCD_URL="+etcd.URL, "SUITE_BINARY="+o.Binary, "SUITE_KIND="+kind, "SUITE_TENANT="+o.Tenant, "SUITE_CONTENT_TYPE="+o.Content)
	var results []Result
	for _, b := range binaries {
		for _, name := range b.functions {
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
			if o.Only != nil && !o.Only.MatchString(name) {
				continue
			}
			r := b.run(ctx, name, environment, o.Limit)
			if choice == ourFixture {
				r.Reason = reasons[name]
			}
			fmt.Fprintf(o.Progress, "%-5s %-60s %6.1f s\n", r.Outcome, name, r.Took.Seconds())
			results = append(results, r)
		}
	}
	return results, nil
}

// run runs one function in a process of its own: one that panics or hangs takes no other with it.
func (b binary) run(ctx context.Context, name string, environment []string, limit time.Duration) Result {
	// The test's own limit prints where it hangs; the process is ended some time later.
	ctx, cancel := context.WithTimeout(ctx, limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.path, "-test.run", "^"+name+"$", "-test.v", "-test.timeout", limit.String())
	cmd.Dir, cmd.Env = b.dir, environment
	began := time.Now()
	out, err := cmd.CombinedOutput()
	r := Result{Function: name, Outcome: "pass", Took: time.Since(began)}
	text := string(out)
	switch {
	case err != nil || !strings.Contains(text, "--- "):
		r.Outcome, r.Errors = "fail", firstErrors(text, err)
	case strings.Contains(text, "--- SKIP: "+name+" "):
		r.Outcome, r.Errors = "skip", firstErrors(text, nil)
	}
	return r
}

// telling are the lines of a test's output that say what went wrong: t.Error's, with file and line, and panics.
var telling = regexp.MustCompile(`^\s+\w+(_test)?\.go:\d+: |^panic: |^\s+Error:`)

func firstErrors(text string, err error) []string {
	var lines, failed []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "--- FAIL: ") && strings.Contains(trimmed, "/") {
			failed = append(failed, trimmed)
		}
		switch {
		case strings.Contains(line, ": starting ") || strings.Contains(line, "feature_gate.go:"):
		case telling.MatchString(line):
			lines = append(lines, strings.TrimSpace(line))
		case len(lines) > 0 && strings.HasPrefix(line, "        ") && len(lines[len(lines)-1]) < 300:
			lines[len(lines)-1] += " " + strings.TrimSpace(line)
		}
	}
	// What a test logs comes before the error that ends it: the last lines tell more than the first.
	lines = lines[max(0, len(lines)-3):]
	lines = append(failed[:min(len(failed), 3)], lines...)
	if len(lines) == 0 && err != nil {
		lines = []string{err.Error()}
	}
	return lines
}

// parseReasons reads lines of a function's name and a reason.
func parseReasons(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(name, "Test") {
			return nil, fmt.Errorf("reasons.txt: %q is not a function and a reason", line)
		}
		reasons[name] = strings.TrimSpace(reason)
	}
	return reasons, nil
}

// Report prints what did not pass, then the count, and returns how many functions passed, and how many failed without a reason.
func Report(w io.Writer, results []Result) (passed, unexplained int) {
	for _, r := range results {
		if r.Outcome == "pass" {
			passed++
			if r.Reason != "" {
				fmt.Fprintf(w, "\n%s passes, and reasons.txt says it cannot: %s\n", r.Function, r.Reason)
			}
			continue
		}
		fmt.Fprintf(w, "\n%s %s\n", r.Outcome, r.Function)
		for _, line := range r.Errors {
			fmt.Fprintf(w, "    %.300s\n", line)
		}
		if r.Reason != "" {
			fmt.Fprintf(w, "    reason: %s\n", r.Reason)
		} else {
			unexplained++
		}
	}
	fmt.Fprintf(w, "\nupstream integration: passed %d of %d\n", passed, len(results))
	return passed, unexplained
}
