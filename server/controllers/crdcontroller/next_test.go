package crdcontroller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/catalog"
)

// group is the names of a few CRDs.
type group []*catalog.Entry

func (g group) On(s catalog.Space, name string) (on []*catalog.Entry) {
	for _, e := range g {
		is := func(have string) bool { return have == name }
		if slices.ContainsFunc(slices.Collect(e.Names.All(s)), is) || slices.ContainsFunc(slices.Collect(e.Accepted.All(s)), is) {
			on = append(on, e)
		}
	}
	return on
}

// asking is a CRD that has not been looked at. names are plural,
// singular, kind, list kind and then short names.
func asking(revision uint64, names string) *catalog.Entry {
	n := named(names)
	return &catalog.Entry{Name: n.Plural + ".example.com", Group: "example.com", Revision: revision, Generation: 1, Names: n}
}

// having is a CRD that got all its names.
func having(revision uint64, names string) *catalog.Entry {
	e := asking(revision, names)
	e.Accepted = e.Names
	return e
}

// wanting is one that has some and asks for others.
func wanting(revision uint64, has, asks string) *catalog.Entry {
	e := having(revision, has)
	e.Names = named(asks)
	return e
}

func named(names string) catalog.Names {
	f := strings.Fields(names)
	n := catalog.Names{Plural: f[0], Singular: f[1], Kind: f[2], ListKind: f[3]}
	if len(f) > 4 {
		n.ShortNames = f[4:]
	}
	return n
}

func spelled(n *catalog.Names) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", n.Plural, n.Singular, n.Kind, n.ListKind, strings.Join(n.ShortNames, " ")))
}

func TestAward(t *testing.T) {
	const apples = "apples apple Apple AppleList"
	for _, test := range []struct {
		name            string
		others          group
		e               *catalog.Entry
		want            string
		reason, message string
		contended       bool
	}{
		{name: "nobody else", e: asking(9, apples+" ap"), want: apples + " ap"},
		{name: "others with other names", others: group{having(1, "pears pear Pear PearList p")}, e: asking(9, apples), want: apples},
		{name: "kinds and resources are different spaces", others: group{having(1, "pears Apple apple apples")}, e: asking(9, apples), want: apples},
		{name: "names of its own twice", e: asking(9, "sheep sheep Sheep SheepList sheep"), want: "sheep sheep Sheep SheepList sheep"},

		{"singular", group{having(1, "pears apple Pear PearList")}, asking(9, apples), "apples  Apple AppleList", "SingularConflict", `"apple" is already in use`, true},
		{"plural is another's short name", group{having(1, "pears pear Pear PearList apples")}, asking(9, apples), " apple Apple AppleList", "PluralConflict", `"apples" is already in use`, true},
		{"kind is another's list kind", group{having(1, "pears pear Pear Apple")}, asking(9, apples), "apples apple  AppleList", "KindConflict", `"Apple" is already in use`, true},
		{"list kind", group{having(1, "pears pear Pear AppleList")}, asking(9, apples), "apples apple Apple ", "ListKindConflict", `"AppleList" is already in use`, true},
		{"one of the short names", group{having(1, "pears pear Pear PearList a")}, asking(9, apples+" a b"), apples, "ShortNamesConflict", `"a" is already in use`, true},
		{"two short names", group{having(1, "pears pear Pear PearList a b")}, asking(9, apples+" a b c"), apples, "ShortNamesConflict", `["a" is already in use, "b" is already in use]`, true},
		{"the last conflict is told", group{having(1, "pears apple Apple PearList a")}, asking(9, apples+" a"), "apples   AppleList", "KindConflict", `"Apple" is already in use`, true},

		{"loser keeps what it had", group{having(1, "pears pear Pear PearList b")}, wanting(9, apples+" a", apples+" b"), apples + " a", "ShortNamesConflict", `"b" is already in use`, true},
		{name: "short name it has already", e: wanting(9, apples+" a", apples+" a b"), want: apples + " a b"},
		{name: "short names given up", e: wanting(9, apples+" a b", apples), want: apples},
		{name: "its own name under another heading", e: wanting(9, apples, apples+" apple"), want: apples, reason: "ShortNamesConflict", message: `"apple" is already in use`},

		{"asked before", group{asking(10, "pears pear Pear PearList a")}, asking(9, apples+" a"), apples + " a", "", "", true},
		{"asked after", group{asking(8, "pears pear Pear PearList a")}, asking(9, apples+" a"), apples, "ShortNamesConflict", `"a" is already in use`, true},
		{"who asked before gets nothing because of another", group{having(1, "figs fig Fig FigList x"), asking(8, "pears pear Pear PearList x a")}, asking(9, apples+" a"), apples + " a", "", "", true},
		{"a chain: the first shuts out the second", group{asking(1, "figs fig Fig FigList x"), asking(2, "pears pear Pear PearList x a")}, asking(9, apples+" a"), apples + " a", "", "", true},
		{"a longer chain", group{asking(1, "figs fig Fig FigList x"), asking(2, "pears pear Pear PearList x y"), asking(3, "plums plum Plum PlumList y a")}, asking(9, apples+" a"), apples, "ShortNamesConflict", `"a" is already in use`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := append(slices.Clone(test.others), test.e)
			a := newRegistrar(all).award(test.e)
			want := named0(test.want)
			if got := spelled(&a.names); got != spelled(&want) {
				t.Errorf("got %q, want %q", got, spelled(&want))
			}
			status, reason, message := v1.ConditionTrue, "NoConflicts", "no conflicts found"
			if test.reason != "" {
				status, reason, message = v1.ConditionFalse, test.reason, test.message
			}
			if c := a.condition; c.Status != status || c.Reason != reason || c.Message != message {
				t.Errorf("condition %s %s %q", c.Status, c.Reason, c.Message)
			}
			if a.contended != test.contended {
				t.Errorf("contended is %v", a.contended)
			}
		})
	}
}

