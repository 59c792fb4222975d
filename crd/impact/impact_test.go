package impact_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/internal/object"
)

// crdOf returns a CRD. A version is its name, then "served" and "storage" if it is, then its spec's schema.
func crdOf(t *testing.T, conversion string, versions ...string) *crd.CRD {
	t.Helper()
	var list []string
	for _, v := range versions {
		name, rest, _ := strings.Cut(v, " ")
		flags, schema, _ := strings.Cut(rest, "{")
		list = append(list, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{%s}}}}`,
			name, strings.Contains(flags, "served"), strings.Contains(flags, "storage"), schema))
	}
	text := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"crons.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"crons","singular":"cron","kind":"Cron","listKind":"CronList"},
		"conversion":{"strategy":%q},"versions":[%s]}}`, conversion, strings.Join(list, ","))
	d, err := crd.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stored(version, spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"example.com/%s","kind":"Cron","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"managedFields":[{"apiVersion":"example.com/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{},"manager":"helm","operation":"Update"}],"name":"a","namespace":"team","ownerReferences":[{"apiVersion":"v1","kind":"Pipeline","name":"p","uid":"1"}],"uid":"u"},"spec":%s}`, version, spec)
}

func outcome(t *testing.T, old, now *crd.CRD, o impact.Options, data []byte) impact.Outcome {
	t.Helper()
	c, err := impact.New(old, now, o)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Page(t.Context(), [][]byte{data})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

const today = `v1 served storage {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}}}}`

func TestEffects(t *testing.T) {
	old := crdOf(t, "None", today)
	for name, c := range map[string]struct {
		now  []string
		spec string
		want impact.Outcome
	}{
		"nothing": {
			now:  []string{today},
			spec: `{"a":"x"}`,
		},
		"a description": {
			now:  []string{`v1 served storage {"description":"d","type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`},
			spec: `{"a":"x"}`,
		},
		"a field is removed": {
			now:  []string{`v1 served storage {"type":"object","properties":{"a":{"type":"string"},"list":{"type":"array","items":{"type":"object"}}}}`},
			spec: `{"b":1,"list":[{},{"x":"1"}]}`,
			want: impact.Outcome{Effects: impact.LosesFields, Lost: []string{"spec.b", "spec.list[1].x"}},
		},
		"a new default": {
			now:  []string{`v1 served storage {"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"integer"}}}`},
			spec: `{"b":1}`,
			want: impact.Outcome{Effects: impact.NewDefaults, Defaulted: []string{"spec.a"}},
		},
		"a bound: ratcheting lets updates pass": {
			now:  []string{`v1 served storage {"type":"object","properties":{"a":{"type":"string","maxLength":2},"b":{"type":"integer"}}}`},
			spec: `{"a":"long"}`,
			want: impact.Outcome{Effects: impact.RefusedOnCreate, Create: []impact.Refusal{{
				Field: "spec.a", Type: "FieldValueTooLong", Message: "Too long: may not be more than 2 bytes", Detail: "may not be more than 2 bytes",
			}}},
		},
		"a rule about old and new": {
			now:  []string{`v1 served storage {"type":"object","x-kubernetes-validations":[{"rule":"oldSelf.b != self.b"}],"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`},
			spec: `{"b":1}`,
			want: impact.Outcome{Effects: impact.RefusedOnUpdate, Update: []impact.Refusal{{
				Field: "spec", Type: "FieldValueInvalid", Message: "Invalid value: failed rule: oldSelf.b != self.b", Detail: "failed rule: oldSelf.b != self.b",
			}}},
		},
		"a version that is gone": {
			now:  []string{`v2 served storage {"type":"object"}`},
			spec: `{"b":1}`,
			want: impact.Outcome{Effects: impact.VersionGone},
		},
		"a version that is not served": {
			now:  []string{strings.Replace(today, "served storage", "", 1), `v2 served storage {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`},
			spec: `{"b":1}`,
			want: impact.Outcome{Effects: impact.NotServed},
		},
		"another storage version without the field": {
			now:  []string{strings.Replace(today, "storage", "", 1), `v2 served storage {"type":"object","properties":{"a":{"type":"string"}}}`},
			spec: `{"b":1}`,
			want: impact.Outcome{Effects: impact.LosesInConversion, LostConverting: []string{"spec.b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(t, old, crdOf(t, "None", c.now...), impact.Options{}, stored("v1", c.spec))
			if got.Effects&^impact.DeadManagers != 0 && (!slices.Equal(got.Managers, []string{"helm"}) || !slices.Equal(got.Owners, []string{"Pipeline/p"})) {
				t.Errorf("managers %v, owners %v", got.Managers, got.Owners)
			}
			if got.Effects&impact.DeadManagers == 0 || got.DeadManagers[0] != "helm (v1alpha1)" {
				t.Errorf("the entry of v1alpha1 is not reported: %v", got.DeadManagers)
			}
			if got.Path() != "team/a" || got.Version != "v1" {
				t.Errorf("%s of %s", got.Path(), got.Version)
			}
			got.Namespace, got.Name, got.Version, got.Managers, got.Owners, got.DeadManagers = "", "", "", nil, nil, nil
			got.Effects &^= impact.DeadManagers
			if !same(got, c.want) {
				t.Errorf("got  %s\nwant %s", text(got), text(c.want))
			}
		})
	}
}

