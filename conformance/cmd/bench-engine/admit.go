package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
	"github.com/espalier-dev/espalier/crd/cel"
)

// wantedWithRules are objects of CRDs with rules that many clusters have.
var wantedWithRules = []wantedObject{
	{"nodepools.karpenter.sh/v1", 1200},
	{"nodeclaims.karpenter.sh/v1", 1100},
	{"gateways.gateway.networking.k8s.io/v1", 2000},
	{"httproutes.gateway.networking.k8s.io/v1", 2000},
	{"httproutes.gateway.networking.k8s.io/v1", 6000},
	{"grpcroutes.gateway.networking.k8s.io/v1", 2000},
	{"serviceentries.networking.istio.io/v1", 1200},
	{"telemetries.telemetry.istio.io/v1", 1500},
	{"prometheusagents.monitoring.coreos.com/v1alpha1", 2200},
	{"securitypolicies.gateway.envoyproxy.io/v1alpha1", 1600},
	{"backendtrafficpolicies.gateway.envoyproxy.io/v1alpha1", 1800},
	{"tlsroutes.gateway.networking.k8s.io/v1alpha2", 2000},
}

// admit measures everything between the bytes of a request and the bytes for storage, on valid objects: first without
// rules, of the same CRDs as normalize, then with rules.
func admit(set *corpus.Set, rounds int, batch time.Duration) error {
	if err := admitAll(set, "admit", wanted, false, rounds, batch); err != nil {
		return err
	}
	return admitAll(set, "admit with rules", wantedWithRules, true, rounds, batch)
}

func admitAll(set *corpus.Set, title string, list []wantedObject, withRules bool, rounds int, batch time.Duration) error {
	subjects, err := validSubjects(set, list, withRules)
	if err != nil {
		return err
	}
	rows, err := race(subjects, func(s subject) ([]*side, error) { return admitSides(s, withRules) }, rounds, batch)
	if err != nil {
		return err
	}
	fmt.Printf("%s, valid objects, bytes to bytes: decode, prune, nulls, coerce, default, validate, encode; validators built before. %d rounds of %v for each side in turn, the best of each.\n", title, rounds, batch)
	fmt.Printf("%-34s %-9s %7s | %9s %6s | %10s %7s | %9s | %9s %9s\n", "object", "form", "bytes", "ours ns", "allocs", "upstream", "allocs", "scan", "up/ours", "ours/scan")
	summarize(title, subjects, rows, func(s subject, ours, up, scan *side) {
		a, b, c := ours.best(), up.best(), scan.best()
		fmt.Printf("%-34.34s %-9s %7d | %9.0f %6.0f | %10.0f %7.0f | %9.0f | %9.2f %9.2f\n", s.crd, s.form, len(s.object), a, ours.allocs, b, up.allocs, c, b/a, a/c)
	})
	return nil
}

// admitSides prepares the three sides and checks that the two engines admit the object with the same result.
func admitSides(s subject, withRules bool) ([]*side, error) {
	theirs, err := oracle.Compile(s.schema)
	if err != nil {
		return nil, err
	}
	if err := theirs.Prepare(); err != nil {
		return nil, err
	}
	ours, err := espalier.Compile(s.schema, espalier.CompileOptions{})
	if err != nil {
		return nil, err
	}
	options := espalier.AdmitOptions{Validate: espalier.ValidateOptions{Scope: espalier.Namespaced}}
	if withRules {
		set, err := cel.Compile(ours)
		if err != nil {
			return nil, err
		}
		options.Validate.Rules = set
	}
	var out bytes.Buffer
	if err := theirs.Admit(s.object, oracle.Namespaced, &out); err != nil {
		return nil, err
	}
	res, result, err := ours.Admit(s.object, options)
	if err != nil {
		return nil, err
	}
	if err := result.Err(); err != nil {
		return nil, fmt.Errorf("ours refuses the object: %w", err)
	}
	if !bytes.Equal(res.Bytes, bytes.TrimSuffix(out.Bytes(), []byte("\n"))) {
		return nil, errors.New("the two sides do not agree on the result")
	}
	return []*side{
		{name: "ours", once: func() error {
			_, result, err := ours.Admit(s.object, options)
			if err == nil && !result.Valid() {
				err = result.Err()
			}
			return err
		}},
		{name: "upstream", once: func() error {
			out.Reset()
			return theirs.Admit(s.object, oracle.Namespaced, &out)
		}},
		scan(s.object),
	}, nil
}

