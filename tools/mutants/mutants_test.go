package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const small = "internal/quantities"

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// mutants of a small package are found, compile, and have names of their own. The sample
// depends on the seed only.
func TestMutants(t *testing.T) {
	s, err := read(repository(t), []string{small})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range s.mutants {
		if names[m.ID] {
			t.Errorf("twice: %s", m.ID)
		}
		names[m.ID] = true
	}
	all := s.sample(1000, 1)
	if len(all) < 20 || len(all) > len(s.mutants) {
		t.Fatalf("%d of %d mutants compile", len(all), len(s.mutants))
	}
	ids := func(list []*mutant) (texts []string) {
		for _, m := range list {
			texts = append(texts, m.ID)
		}
		return texts
	}
	if first := ids(s.sample(10, 3)); !slices.Equal(first, ids(s.sample(10, 3))) || slices.Equal(first, ids(s.sample(10, 4))) {
		t.Error("the sample does not follow from the seed")
	}
	for _, wanted := range []string{"> → >= in", "> → <= in", "→ nothing in at++", "e' && text", "0 → 0+1 in"} {
		if !slices.ContainsFunc(all, func(m *mutant) bool { return strings.Contains(m.ID, wanted) }) {
			t.Errorf("no mutant %q in\n%s", wanted, strings.Join(ids(all), "\n"))
		}
	}
}

// The order of arguments of max does not matter, that of other functions does.
func TestSymmetricCalls(t *testing.T) {
	s, err := read(repository(t), []string{"crd/splice"})
	if err != nil {
		t.Fatal(err)
	}
	has := func(text string) bool {
		return slices.ContainsFunc(s.mutants, func(m *mutant) bool { return strings.Contains(m.ID, text) })
	}
	if has("end, colon → colon, end in end = max(end, colon)") {
		t.Error("arguments of max are swapped")
	}
	if !has("colon, text → text, colon in return slices.Concat(key, colon, text), nil") {
		t.Error("arguments of slices.Concat are not swapped")
	}
}

// A change that tests see is noticed, and no file changes.
func TestTry(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a package twice")
	}
	root := repository(t)
	s, err := read(root, []string{small})
	if err != nil {
		t.Fatal(err)
	}
	chosen := s.sample(1000, 1)
	i := slices.IndexFunc(chosen, func(m *mutant) bool { return strings.Contains(m.ID, "> → <= in") })
	m := chosen[i]
	r, err := newRunner(root, s, chosen)
	if err != nil {
		t.Fatal(err)
	}
	if m.number == 0 {
		t.Errorf("%s needs a program of its own", m.ID)
	}
	// In the program that has all mutants, and in one of its own.
	for range 2 {
		if became, err := r.try(t.Context(), m); err != nil || became != byOwn {
			t.Errorf("%s: %v %v", m.ID, became, err)
		}
		m.number = 0
	}
	checkReach(t, r, chosen, i+1)
	now, err := os.ReadFile(m.File)
	if err != nil || string(now) != string(s.contents[m.File]) {
		t.Errorf("%s changed: %v", m.File, err)
	}
	if r.close(); len(s.mutants) == 0 || r.failed[small] == nil {
		t.Error("the tests that failed are not noted")
	}
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left behind", r.dir)
	}
}

// checkReach checks that the tests that call the function of a mutant notice it alone, and
// that tests that call nothing of the package are not among them.
func checkReach(t *testing.T, r *runner, chosen []*mutant, number int) {
	t.Helper()
	s, err := r.shared.suite(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	tests, err := s.tests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reached := s.reached[number]
	if len(reached) == 0 || len(reached) == len(tests) {
		t.Errorf("%s: %d of %d tests call its function", chosen[number-1].ID, len(reached), len(tests))
	}
	if passed, _, err := s.first(t.Context(), number, true); err != nil || passed {
		t.Errorf("%s: passed %t, %v", chosen[number-1].ID, passed, err)
	}
	delete(s.reached, number)
	if passed, _, err := s.first(t.Context(), number, true); err != nil || !passed {
		t.Errorf("%s: tests that do not call its function run: %v", chosen[number-1].ID, err)
	}
}

func TestKnownSurvivors(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "survivors.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all, err := readKnown(write("# comment\n\nequivalent | same value | internal/quantities F: a | b → a in c\n"))
	if err != nil || len(all) != 1 || !all["internal/quantities F: a | b → a in c"].equivalent {
		t.Errorf("%v %v", all, err)
	}
	s, err := read(repository(t), []string{small})
	if err != nil {
		t.Fatal(err)
	}
	if gone := stale(all, s, s.mutants); len(gone) != 1 {
		t.Errorf("a mutant that does not exist is not reported: %v", gone)
	}
	for _, text := range []string{"equivalent | x", "maybe | why | id", "equivalent |  | id", "unnoticed | a | id\nunnoticed | b | id"} {
		if _, err := readKnown(write(text)); err == nil {
			t.Errorf("accepted: %q", text)
		}
	}
	if _, err := readKnown("survivors.txt"); err != nil {
		t.Error(err)
	}
}

// The patches of the repository apply and compile; those that do not say so.
func TestPatches(t *testing.T) {
	s, err := read(repository(t), defaults)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.patches(repository(t), "patches")
	if err != nil || len(all) == 0 {
		t.Errorf("%d patches, %v", len(all), err)
	}
	for text, wrong := range map[string]string{
		"": "the parts", "-- file --\ninternal/quantities/quantities.go\n-- was --\nx\n-- is --\ny\n": "what is wrong",
		"a\n-- file --\ninternal/quantities/quantities.go\n-- was --\nno such text\n-- is --\ny\n":                   "0 times",
		"a\n-- file --\ninternal/quantities/quantities.go\n-- was --\n	MaxLength = 4096\n-- is --\n	MaxLength = x\n": "compile",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.patches(repository(t), dir); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestScore(t *testing.T) {
	var s score
	s.add(byOwn, nil)
	s.add(byNear, nil)
	s.add(survived, nil)
	s.add(survived, &known{equivalent: true})
	const want = "mutants: noticed 2 of 3, equivalent 1; 66.7 %, by the package's own tests 33.3 %; survivors without an explanation 1"
	if s.String() != want {
		t.Error(s.String())
	}
	if s.check(options{least: 66, leastOwn: 33}) != nil || s.check(options{least: 67}) == nil || s.check(options{leastOwn: 34}) == nil {
		t.Error("the bounds are not checked")
	}
}