// named0 is named for incomplete names: two spaces in a row stand for a missing one.
func named0(names string) catalog.Names {
	f := strings.Split(names, " ")
	return catalog.Names{Plural: f[0], Singular: f[1], Kind: f[2], ListKind: f[3], ShortNames: f[4:]}
}

// In any order of processing CRDs that ask for the same names, the same ones get them,
// and no name is given twice.
func TestAwardIsTheSameForAll(t *testing.T) {
	const n = 60
	var g group
	for i := range n {
		shortNames := fmt.Sprintf(" s%d s%d", i%7, (i*5)%11)
		g = append(g, asking(uint64(100+(i*37)%n), fmt.Sprintf("p%d q%d K%d L%d", i, i%13, i%17, i)+shortNames))
	}
	owner := map[string]string{}
	for _, e := range g {
		a := newRegistrar(g).award(e)
		for _, s := range []catalog.Space{catalog.Resources, catalog.Kinds} {
			seen := map[string]bool{}
			for name := range a.names.All(s) {
				key := fmt.Sprint(s, name)
				if name == "" || seen[name] {
					continue
				}
				seen[name] = true
				if owner[key] != "" {
					t.Errorf("%s belongs to %s and to %s", name, owner[key], e.Name)
				}
				owner[key] = e.Name
			}
		}
	}
	// Writing the awards one after the other, in the order of asking, gives the same.
	written := slices.Clone(g)
	slices.SortFunc(written, func(a, b *catalog.Entry) int { return int(a.Revision) - int(b.Revision) })
	for i, e := range written {
		before, now := newRegistrar(g).award(e), newRegistrar(written).award(e)
		if spelled(&before.names) != spelled(&now.names) {
			t.Errorf("%s: %q at first, %q when it was its turn", e.Name, spelled(&before.names), spelled(&now.names))
		}
		done := *e
		done.Accepted, done.Revision = now.names, e.Revision+1000
		written[i] = &done
	}
}

// byName is an index of names, for groups in which On must not take long.
type byName map[string][]*catalog.Entry

func (b byName) On(_ catalog.Space, name string) []*catalog.Entry { return b[name] }

// Names cost the time to read them, however many there are and however many CRDs ask for
// the same.
func TestAwardOfManyNames(t *testing.T) {
	const n = 100_000
	var many strings.Builder
	for i := range n {
		fmt.Fprintf(&many, " s%d", i)
	}
	g := group{
		having(1, "pears pear Pear PearList"+many.String()),
		wanting(2, "plums plum Plum PlumList t"+many.String(), "plums plum Plum PlumList u"+many.String()),
		asking(3, "apples apple Apple AppleList"+many.String()),
	}
	claims := byName{}
	for _, e := range g {
		for name := range e.Names.All(catalog.Resources) {
			claims[name] = append(claims[name], e)
		}
	}
	start := time.Now()
	a := newRegistrar(claims).award(g[2])
	if a.condition.Reason != "ShortNamesConflict" || len(a.condition.Message) > maxMessage || len(a.names.ShortNames) > 0 {
		t.Errorf("condition %s with a message of %d bytes, %d short names", a.condition.Reason, len(a.condition.Message), len(a.names.ShortNames))
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took) // comparing each with each takes minutes
	}
}

