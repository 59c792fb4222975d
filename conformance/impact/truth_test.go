package impact

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/search"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/conversion/infer"
	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

var (
	changes = flag.Int("changes", 30, "changes of CRDs")
	objects = flag.Int("objects", 20, "objects of each change")
	first   = flag.Uint64("seed", 1, "of the first change; others give other changes")
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// TestPlanAgainstTruth fails if a plan says of an object what the server does not do, or leaves out what it does.
func TestPlanAgainstTruth(t *testing.T) {
	set, err := corpus.Load(t.Context(), corpus.Options{NoModules: true, Seeds: true, NoArchive: *changes < 100})
	if err != nil {
		t.Fatal(err)
	}
	pool := &mutate.Pool{}
	for _, s := range set.Schemas {
		if err := pool.Add(s.Name, s.JSON, 3); err != nil {
			t.Fatal(err)
		}
	}
	if pool.Len() == 0 {
		t.Fatal("there are no schemas to change")
	}
	c := &comparison{TB: t, Server: restmappingtest.Start(t, restmappingtest.Options{}), effects: map[string]int{}}
	began := time.Now()
	for seed := *first; c.changes < *changes && c.different < 20; seed++ {
		if seed > *first+uint64(20**changes) {
			t.Fatalf("only %d of %d seeds gave a change that the server accepts", c.changes, seed-*first)
		}
		c.change(pool, seed)
	}
	t.Logf("%d changes, %d objects, %d of them converted by rules and back, %d differences in %v; effects: %v",
		c.changes, c.compared, c.returned, c.different, time.Since(began).Round(time.Second), c.effects)
	if c.effects["LosesFields"] == 0 || c.effects["RefusedOnCreate"] == 0 || c.returned == 0 {
		t.Errorf("no object loses fields, none is refused, or none is converted by rules: %v", c.effects)
	}
}

// comparison is a server and what was compared on it.
type comparison struct {
	testing.TB
	*restmappingtest.Server
	changes, compared, different int
	returned                     int // objects that were written in the new version and read in the old one
	effects                      map[string]int
}

// pair is one change on the server.
type pair struct {
	*comparison
	seed    uint64
	group   string
	old     []byte
	now     []byte
	storage string // version after the change
	rules   bool   // the storage version changes, and objects are converted by inferred rules
	edits   []string
	list    []*subject
}

// subject is one object.
type subject struct {
	name          string
	before, after map[string]any // as clients read it
	stored        []byte
	update        []string // fields for which an update is refused before the change, and
	create        []string
	outcome       impact.Outcome
}

// expensive is part of rules that take minutes.
var expensive = []byte("[1,2,3,4,5,6,7,8,9,10].")

// change makes a change and compares its plan, if the server accepts both CRDs.
func (c *comparison) change(pool *mutate.Pool, seed uint64) {
	c.Helper()
	old := pool.Enrich(seed).Schema
	if seed%2 == 0 {
		old = search.Focus(old, seed)
	}
	now, edits := search.Edit(old, seed)
	if seed%5 > 2 { // an edit by itself often changes nothing for an object
		more, others := search.Edit(now, seed+1<<40)
		now, edits = without(more, seed), append(append(edits, others...), "without a field")
	}
	if len(edits) == 0 || bytes.Equal(old, now) || bytes.Contains(old, expensive) {
		return
	}
	p := &pair{comparison: c, seed: seed, group: fmt.Sprintf("c%d.example", seed), edits: edits, storage: "v1"}
	status := seed%3 == 0
	if seed%4 == 1 {
		p.storage = "v2"
		p.old = p.crd(version("v1", true, status, old), version("v2", false, status, old))
		p.now = p.crd(version("v1", false, status, old), version("v2", true, status, now))
		p.rules = seed%8 == 5 && p.infer()
	} else {
		p.old, p.now = p.crd(version("v1", true, status, old)), p.crd(version("v1", true, status, now))
	}
	if code, _, _ := p.do("POST", p.crds(), p.old); code != http.StatusCreated {
		return
	}
	p.await(1)
	defer p.do("DELETE", p.crds()+"/trees."+p.group, nil)
	current, ok := p.merged(p.now)
	if code, _, _ := p.do("PUT", p.crds()+"/trees."+p.group+"?dryRun=All", current); !ok || code != http.StatusOK {
		return
	}
	if !p.fill(old, now) {
		return
	}
	p.plan()
	current, _ = p.merged(p.now)
	code, _, body := p.do("PUT", p.crds()+"/trees."+p.group, current)
	var changed metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(body), &changed); code != http.StatusOK || err != nil {
		c.Fatalf("seed %d: %d %s", seed, code, body)
	}
	p.await(changed.Generation) // an edit of what servers do not keep changes nothing
	c.changes++
	for _, s := range p.list {
		c.compared++
		for _, effect := range s.outcome.Effects.Each() {
			c.effects[effect.String()]++
		}
		if problems := p.compare(s); len(problems) > 0 {
			c.different++
			c.Errorf("seed %d, edits %q: %s\nold    %s\nnew    %s\nstored %s\nplan   %s", seed, edits, strings.Join(problems, "\n       "), p.old, p.now, s.stored, text(s.outcome))
			return // one of a change is enough
		}
	}
}

