package offline

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Version is a minor version of Kubernetes 1.
type Version int

// The versions whose kinds and fields are known. The rules are those of Latest.
const (
	Oldest Version = 33
	Latest Version = 37
)

// String returns "1.37".
func (v Version) String() string { return "1." + strconv.Itoa(int(v)) }

// Versions returns all versions that are known, the latest first.
func Versions() []string {
	var all []string
	for v := Latest; v >= Oldest; v-- {
		all = append(all, v.String())
	}
	return all
}

// ParseVersion reads a version such as 1.34, v1.34 or 1.34.2.
func ParseVersion(text string) (Version, error) {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) >= 2 && parts[0] == "1" {
		if minor, err := strconv.Atoi(parts[1]); err == nil && Version(minor) >= Oldest && Version(minor) <= Latest {
			return Version(minor), nil
		}
	}
	return 0, fmt.Errorf("version %q of Kubernetes is not known: use %s to %s", text, Oldest, Latest)
}

//go:embed versions.json
var versionsFile []byte

// since are the versions that have added types and fields, by type and field. The field
// "" is the type itself. What is not listed is older than all known versions.
var since = sync.OnceValue(func() map[string]map[string]Version {
	var all map[string]map[string]Version
	if err := json.Unmarshal(versionsFile, &all); err != nil {
		panic(fmt.Sprintf("offline: reading versions.json failed: %v", err))
	}
	return all
})

// typeKey is what versions.json calls a type.
func typeKey(t reflect.Type) string {
	return strings.TrimPrefix(t.PkgPath(), "k8s.io/api/") + "." + t.Name()
}

// Since returns the version of Kubernetes that has served the kind first; the oldest
// known version if it is older.
func (k *Kind) Since() Version {
	return max(Oldest, since()[typeKey(reflect.TypeOf(k.New()).Elem())][""])
}

// sinceField is the version that has added a field of a struct, or of one that is inlined.
func sinceField(t reflect.Type, name string) Version {
	if v, ok := since()[typeKey(t)][name]; ok {
		return v
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && pointed(f.Type).Kind() == reflect.Struct {
			if v := sinceField(pointed(f.Type), name); v > 0 {
				return v
			}
		}
	}
	return 0
}

// newer returns the fields of an object that a version of Kubernetes does not have.
func newer(data []byte, obj runtime.Object, version Version) []*FieldError {
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return nil // the object has been read before
	}
	defer doc.Release()
	w := newerWalk{doc: doc, version: version}
	w.value(jsondoc.Root, reflect.TypeOf(obj).Elem(), "")
	return w.found
}

type newerWalk struct {
	doc     *jsondoc.Doc
	version Version
	found   []*FieldError
}

func (w *newerWalk) value(v jsondoc.Value, t reflect.Type, path string) {
	t = pointed(t)
	kind := w.doc.Kind(v)
	switch {
	case t.Kind() == reflect.Struct && kind == jsondoc.Object:
		fields := fieldsOf(t)
		for m := range w.doc.Members(v) {
			name := string(w.doc.Key(m.Key))
			below, ok := fields[name]
			if !ok {
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			if added := sinceField(t, name); added > w.version {
				w.found = append(w.found, &FieldError{Path: at, Unknown: true, Since: added.String()})
				continue
			}
			w.value(m.Value, below, at)
		}
	case t.Kind() == reflect.Map && kind == jsondoc.Object:
		for m := range w.doc.Members(v) {
			w.value(m.Value, t.Elem(), path+"."+string(w.doc.Key(m.Key)))
		}
	case t.Kind() == reflect.Slice && kind == jsondoc.Array:
		for i, item := range w.doc.Items(v) {
			w.value(item, t.Elem(), path+"["+strconv.Itoa(i)+"]")
		}
	}
}

// HasGroup reports whether there are built-in kinds of a group.
func HasGroup(group string) bool {
	return slices.ContainsFunc(All(), func(k *Kind) bool { return k.Group == group })
}
