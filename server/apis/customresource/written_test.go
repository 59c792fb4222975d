package customresource

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// readsSame compares the answer to a write with that to a get.
func (e *env) readsSame(t *testing.T, what, path string, answer apitest.Answer) {
	t.Helper()
	read := e.Do("GET", path, "").Is(http.StatusOK)
	if !bytes.Equal(bytes.TrimSpace(read.Body), bytes.TrimSpace(answer.Body)) {
		t.Errorf("%s is answered with\n%s\nand then read as\n%s\nStored is %s", what, answer.Body, read.Body, e.stored("/example.com/boxes"+path[strings.LastIndex(path, "/"):]))
	}
}

// What a write is answered with is what a read would give, though what was written is not always normalized again.
func TestAnswersAreWhatIsRead(t *testing.T) {
	t.Run("defaults of the status", func(t *testing.T) {
		e := start(t)
		e.define(strings.Replace(boxesWith("a: {type: string}}}, status: {type: object, default: {phase: New}, properties: {phase: {type: string}, d: {type: string, default: dd}"),
			"storage: true", "storage: true\n    subresources: {status: {}}", 1))
		e.readsSame(t, "create", boxes+"/one", e.Do("POST", boxes, box("one", `"a":"1"`)).Is(http.StatusCreated).Has("status.phase", "New"))
		e.readsSame(t, "apply", boxes+"/two", e.Patch("apply", boxes+"/two?fieldManager=m", box("two", `"a":"1"`)).Is(http.StatusCreated))
		e.readsSame(t, "a status", boxes+"/one", e.Patch("merge", boxes+"/one/status", `{"status":{"phase":"x"}}`).Is(http.StatusOK))
		e.readsSame(t, "a patch", boxes+"/one", e.Patch("merge", boxes+"/one", `{"spec":{"a":"x"}}`).Is(http.StatusOK))
	})
	t.Run("an old version", func(t *testing.T) {
		e := start(t)
		definition := func(first, second string) string {
			return strings.NewReplacer("S0", first, "S1", second).Replace(`
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, kind: Box}
  versions:
  - {name: v0, served: true, storage: S0, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {a: {type: string}, d: {type: string}}}, status: {type: object, properties: {p: {type: string}, q: {type: string}}}}}}}
  - {name: v1, served: true, storage: S1, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {a: {type: string}, d: {type: string, default: dd}}}, status: {type: object, properties: {p: {type: string}, q: {type: string, default: qq}}}}}}}
`)
		}
		e.define(definition("true", "false"))
		old := strings.Replace(boxes, "v1", "v0", 1)
		for _, name := range []string{"one", "two", "three"} {
			e.Do("POST", old, strings.Replace(box(name, `"a":"1"`), "/v1", "/v0", 1)).Is(http.StatusCreated)
			e.Patch("merge", old+"/"+name+"/status", `{"status":{"p":"1"}}`).Is(http.StatusOK)
		}
		e.define(definition("false", "true"))
		e.readsSame(t, "a status", boxes+"/one", e.Patch("merge", boxes+"/one/status", `{"status":{"p":"x"}}`).Is(http.StatusOK))
		e.readsSame(t, "a patch", boxes+"/two", e.Patch("merge", boxes+"/two", `{"spec":{"a":"x"}}`).Is(http.StatusOK))
		body := strings.Replace(string(e.Do("GET", boxes+"/three", "").Is(http.StatusOK).Body), `"a":"1"`, `"a":"2"`, 1)
		e.readsSame(t, "an update", boxes+"/three", e.Do("PUT", boxes+"/three", body).Is(http.StatusOK))
	})
	t.Run("nulls that are applied", func(t *testing.T) {
		e := start(t)
		e.define(boxesWith("p: {x-kubernetes-preserve-unknown-fields: true}, o: {type: object, properties: {x: {x-kubernetes-preserve-unknown-fields: true}}}"))
		for name, spec := range map[string]string{"one": `"p":null`, "two": `"o":{"x":null}`} {
			e.readsSame(t, spec, boxes+"/"+name, e.Patch("apply", boxes+"/"+name+"?fieldManager=m", box(name, spec)).Is(http.StatusCreated))
		}
	})
	t.Run("negative zero", func(t *testing.T) {
		e := start(t)
		e.define(boxesWith("i: {type: integer}, n: {type: number}, p: {x-kubernetes-preserve-unknown-fields: true}"))
		for name, spec := range map[string]string{"one": `"i":-0.0`, "two": `"p":[-0.0]`, "three": `"n":-0.0`} {
			e.readsSame(t, spec, boxes+"/"+name, e.Do("POST", boxes, box(name, spec)).Is(http.StatusCreated))
			e.readsSame(t, spec, boxes+"/"+name, e.Patch("merge", boxes+"/"+name, `{"metadata":{"labels":{"l":"m"}},"spec":{`+spec+`}}`).Is(http.StatusOK))
		}
	})
}
