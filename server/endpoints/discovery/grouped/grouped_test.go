package grouped

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// TestCurrent lets CRDs come and go, and compares what is kept with what
// is made of the whole catalog.
func TestCurrent(t *testing.T) {
	crds := catalogtest.Open(t)
	c := catalog.New(crds.Storage)
	made := 0
	names := func(_ string, entries []*catalog.Entry) (string, bool) {
		made++
		var list []string
		for _, e := range entries {
			list = append(list, e.Name)
		}
		return strings.Join(list, " "), len(list) > 0
	}
	x := New(c, names)
	if len(x.Current().Items) != 0 {
		t.Error("an empty catalog has groups")
	}
	go func() { _ = c.Run(t.Context()) }()
	<-c.Synced()
	random := rand.New(rand.NewPCG(1, 2))
	there := map[string]bool{}
	settle := func() {
		o := crds.Create(t, catalogtest.CRD(fmt.Sprintf("marks%d", random.Int64()), "mark.example"))
		revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WaitFor(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		for range 1 + random.IntN(5) {
			plural, group := fmt.Sprintf("things%d", random.IntN(3)), fmt.Sprintf("g%d.example", random.IntN(5))
			if name := plural + "." + group; there[name] {
				crds.Delete(t, name)
				there[name] = false
			} else {
				crds.Create(t, catalogtest.CRD(plural, group))
				there[name] = true
			}
		}
		settle()
		got := x.Current()
		want := map[string]string{}
		for _, group := range c.Groups() {
			if value, ok := names(group, c.Group(group)); ok {
				want[group] = value
			}
		}
		for i, item := range got.Items {
			if item.Value != want[item.Group] || i > 0 && got.Items[i-1].Group >= item.Group {
				t.Fatalf("%s: %q, want %q", item.Group, item.Value, want[item.Group])
			}
			if value, ok := got.Find(item.Group); !ok || value != item.Value {
				t.Fatalf("%s: not found", item.Group)
			}
		}
		if len(got.Items) != len(want) {
			t.Fatalf("%d groups, want %d", len(got.Items), len(want))
		}
		before := made
		if x.Current() != got || made != before {
			t.Fatal("made again without a change")
		}
	}
	if _, ok := x.Current().Find("no.example"); ok {
		t.Error("found what is not there")
	}
}