// validSubjects makes both forms of valid objects.
func validSubjects(set *corpus.Set, wanted []wantedObject, withRules bool) ([]subject, error) {
	var list []subject
	for i, w := range wanted {
		s, ok := set.Find(w.crd)
		if !ok {
			return nil, fmt.Errorf("the corpus has no %s", w.crd)
		}
		schema := s.JSON
		if !withRules {
			root, err := tree.Parse(schema)
			if err != nil {
				return nil, err
			}
			withoutRules(root)
			schema = root.Bytes()
		}
		valid, err := validObject(schema, w.size, uint64(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.crd, err)
		}
		theirs, err := oracle.Compile(schema)
		if err != nil {
			return nil, err
		}
		out := theirs.Normalize(valid.Bytes(), oracle.Request)
		if out.Err != nil {
			return nil, out.Err
		}
		list = append(list, subject{w.crd, "canonical", schema, out.Bytes}, subject{w.crd, "client", schema, asSent(theirs, valid, uint64(i))})
	}
	return list, nil
}

// asSent is an object as a client may have sent it: with unsorted keys, with some unknown fields.
// Where those are not pruned they make the object invalid, and there are none.
func asSent(theirs *oracle.Schema, valid *tree.Node, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	shuffled := valid.Clone()
	shuffle(shuffled, r)
	disturbed := shuffled.Clone()
	for _, name := range []string{"spec", "status"} {
		if part := disturbed.Get(name); part != nil && part.Kind == tree.Object {
			disturb(part, r)
		}
	}
	var out bytes.Buffer
	if theirs.Admit(disturbed.Bytes(), oracle.Namespaced, &out) != nil {
		return shuffled.Bytes()
	}
	return disturbed.Bytes()
}

// withoutRules removes the rules of all schemas in n.
func withoutRules(n *tree.Node) {
	if n.Kind == tree.Object && n.Get("x-kubernetes-validations") != nil && n.Get("x-kubernetes-validations").Kind == tree.Array {
		n.Del("x-kubernetes-validations")
	}
	for _, k := range n.Kids {
		withoutRules(k)
	}
}

// validObject makes an object of about the wanted size that is valid. The generator knows little of what rules demand:
// what is refused is taken out again, and the object nearest in size of some tries is kept.
func validObject(schema []byte, size int, seed uint64) (*tree.Node, error) {
	plan, err := generate.Compile(schema)
	if err != nil {
		return nil, err
	}
	theirs, err := oracle.Compile(schema)
	if err != nil {
		return nil, err
	}
	meta := metadataFor(size)
	var best *tree.Node
	distance := math.MaxInt
	for try := range uint64(80) {
		b := plan.Append(nil, seed<<32+try, generate.Options{Size: size + int(try%8)*size/6, Compact: true, Metadata: meta, Resolve: true})
		root, err := tree.Parse(b)
		if err != nil {
			return nil, err
		}
		unique(root)
		if !repair(theirs, root) {
			continue
		}
		if d := abs(len(root.Bytes()) - size); d < distance {
			best, distance = root, d
		}
		if distance < size/10 {
			break
		}
	}
	if best == nil {
		return nil, errors.New("no try gave a valid object")
	}
	return best, nil
}

var (
	junctorPath = regexp.MustCompile(`\|"([^"]*)" must (?:not )?validate `)
	pathStep    = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)
)

// repair takes out of an object what the reference has against it. It reports whether it succeeded.
func repair(theirs *oracle.Schema, root *tree.Node) bool {
	for range 60 {
		out := theirs.Normalize(root.Bytes(), oracle.Request)
		if out.Err != nil {
			return false
		}
		v := theirs.Validate(out.Bytes, oracle.ValidateOptions{Scope: oracle.Namespaced})
		if v.Valid() {
			return true
		}
		cut := false
		for _, e := range v.Errors {
			f := strings.SplitN(e, "|", 5)
			if len(f) < 5 {
				return false
			}
			path := f[1]
			if m := junctorPath.FindStringSubmatch(e); m != nil {
				path = m[1]
			}
			if f[0] == "FieldValueRequired" && f[3] == "" {
				path = path[:max(strings.LastIndexByte(path, '.'), 0)]
			}
			if cut = cutAt(root, pathStep.FindAllString(path, -1)); cut {
				break // others may be about the same
			}
		}
		if !cut {
			return false
		}
	}
	return false
}

// cutAt removes the value at a path of at least two steps.
func cutAt(n *tree.Node, steps []string) bool {
	if len(steps) < 2 {
		return false
	}
	for len(steps) > 1 {
		i := indexOf(n, steps[0])
		if i < 0 {
			return false
		}
		n, steps = n.Kids[i], steps[1:]
	}
	i := indexOf(n, steps[0])
	if i >= 0 {
		n.Cut(i)
	}
	return i >= 0
}

func indexOf(n *tree.Node, step string) int {
	name := strings.Trim(step, "[]")
	if n.Kind == tree.Array {
		if i, err := strconv.Atoi(name); err == nil && i < len(n.Kids) {
			return i
		}
		return -1
	}
	return n.Find(name)
}