func TestNext(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC)
	earlier := metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	const apples = "apples apple Apple AppleList"
	condition := func(t v1.CustomResourceDefinitionConditionType, s v1.ConditionStatus, reason string) v1.CustomResourceDefinitionCondition {
		return v1.CustomResourceDefinitionCondition{Type: t, Status: s, Reason: reason, Message: "m", LastTransitionTime: earlier}
	}
	accepted, established := condition(v1.NamesAccepted, v1.ConditionTrue, "NoConflicts"), condition(v1.Established, v1.ConditionTrue, "InitialNamesAccepted")
	violations := condition(v1.NonStructuralSchema, v1.ConditionTrue, "Violations")
	approved := condition(v1.KubernetesAPIApprovalPolicyConformant, v1.ConditionTrue, "ApprovedAnnotation")
	rival := group{having(1, "pears apple Pear PearList")}
	for _, test := range []struct {
		name   string
		others group
		e      *catalog.Entry
		before []v1.CustomResourceDefinitionCondition
		d      decoded
		want   string
	}{
		{name: "new", e: asking(9, apples), want: "NamesAccepted=True NoConflicts new; Established=True InitialNamesAccepted new"},
		{name: "new, with all there is to say", e: asking(9, apples), d: decoded{unstructural: &violations, approval: &approved},
			want: "NamesAccepted=True NoConflicts new; Established=True InitialNamesAccepted new; NonStructuralSchema=True Violations new; KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation new"},
		{name: "conflict at first", others: rival, e: asking(9, apples), want: "NamesAccepted=False SingularConflict new; Established=False NotAccepted new"},
		{name: "conflict solved", e: asking(9, apples),
			before: []v1.CustomResourceDefinitionCondition{condition(v1.NamesAccepted, v1.ConditionFalse, "SingularConflict"), condition(v1.Established, v1.ConditionFalse, "NotAccepted")},
			want:   "NamesAccepted=True NoConflicts new; Established=True InitialNamesAccepted new"},
		{name: "conflict after it was established", others: rival, e: wanting(9, "apples a Apple AppleList", apples),
			before: []v1.CustomResourceDefinitionCondition{accepted, established},
			want:   "NamesAccepted=False SingularConflict new; Established=True InitialNamesAccepted"},
		{name: "taken over from upstream in the middle", e: having(9, apples),
			before: []v1.CustomResourceDefinitionCondition{accepted, condition(v1.Established, v1.ConditionFalse, "Installing")},
			want:   "NamesAccepted=True NoConflicts; Established=True InitialNamesAccepted new"},
		{name: "the order of conditions stays", e: having(9, apples), d: decoded{unstructural: &violations},
			before: []v1.CustomResourceDefinitionCondition{violations, established, accepted},
			want:   "NonStructuralSchema=True Violations; Established=True InitialNamesAccepted; NamesAccepted=True NoConflicts"},
		{name: "schema mended", e: having(9, apples), before: []v1.CustomResourceDefinitionCondition{accepted, violations, established},
			want: "NamesAccepted=True NoConflicts; Established=True InitialNamesAccepted"},
		{name: "bundle that is none", e: asking(9, apples), d: decoded{invalidBundle: true},
			want: "NamesAccepted=True NoConflicts new; Established=False InvalidCABundle new"},
		{name: "bundle broken later", e: having(9, apples), d: decoded{invalidBundle: true}, before: []v1.CustomResourceDefinitionCondition{accepted, established},
			want: "NamesAccepted=True NoConflicts; Established=True InitialNamesAccepted"},
		{name: "bundle mended", e: having(9, apples), before: []v1.CustomResourceDefinitionCondition{accepted, condition(v1.Established, v1.ConditionFalse, "InvalidCABundle")},
			want: "NamesAccepted=True NoConflicts; Established=True InitialNamesAccepted new"},
		{name: "conditions of others stay", e: having(9, apples), before: []v1.CustomResourceDefinitionCondition{condition("StorageMigrating", v1.ConditionTrue, "R"), accepted, established},
			want: "StorageMigrating=True R; NamesAccepted=True NoConflicts; Established=True InitialNamesAccepted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := test.d
			d.entry = test.e
			d.entry.Generation = 5
			d.status = &v1.CustomResourceDefinitionStatus{Conditions: test.before, StoredVersions: []string{"v1", "v0"}}
			all := append(slices.Clone(test.others), test.e)
			before := d.status.DeepCopy()
			status, _ := next(all, &d, now)
			var got []string
			for _, c := range status.Conditions {
				s := fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
				if !c.LastTransitionTime.Equal(&earlier) {
					s += " new"
					if !c.LastTransitionTime.Time.Equal(now.Truncate(time.Second)) {
						t.Errorf("%s at %v", c.Type, c.LastTransitionTime)
					}
				}
				if want := int64(5); c.ObservedGeneration != want && c.Type != "StorageMigrating" {
					t.Errorf("%s is of generation %d", c.Type, c.ObservedGeneration)
				}
				got = append(got, s)
			}
			if s := strings.Join(got, "; "); s != test.want {
				t.Errorf("got  %s\nwant %s", s, test.want)
			}
			if status.ObservedGeneration != 5 || !slices.Equal(status.StoredVersions, []string{"v1", "v0"}) {
				t.Errorf("generation %d, stored versions %v", status.ObservedGeneration, status.StoredVersions)
			}
			if fmt.Sprint(before) != fmt.Sprint(d.status) {
				t.Error("the status given was changed")
			}
			// Once written, there is nothing more to do.
			d.status = status
			if again, _ := next(all, &d, now.Add(time.Hour)); fmt.Sprint(again.Conditions) != fmt.Sprint(status.Conditions) {
				t.Errorf("a second look changes %v to %v", status.Conditions, again.Conditions)
			}
		})
	}
}

