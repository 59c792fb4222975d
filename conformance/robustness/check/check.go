package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// The names of the checkers.
const (
	Linear     = "linear"
	Log        = "log"
	Watch      = "watch"
	Lists      = "lists"
	Monotonic  = "monotonic"
	Fresh      = "fresh" // read your writes, on any replica
	Schema     = "schema"
	Caches     = "cache"
	Garbage    = "garbage"
	Leader     = "leader"
	Quota      = "quota"
	Corruption = "corruption"
)

// A Violation is something that no correct server does.
type Violation struct {
	Checker string
	Rule    string // which promise of the checker, in one word
	Key     string // resource/name, if one key is concerned
	Message string
	// Operations, Sessions and Writes are indices into the history.
	Operations []int
	Sessions   []int
	Events     []int // of the first of Sessions
	Writes     []int
}

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s", v.Checker, v.Rule)
	if v.Key != "" {
		fmt.Fprintf(&b, " %s", v.Key)
	}
	fmt.Fprintf(&b, ": %s", v.Message)
	for _, part := range []struct {
		name    string
		indices []int
	}{{"operations", v.Operations}, {"sessions", v.Sessions}, {"events", v.Events}, {"writes", v.Writes}} {
		if len(part.indices) > 0 {
			fmt.Fprintf(&b, " [%s %s]", part.name, strings.Trim(fmt.Sprint(part.indices), "[]"))
		}
	}
	return b.String()
}

// checkers are in the order of All's answer: the log first, because what it finds is
// often the cause of the rest.
var checkers = []struct {
	name  string
	check func(*index, *report)
}{
	{Corruption, checkCorruption},
	{Log, checkLog},
	{Linear, checkLinear},
	{Watch, checkWatch},
	{Lists, checkLists},
	{Monotonic, checkMonotonic},
	{Fresh, checkFresh},
	{Schema, checkSchema},
	{Caches, checkCaches},
	{Garbage, checkGarbage},
	{Leader, checkLeader},
	{Quota, checkQuota},
}

// Names returns the names of all checkers.
func Names() []string {
	names := make([]string, len(checkers))
	for i, c := range checkers {
		names[i] = c.name
	}
	return names
}

// All returns what is wrong with a history: nothing if everything is as promised.
func All(h *history.History) []Violation { return run(h, "") }

// One is All for one checker.
func One(h *history.History, checker string) []Violation {
	if !slices.Contains(Names(), checker) {
		return nil
	}
	return run(h, checker)
}

func run(h *history.History, checker string) []Violation {
	if h == nil {
		return nil
	}
	ix := newIndex(h)
	var all []Violation
	for _, c := range checkers {
		if checker != "" && checker != c.name {
			continue
		}
		r := report{checker: c.name, perRule: map[string]int{}}
		c.check(ix, &r)
		all = append(all, r.violations...)
	}
	return all
}

// ruleLimit bounds the violations of one rule: a server that breaks a promise all the
// time must not fill the disk with what is said about it.
const ruleLimit = 20

type report struct {
	checker    string
	violations []Violation
	perRule    map[string]int
}

// add keeps a violation. Arguments of the message are formatted only if it is kept.
func (r *report) add(v Violation, format string, args ...any) {
	r.perRule[v.Rule]++
	if r.perRule[v.Rule] > ruleLimit {
		return
	}
	v.Checker = r.checker
	v.Message = fmt.Sprintf(format, args...)
	r.violations = append(r.violations, v)
}