// A null means something where the schema allows it.
func TestNulls(t *testing.T) {
	const nullable = `v1 served storage {"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"type":"integer"}}}`
	for name, c := range map[string]struct {
		now  []string
		want impact.Outcome
	}{
		"not nullable":   {[]string{today}, impact.Outcome{Effects: impact.LosesFields, Lost: []string{"spec.a"}}},
		"with a default": {[]string{strings.Replace(today, `"a":{`, `"a":{"default":"x",`, 1)}, impact.Outcome{Effects: impact.NewDefaults, Defaulted: []string{"spec.a"}}},
		"not in the storage version": {
			[]string{strings.Replace(nullable, "storage", "", 1), strings.Replace(today, "v1", "v2", 1)},
			impact.Outcome{Effects: impact.LosesInConversion, LostConverting: []string{"spec.a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(t, crdOf(t, "None", nullable), crdOf(t, "None", c.now...), impact.Options{}, stored("v1", `{"a":null,"b":1}`))
			got = impact.Outcome{Effects: got.Effects &^ impact.DeadManagers, Lost: got.Lost, LostConverting: got.LostConverting, Defaulted: got.Defaulted}
			if !same(got, c.want) {
				t.Errorf("got  %s\nwant %s", text(got), text(c.want))
			}
		})
	}
}

func same(a, b impact.Outcome) bool { return text(a) == text(b) }

func text(x any) string {
	data, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestWebhookIsUnknown(t *testing.T) {
	old := crdOf(t, "None", today)
	now := crdOf(t, "Webhook", strings.Replace(today, "storage", "", 1), `v2 served storage {"type":"object"}`)
	data := stored("v1", `{"b":1}`)
	if got := outcome(t, old, now, impact.Options{}, data); got.Effects&impact.ConversionUnknown == 0 {
		t.Errorf("without a webhook: %v", got.Effects)
	}
	calls := 0
	convert := func(_ context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
		if calls++; len(objs) != 1 || version != "v2" {
			t.Errorf("%d objects to %s", len(objs), version)
		}
		return nil, fmt.Errorf("the hook refuses")
	}
	got := outcome(t, old, now, impact.Options{New: convert}, data)
	if got.Effects&impact.NotConvertible == 0 || got.Explanation != "the hook refuses" || calls != 2 {
		t.Errorf("%v: %s, %d calls", got.Effects, got.Explanation, calls)
	}
}

func TestForeign(t *testing.T) {
	old := crdOf(t, "None", today)
	for _, data := range []string{`{`, `{"apiVersion":"v1","kind":"Pod"}`, `{"apiVersion":"example.com/v3","kind":"Cron","metadata":{"name":"a"}}`} {
		if got := outcome(t, old, old, impact.Options{}, []byte(data)); got.Effects != impact.UnreadableToday || got.Explanation == "" {
			t.Errorf("%s: %v %q", data, got.Effects, got.Explanation)
		}
	}
}

func TestSummary(t *testing.T) {
	old := crdOf(t, "None", today)
	now := crdOf(t, "None", `v1 served storage {"type":"object","properties":{"a":{"type":"string","maxLength":2}}}`)
	c, err := impact.New(old, now, impact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var page [][]byte
	for i := range 100 {
		page = append(page, stored("v1", fmt.Sprintf(`{"a":"%d","b":%d,"list":[{"x":"y"},{"x":"z"}]}`, i*10, i)))
	}
	list, err := c.Page(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	whole, halves := impact.Summary{Most: 5}, [2]impact.Summary{{Most: 5}, {Most: 5}}
	for i := range list {
		whole.Add(&list[i])
		halves[i/50].Add(&list[i])
	}
	var merged impact.Summary
	merged.Most = 5
	for i := range halves {
		var half impact.Summary
		if err := json.Unmarshal([]byte(text(&halves[i])), &half); err != nil {
			t.Fatal(err)
		}
		merged.Merge(&half)
	}
	whole.Order()
	merged.Order()
	if text(whole) != text(merged) {
		t.Errorf("in one piece %s\nin halves    %s", text(whole), text(merged))
	}
	if whole.Objects != 100 || whole.Affected != 100 || whole.Losing != 100 || whole.Counts["LosesFields"] != 100 || whole.Counts["RefusedOnCreate"] != 90 || len(whole.Listed) != 5 {
		t.Errorf("%s", text(whole))
	}
	var fields []string
	for _, g := range whole.Groups {
		if g.Effect == impact.LosesFields {
			fields = append(fields, fmt.Sprint(g.Field, " ", g.Objects, " ", len(g.Example)))
		}
	}
	if want := []string{"spec.b 100 3", "spec.list 100 3"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("%v, want %v", fields, want)
	}
}

func TestSummaryIsBounded(t *testing.T) {
	s := impact.Summary{Most: 3}
	for i := range 2000 {
		x := impact.Outcome{Name: "n", Version: fmt.Sprint(i), Effects: impact.LosesFields, Lost: []string{fmt.Sprint("f", i)}, Managers: []string{fmt.Sprint(i)}}
		s.Add(&x)
	}
	if len(s.Groups) > 500 || len(s.Managers) > 201 || len(s.Versions) > 201 || len(s.Listed) != 3 || s.Omitted != 1500 || s.Objects != 2000 {
		t.Errorf("%d groups, %d managers, %d listed, %d omitted", len(s.Groups), len(s.Managers), len(s.Listed), s.Omitted)
	}
}

func TestHeadline(t *testing.T) {
	loses, gets := impact.LosesFields|impact.RefusedOnCreate, impact.NewDefaults
	for want, outcomes := range map[string][]impact.Effects{
		"there are no objects":                                          {},
		"the only object stays as it is":                                {0},
		"all 2 objects stay as they are":                                {0, 0},
		"1 of 1 object loses data, 1 is refused if it is created again": {loses},
		"2 of 4 objects lose data, 2 are refused if they are created again, 1 changes otherwise, 1 stays as it is": {loses, loses, gets, 0},
		"1 of 3 objects gets new defaults, 2 stay as they are":                                                     {gets, 0, 0},
		"1 of 1 object cannot be read today":                                                                       {impact.UnreadableToday},
		"1 of 2 objects loses data, 1 changes otherwise":                                                           {impact.VersionGone | impact.LosesInConversion, impact.DeadManagers},
	} {
		var s impact.Summary
		for _, e := range outcomes {
			s.Add(&impact.Outcome{Version: "v1", Effects: e})
		}
		if got := s.Headline(); got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := impact.Number(n); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// What an object says is bounded, whatever its keys and values are.
func TestOutcomeIsBounded(t *testing.T) {
	old := crdOf(t, "None", `v1 served storage {"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}},"s":{"type":"string"}}}`)
	now := crdOf(t, "None", `v1 served storage {"type":"object","properties":{"m":{"type":"object"},"s":{"type":"string","maxLength":9,"enum":["a"]}}}`)
	long := strings.Repeat("ä", 5000)
	var members []string
	for i := range 300 {
		members = append(members, fmt.Sprintf(`"%s%d":"x"`, long, i))
	}
	x := outcome(t, old, now, impact.Options{}, stored("v1", `{"m":{`+strings.Join(members, ",")+`},"s":"`+long+`"}`))
	data, err := json.Marshal(x)
	if err != nil || len(data) > 100_000 || len(x.Lost) != 100 || len(x.Create) == 0 {
		t.Errorf("%d bytes, %d lost, %d refusals, %v", len(data), len(x.Lost), len(x.Create), err)
	}
}

// A converter that fails, or returns too few objects, is what becomes of the objects.
func TestBrokenConversion(t *testing.T) {
	const other = `v2 served {"type":"object","properties":{"a":{"type":"string"}}}`
	old := crdOf(t, "Webhook", today, other)
	now := crdOf(t, "Webhook", strings.Replace(today, " storage", "", 1), strings.Replace(other, "served", "served storage", 1))
	for name, convert := range map[string]impact.ConvertFunc{
		"none": func(context.Context, []*object.Object, string) ([]*object.Object, error) { return nil, nil },
		"error": func(context.Context, []*object.Object, string) ([]*object.Object, error) {
			return nil, errors.New("down")
		},
	} {
		if x := outcome(t, old, now, impact.Options{Old: convert, New: convert}, stored("v1", `{"a":"x"}`)); x.Effects&impact.NotConvertible == 0 || x.Explanation == "" {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// Rules in the CRD convert without a webhook; stock servers run them only as a webhook.
func TestRules(t *testing.T) {
	old := crdOf(t, "None", today)
	for name, c := range map[string]struct {
		strategy string
		stock    bool
		want     impact.Effects
	}{
		"our server":      {"None", false, 0},
		"stock":           {"None", true, impact.LosesInConversion},
		"stock, webhook":  {"Webhook", true, 0},
		"ours, a webhook": {"Webhook", false, 0},
	} {
		now := crdOf(t, c.strategy, strings.Replace(today, "storage", "", 1), `v2 served storage {"type":"object","properties":{"c":{"type":"integer"}}}`)
		now.Annotations = map[string]string{"conversion.espalier.dev/rules": `{conversions: [{between: [v1, v2], rules: [{move: {from: spec.b, to: spec.c}}], preserve: everything}]}`}
		if got := outcome(t, old, now, impact.Options{Stock: c.stock}, stored("v1", `{"b":1}`)); got.Effects&^impact.DeadManagers != c.want {
			t.Errorf("%s: %v %v", name, got.Effects, got.LostConverting)
		}
	}
	now := crdOf(t, "None", strings.Replace(today, "storage", "", 1), `v2 served storage {"type":"object"}`)
	now.Annotations = map[string]string{"conversion.espalier.dev/rules": `{}`}
	if _, err := impact.New(old, now, impact.Options{}); err == nil || !strings.Contains(err.Error(), "conversion rules are invalid") {
		t.Errorf("invalid rules: %v", err)
	}
}

// Lists in a version fail if one object does not convert to it: a change of conversion rules, or of what they are for,
// says so before it is applied. What failed before the change is not its effect.
func TestRulesThatFailLists(t *testing.T) {
	const other = `v2 served {"type":"object","properties":{"b":{"type":"integer"}}}`
	with := func(rules string, versions ...string) *crd.CRD {
		d := crdOf(t, "None", versions...)
		if rules != "" {
			d.Annotations = map[string]string{"conversion.espalier.dev/rules": rules}
		}
		return d
	}
	const (
		saves = `{conversions: [{between: [v1, v2], preserve: everything}]}`
		drops = `{conversions: [{between: [v1, v2], lost: {v1: [spec.a, spec.list]}}]}`
	)
	large, small := stored("v1", `{"a":"`+strings.Repeat("x", 300<<10)+`"}`), stored("v1", `{"a":"x"}`)
	for name, c := range map[string]struct {
		old, now *crd.CRD
		data     []byte
		want     impact.Effects
	}{
		"new rules":              {with(drops, today, other), with(saves, today, other), large, impact.NotConvertible},
		"a new version":          {with("", today), with(saves, today, other), large, impact.NotConvertible},
		"a version is served":    {with(saves, today, strings.Replace(other, "served ", "", 1)), with(saves, today, other), large, impact.NotConvertible},
		"a version is not":       {with(drops, today, other), with(saves, today, strings.Replace(other, "served ", "", 1)), large, 0},
		"a small object":         {with(drops, today, other), with(saves, today, other), small, 0},
		"it failed before":       {with(saves, today, other), with(saves+" ", today, other), large, 0},
		"nothing changes":        {with(saves, today, other), with(saves, today, other), large, 0},
		"rules that cannot fail": {with(saves, today, other), with(drops, today, other), large, 0},
	} {
		got := outcome(t, c.old, c.now, impact.Options{}, c.data)
		if got.Effects&^impact.DeadManagers != c.want || c.want != 0 && !strings.Contains(got.Explanation, "lists in version v2 would fail: converting") {
			t.Errorf("%s: %v, %s", name, got.Effects, got.Explanation)
		}
	}
}

// Values that former rules have saved in an object, and that the new ones do not find, are lost for clients.
func TestRulesThatLosePreservedValues(t *testing.T) {
	const (
		first = `v1 served storage {"type":"object","properties":{"b":{"type":"integer"},"keys":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"string"}}}},"note":{"type":"string"}}}`
		other = `v2 served {"type":"object","properties":{"a":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"},"w":{"type":"string"}}}}}}`
	)
	with := func(rules string) *crd.CRD {
		d := crdOf(t, "None", first, other)
		d.Annotations = map[string]string{"conversion.espalier.dev/rules": `{conversions: [{between: [v1, v2], ` + rules + `preserve: everything}]}`}
		return d
	}
	data := strings.Replace(string(stored("v1", `{"b":1}`)), `"metadata":{`,
		`"metadata":{"annotations":{"conversion.espalier.dev/preserved":"{\"v2\":{\"spec\":{\"a\":\"x\",\"list\":[{\"k\":\"1\"}]}}}"},`, 1)
	for name, c := range map[string]struct {
		rules string
		want  []string
	}{
		"a field moves":       {`rules: [{move: {from: spec.note, to: spec.a}}], `, nil},
		"a list is rewritten": {`rules: [{move: {from: spec.keys, to: spec.list}}, {move: {from: "spec.keys[].v", to: "spec.list[].w"}}], `, []string{"spec.list", "spec.list[0]", "spec.list[0].k"}},
	} {
		got := outcome(t, with(""), with(c.rules), impact.Options{}, []byte(data))
		if !slices.Equal(got.LostConverting, c.want) || (got.Effects&impact.LosesInConversion != 0) != (c.want != nil) {
			t.Errorf("%s: %v, %v", name, got.Effects, got.LostConverting)
		}
	}
}
