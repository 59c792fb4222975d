package fieldmanager_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/costtest"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// converters returns the types for maps, and ours around them.
func converters(tb testing.TB) (maps, ours managedfields.TypeConverter) {
	tb.Helper()
	schemas := map[string]*spec.Schema{}
	if err := yaml.Unmarshal([]byte(models), &schemas); err != nil {
		tb.Fatal(err)
	}
	maps, err := managedfields.NewTypeConverter(schemas, true)
	if err != nil {
		tb.Fatal(err)
	}
	return maps, fieldmanager.Converter(maps)
}

// widgetOf makes an object of the JSON of a spec, nil if it is none.
func widgetOf(body string) (*object.Object, *unstructured.Unstructured) {
	o := &object.Object{}
	if json.Unmarshal([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":`+body+`}`), o) != nil {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if kjson.UnmarshalCaseSensitivePreserveInts(o.JSON(), &u.Object) != nil {
		return nil, nil
	}
	return o, u
}

func text(v any, err error) string { return fmt.Sprint(v, " ", err) }

// alike fails if structured-merge-diff makes something else of our objects than
// of the same objects as maps.
func alike(t *testing.T, maps, ours managedfields.TypeConverter, a, b string) {
	t.Helper()
	before, beforeMap := widgetOf(a)
	after, afterMap := widgetOf(b)
	if before == nil || after == nil {
		return
	}
	theirs, theirErr := maps.ObjectToTyped(beforeMap, typed.AllowDuplicates)
	mine, err := ours.ObjectToTyped(before, typed.AllowDuplicates)
	if (err == nil) != (theirErr == nil) || err != nil && len(err.Error()) != len(theirErr.Error()) { // errors of a map come in any order
		t.Fatalf("%s:\ngot  %v\nwant %v", a, err, theirErr)
	}
	theirNext, theirErr := maps.ObjectToTyped(afterMap, typed.AllowDuplicates)
	next, nextErr := ours.ObjectToTyped(after, typed.AllowDuplicates)
	if (nextErr == nil) != (theirErr == nil) {
		t.Fatalf("%s:\ngot  %v\nwant %v", b, nextErr, theirErr)
	}
	if err != nil || nextErr != nil {
		return
	}
	if got, want := text(mine.ToFieldSet()), text(theirs.ToFieldSet()); got != want {
		t.Errorf("fields of %s:\ngot  %s\nwant %s", a, got, want)
	}
	want := text(theirs.Compare(theirNext))
	for _, pair := range [][2]*typed.TypedValue{{mine, next}, {mine, theirNext}, {theirs, next}} {
		if got := text(pair[0].Compare(pair[1])); got != want {
			t.Errorf("%s and %s:\ngot  %s\nwant %s", a, b, got, want)
		}
	}
	merged, err := mine.Merge(theirNext)
	theirMerged, theirErr := theirs.Merge(theirNext)
	if (err == nil) != (theirErr == nil) {
		t.Fatalf("%s merged with %s: %v, want %v", a, b, err, theirErr)
	}
	if err == nil && !reflect.DeepEqual(merged.AsValue().Unstructured(), theirMerged.AsValue().Unstructured()) {
		t.Errorf("%s merged with %s:\ngot  %v\nwant %v", a, b, merged.AsValue().Unstructured(), theirMerged.AsValue().Unstructured())
	}
	if value.Equals(mine.AsValue(), next.AsValue()) != value.Equals(theirs.AsValue(), theirNext.AsValue()) || value.Compare(mine.AsValue(), next.AsValue()) != value.Compare(theirs.AsValue(), theirNext.AsValue()) {
		t.Errorf("%s and %s are not ordered as they should be", a, b)
	}
}

var specs = []string{
	`{}`, `null`, `{"a":"b"}`, `{"a":"c","b":1}`, `{"a":null,"b":2.5}`, `{"b":1.0,"list":[]}`, `{"a":5}`, `[]`, `"text"`,
	`{"list":[{"name":"x","size":1},{"name":"y","size":2.0}]}`, `{"list":[{"name":"y","size":2},{"name":"x"},{"name":"z","size":null}]}`,
	`{"list":[{"name":"x","size":1},{"name":"x","size":2}]}`, `{"list":[{"size":1}]}`, `{"list":null}`, `{"list":{}}`,
	`{"other":{"deep":[[1,2],[true,false,null],{"":"<\u0001>"}],"z":12345678901234567890}}`, `{"other":{"deep":[[1,2.0],[true],{"":"<"}],"y":1e3}}`,
}

func TestViewsAreLikeMaps(t *testing.T) {
	maps, ours := converters(t)
	for _, a := range specs {
		for _, b := range specs {
			alike(t, maps, ours, a, b)
		}
	}
	alike(t, managedfields.NewDeducedTypeConverter(), fieldmanager.Converter(managedfields.NewDeducedTypeConverter()), specs[9], specs[10])
}

// Looking for each of n members or items in turn must not take n² steps. What
// the library itself needs is the measure: it is not linear in all cases.
func TestLargeObjectsTakeNoLongerThanMaps(t *testing.T) {
	maps, ours := converters(t)
	var object, array strings.Builder
	for i := range 19_000 {
		fmt.Fprintf(&object, `,"k%d":%d`, i, i)
		if i < 3_000 { // the library takes longer for more
			fmt.Fprintf(&array, `,{"name":"n%d"}`, i)
		}
	}
	for _, c := range [][2]string{
		{`{"other":{` + object.String()[1:] + `}}`, `{"other":{"z":1` + object.String() + `}}`},
		{`{"list":[` + array.String()[1:] + `]}`, `{"list":[{"name":"n"}` + array.String() + `]}`},
	} {
		before, beforeMap := widgetOf(c[0])
		after, afterMap := widgetOf(c[1])
		var theirs *typed.TypedValue
		var want string
		theirTime := costtest.Time(func() {
			theirs = mustType(t, maps, beforeMap)
			want = text(theirs.Compare(mustType(t, maps, afterMap)))
		})
		costtest.Within(t, 5*theirTime+2*time.Second, func() {
			mine, next := mustType(t, ours, before), mustType(t, ours, after)
			if got := text(mine.Compare(next)); got != want {
				t.Errorf("got  %.200s\nwant %.200s", got, want)
			}
			if got := text(theirs.Compare(next)); got != want {
				t.Errorf("got  %.200s\nwant %.200s", got, want)
			}
		})
	}
}

func mustType(t *testing.T, c managedfields.TypeConverter, o runtime.Object) *typed.TypedValue {
	t.Helper()
	v, err := c.ObjectToTyped(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func FuzzViews(f *testing.F) {
	for i, s := range specs {
		f.Add(s, specs[(i+1)%len(specs)])
	}
	maps, ours := converters(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) < 1<<12 {
			alike(t, maps, ours, a, b)
		}
	})
}