// infer gives the new CRD the conversion rules that infer proposes.
func (p *pair) infer() bool {
	d, err := crd.Parse(p.now)
	if err != nil {
		return false
	}
	proposal, err := infer.Propose(nil, d)
	if err != nil {
		return false
	}
	p.now = bytes.Replace(p.now, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"annotations":{%q:%s},`, conversion.Annotation, text(proposal.Text())), 1)
	return true
}

// without returns a schema without one of its fields.
func without(schema []byte, seed uint64) []byte {
	root := decoded(schema)
	var holders []map[string]any
	var look func(v any)
	look = func(v any) {
		node, _ := v.(map[string]any)
		if fields, ok := node["properties"].(map[string]any); ok && len(fields) > 0 {
			holders = append(holders, node)
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				look(fields[name])
			}
		}
		if node["items"] != nil {
			look(node["items"])
		}
	}
	look(root)
	if len(holders) == 0 {
		return schema
	}
	node := holders[seed/5%uint64(len(holders))]
	fields := node["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(fields))
	name := names[seed/7%uint64(len(names))]
	delete(fields, name)
	if required, ok := node["required"].([]any); ok {
		if required = slices.DeleteFunc(required, func(v any) bool { return v == name }); len(required) == 0 {
			delete(node, "required")
		} else {
			node["required"] = required
		}
	}
	return []byte(text(root))
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func version(name string, storage, status bool, schema []byte) string {
	sub := ""
	if status {
		sub = `"subresources":{"status":{}},`
	}
	return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,%s"schema":{"openAPIV3Schema":%s}}`, name, storage, sub, schema)
}

func (p *pair) crd(versions ...string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.%s"},"spec":{"group":%q,"scope":"Namespaced",`+
		`"names":{"plural":"trees","singular":"tree","kind":"Tree","listKind":"TreeList"},"versions":[%s]}}`, p.group, p.group, strings.Join(versions, ","))
}