func TestApproval(t *testing.T) {
	for _, test := range []struct{ group, annotation, want string }{
		{"example.com", "", ""},
		{"notk8s.io", "", ""},
		{"k8s.io", "", `False MissingAnnotation protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`},
		{"a.k8s.io", "https://example.com/1", "True ApprovedAnnotation approved in https://example.com/1"},
		{"a.b.kubernetes.io", "unapproved, an experiment", `False UnapprovedAnnotation not approved: "unapproved, an experiment"`},
		{"kubernetes.io", "yes", `False InvalidAnnotation protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`},
		{"kubernetes.io", "/path", `False InvalidAnnotation protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`},
	} {
		got := ""
		if c := approval(test.group, map[string]string{v1.KubeAPIApprovedAnnotation: test.annotation}); c != nil {
			got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
		if got != test.want {
			t.Errorf("%s %q: %s\nwant %s", test.group, test.annotation, got, test.want)
		}
	}
}

func TestUnstructural(t *testing.T) {
	const sound = `{"properties":{"a":{"type":"string"}},"type":"object"}`
	for _, test := range []struct {
		name     string
		preserve bool
		schemas  []string
		want     string
	}{
		{"sound", false, []string{sound, sound}, ""},
		{"no schema", false, []string{""}, ""},
		{"preserving", true, []string{sound}, "True Violations spec.preserveUnknownFields: Invalid value: true: must be false"},
		{"one violation", false, []string{sound, `{"properties":{"a":{}},"type":"object"}`},
			"True Violations spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"},
		{"several, and what is no matter of structure", true, []string{`{"properties":{"a":{"items":{},"type":"array"},"b":{"type":"what"}},"type":"object","uniqueItems":true}`, `{"anyOf":[{"type":"string"}]}`},
			"True Violations [spec.preserveUnknownFields: Invalid value: true: must be false, " +
				"spec.versions[0].schema.openAPIV3Schema.properties[a].items.type: Required value: must not be empty for specified array items, " +
				`spec.versions[1].schema.openAPIV3Schema.anyOf[0].type: Forbidden: must be empty to be structural, ` +
				"spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root]"},
		{"not to be judged", false, []string{sound, `{"id":"x","type":"object"}`}, "Unknown StructuralError failed to check validation schema for version v1: OpenAPIV3Schema 'id' is not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var versions []string
			for i, s := range test.schemas {
				v := fmt.Sprintf(`{"name":"v%d","served":true,"storage":%v`, i, i == 0)
				if s != "" {
					v += `,"schema":{"openAPIV3Schema":` + s + `}`
				}
				versions = append(versions, v+"}")
			}
			data := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[` + strings.Join(versions, ",") + `]}}`
			c, err := unstructural(&catalog.Entry{PreserveUnknownFields: test.preserve}, []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if s := shorten(strings.Repeat("ä", maxMessage)); len(s) > maxMessage || !strings.HasSuffix(s, "ä …") {
		t.Errorf("%d bytes, ending %q", len(s), s[len(s)-8:])
	}
}