func (p *pair) crds() string { return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" }

func (p *pair) objectsIn(version string) string {
	return "/apis/" + p.group + "/" + version + "/namespaces/default/trees"
}

// do sends a request. It tries again while the server adopts a change of the CRD.
func (p *pair) do(method, path string, body []byte) (int, []string, string) {
	p.Helper()
	for {
		req, err := http.NewRequestWithContext(context.Background(), method, p.Config.Host+path, bytes.NewReader(body))
		if err != nil {
			p.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			p.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			p.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		return resp.StatusCode, refused(resp.StatusCode, data), string(data)
	}
}

// refused returns the fields for which a request was refused, each once.
func refused(code int, data []byte) []string {
	if code < 300 {
		return nil
	}
	var status metav1.Status
	if json.Unmarshal(data, &status) != nil || status.Details == nil || len(status.Details.Causes) == 0 || code != http.StatusUnprocessableEntity {
		return []string{""} // the body cannot be decoded
	}
	fields := map[string]bool{}
	for _, c := range status.Details.Causes {
		fields[c.Field] = true
	}
	return slices.Sorted(maps.Keys(fields))
}

// await waits until the server serves a generation of the CRD.
func (p *pair) await(generation int64) {
	restmappingtest.Eventually(p.TB, fmt.Sprintf("trees.%s has generation %d", p.group, generation), func() bool {
		e := p.Catalog.Get("trees." + p.group)
		return e != nil && e.Established && e.Generation == generation && e.ObservedGeneration == generation
	})
}

// merged gives a CRD the resourceVersion of the stored one.
func (p *pair) merged(crd []byte) ([]byte, bool) {
	_, _, body := p.do("GET", p.crds()+"/trees."+p.group, nil)
	var live metav1.PartialObjectMetadata
	if json.Unmarshal([]byte(body), &live) != nil {
		return nil, false
	}
	return bytes.Replace(crd, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"resourceVersion":%q,`, live.ResourceVersion), 1), true
}

// fill stores objects that the old CRD accepts, and asks what it answers to each request.
func (p *pair) fill(old, now []byte) bool {
	var plans []*generate.Plan
	for _, schema := range [][]byte{old, now} {
		plan, err := generate.Compile(schema)
		if err != nil {
			return false
		}
		plans = append(plans, plan)
	}
	for i := 0; i < 5**objects && len(p.list) < *objects; i++ {
		o := generate.Options{Mode: generate.Valid, Resolve: true, Compact: true, Size: 100 + i%5*150}
		plan := plans[0]
		switch i % 4 {
		case 1:
			plan = plans[1]
		case 2:
			o.Mode, o.Resolve = generate.Breach, false
		case 3:
			o.Mode, o.Resolve, plan = generate.Breach, false, plans[1]
		}
		body := plan.Append(nil, p.seed<<8+uint64(i), o)
		if i%5 > 2 {
			body = search.Poke(body, p.seed<<8+uint64(i))
		}
		obj := decoded(body)
		if obj == nil {
			continue
		}
		s := &subject{name: fmt.Sprintf("o%d", i)}
		obj["apiVersion"], obj["kind"], obj["metadata"] = p.group+"/v1", "Tree", map[string]any{"name": s.name}
		if code, _, _ := p.do("POST", p.objectsIn("v1"), []byte(text(obj))); code != http.StatusCreated {
			continue
		}
		s.before = p.get("v1", s.name)
		_, s.update, _ = p.do("PUT", p.objectsIn("v1")+"/"+s.name+"?dryRun=All", []byte(text(s.before)))
		_, s.create, _ = p.do("POST", p.objectsIn("v1")+"?dryRun=All", anew(s.before))
		p.list = append(p.list, s)
	}
	return len(p.list) > 0
}

// decoded reads an object without changing its numbers.
func decoded(data []byte) map[string]any {
	var obj map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&obj) != nil {
		return nil
	}
	return obj
}

func (p *pair) get(version, name string) map[string]any {
	code, _, body := p.do("GET", p.objectsIn(version)+"/"+name, nil)
	if code != http.StatusOK {
		return nil
	}
	return decoded([]byte(body))
}

// anew is an object for a create, under another name.
func anew(obj map[string]any) []byte {
	obj = maps.Clone(obj)
	meta := maps.Clone(obj["metadata"].(map[string]any))
	meta["name"] = "another"
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(meta, name)
	}
	obj["metadata"] = meta
	return []byte(text(obj))
}

// plan says what the change does to the bytes in etcd.
func (p *pair) plan() {
	parse := func(data []byte) *crd.CRD {
		d, err := crd.Parse(data)
		if err != nil {
			p.Fatal(err)
		}
		return d
	}
	_, _, was := p.do("GET", p.crds()+"/trees."+p.group, nil)
	current, _ := p.merged(p.now)
	_, _, is := p.do("PUT", p.crds()+"/trees."+p.group+"?dryRun=All", current)
	change, err := impact.New(parse([]byte(was)), parse([]byte(is)), impact.Options{})
	if err != nil {
		p.Fatal(err)
	}
	var all [][]byte
	for _, s := range p.list {
		answer, err := p.Backend.Client().Get(p.Context(), p.Backend.Key("/"+p.group+"/trees/default/"+s.name))
		if err != nil || len(answer.Kvs) != 1 {
			p.Fatalf("%s is not in etcd: %v", s.name, err)
		}
		s.stored = answer.Kvs[0].Value
		all = append(all, s.stored)
	}
	outcomes, err := change.Page(p.Context(), all)
	if err != nil {
		p.Fatal(err)
	}
	for i, s := range p.list {
		s.outcome = outcomes[i]
	}
}

// compare returns how the server differs from the plan.
func (p *pair) compare(s *subject) (problems []string) {
	x := &s.outcome
	differ := func(form string, args ...any) { problems = append(problems, fmt.Sprintf(form, args...)) }
	if s.after = p.get("v1", s.name); s.after == nil {
		if x.Effects&(impact.VersionGone|impact.Unreadable|impact.NotServed) == 0 {
			differ("the server cannot read it any more")
		}
		return problems
	}
	p.compareRead(s, differ)
	agree := func(what string, effect impact.Effects, planned []impact.Refusal, before, after []string) {
		var want []string
		for _, r := range planned {
			want = append(want, r.Field)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got := slices.DeleteFunc(slices.Clone(after), func(f string) bool { return slices.Contains(before, f) })
		// A field that was refused before, and is refused for another reason now, is in the plan alone.
		want = slices.DeleteFunc(want, func(f string) bool { return slices.Contains(before, f) })
		if len(planned) < 20 && !slices.Equal(got, want) || (x.Effects&effect != 0) != (len(planned) > 0) {
			differ("%s: the server refuses %q, and before the change %q", what, after, before)
		}
	}
	_, update, _ := p.do("PUT", p.objectsIn("v1")+"/"+s.name+"?dryRun=All", []byte(text(s.after)))
	agree("update", impact.RefusedOnUpdate, x.Update, s.update, update)
	_, create, _ := p.do("POST", p.objectsIn("v1")+"?dryRun=All", anew(s.before))
	agree("create", impact.RefusedOnCreate, x.Create, s.create, create)
	if p.storage != "v1" {
		p.compareConverted(s, differ)
	}
	return problems
}

// compareRead compares how the object is read.
func (p *pair) compareRead(s *subject, differ func(string, ...any)) {
	x := &s.outcome
	const reads = impact.LosesFields | impact.NewDefaults | impact.KeepsFields | impact.ChangesValues
	before, after := paths(s.before), paths(s.after)
	same := text(body(s.before)) == text(body(s.after))
	if same != (x.Effects&reads == 0) {
		differ("read: %s\nis now: %s", text(body(s.before)), text(body(s.after)))
		return
	}
	for _, path := range x.Lost {
		if after[path] {
			differ("read: %s is not lost", path)
		}
	}
	for _, path := range x.Defaulted {
		if !after[path] {
			differ("read: %s is not filled in", path)
		}
	}
	if x.Effects&impact.ChangesValues == 0 && len(x.Lost) < 100 {
		for path := range before {
			if !after[path] && !covered(path, x.Lost) {
				differ("read: %s is lost", path)
			}
		}
		for path := range after {
			if !before[path] && !covered(path, x.Defaulted) && !covered(path, x.Kept) {
				differ("read: %s is new", path)
			}
		}
	}
}

// compareConverted compares what is lost in the new storage version.
func (p *pair) compareConverted(s *subject, differ func(string, ...any)) {
	x := &s.outcome
	converted := p.get(p.storage, s.name)
	if converted == nil {
		if x.Effects&impact.NotConvertible == 0 {
			differ("conversion: the server cannot convert it")
		}
		return
	}
	if p.rules { // fields are elsewhere: what counts is what is left when they are back
		code, _, _ := p.do("PUT", p.objectsIn(p.storage)+"/"+s.name, []byte(text(converted)))
		if code != http.StatusOK {
			return // the plan is about requests in the version that the object is stored in
		}
		p.returned++
		if converted = p.get("v1", s.name); converted == nil {
			differ("conversion: the server cannot convert it back")
			return
		}
	}
	after := paths(converted)
	var lost []string
	for path := range paths(s.after) {
		if !after[path] && !covered(path, x.LostConverting) {
			lost = append(lost, path)
		}
	}
	slices.Sort(lost)
	if len(lost) > 0 && len(x.LostConverting) < 100 {
		differ("conversion: %q are lost", lost)
	}
	for _, path := range x.LostConverting {
		if after[path] {
			differ("conversion: %s is not lost", path)
		}
	}
}

// body is an object without its metadata.
func body(obj map[string]any) map[string]any {
	obj = maps.Clone(obj)
	delete(obj, "metadata")
	return obj
}

// paths are those of all values in an object but its metadata, as reports have them.
func paths(obj map[string]any) map[string]bool {
	all := map[string]bool{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		all[at] = true
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if at == "" {
					walk(name, member)
				} else {
					walk(at+"."+name, member)
				}
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s[%d]", at, i), item)
			}
		}
	}
	walk("", body(obj))
	return all
}

// covered reports whether a path is one of the list or below it.
func covered(path string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
