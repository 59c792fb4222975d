//go:build unix

package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	known "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// TestLongQuantities sends quantities of 400,000 digits in all ways, and numbers of as
// many digits that are no quantities. The library takes seconds to read one.
func TestLongQuantities(t *testing.T) {
	e := start(t, Data()...)
	digits := strings.Repeat("1", 400_000)
	pod := func(name, cpu, value string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i",`+
			`"env":[{"name":"A","value":%q}],"resources":{"requests":{"cpu":%s}}}]}}`, name, value, cpu)
	}
	send := func(method, path, mediaType string, body []byte) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, e.URL+"/api/v1/namespaces/default/pods"+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", mediaType)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	if code, answer := send(http.MethodPost, "", "application/json", pod("p", `"1"`, "x")); code != http.StatusCreated {
		t.Fatal(answer)
	}
	// Protobuf has quantities as text of its own: the digits take the place of others.
	short, err := runtime.Decode(known.Codecs.UniversalDeserializer(), pod("p", `"1"`, digits))
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(known.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	binary, err := runtime.Encode(known.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"}), short)
	if err != nil {
		t.Fatal(err)
	}
	for name, quoted := range map[string]string{"": `"` + digits + `"`, "escaped ": `"` + strings.Repeat(`\u0031`, 400_000) + `"`, "exponent ": `"9e99999999"`, "escaped exponent ": `"9\u0065-99999999"`} {
		sendQuantity(t, name, quoted, pod, send)
	}
	for name, body := range map[string][]byte{
		"a JSON number": pod("q", digits, ""), "a fraction": pod("q", "0."+digits, ""), "an exponent": pod("q", "9e99999999", ""), "a negative exponent": pod("q", "9e-99999999", ""),
	} {
		before := cpuTime(t)
		code, answer := send(http.MethodPost, "", "application/json", body)
		if code != http.StatusBadRequest || !strings.Contains(answer, "quantit") || cpuTime(t)-before > cheap() {
			t.Errorf("%s: %d %.300s after %v of CPU", name, code, answer, cpuTime(t)-before)
		}
	}
	for name, r := range map[string]struct {
		mediaType string
		body      []byte
	}{
		"json":     {"application/json", pod("value", `"1"`, digits)},
		"protobuf": {runtime.ContentTypeProtobuf, bytes.Replace(binary, []byte("\x01p"), []byte("\x01q"), 1)},
		"exponent": {"application/json", pod("exponent", `"1"`, "9e99999999 "+digits)},
	} {
		if code, answer := send(http.MethodPost, "", r.mediaType, r.body); code != http.StatusCreated || !strings.Contains(answer, digits) {
			t.Errorf("%s: long digits that are no quantity: %d %.300s", name, code, answer)
		}
	}
}

// TestHiddenQuantities sends quantities that take long where only some parser finds them.
func TestHiddenQuantities(t *testing.T) {
	e := start(t, Data()...)
	const (
		core, strategic = "/api/v1/namespaces/default/", "application/strategic-merge-patch+json"
		digits          = "1.2345678901234567890123"
		limits          = "{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, max: {cpu: %s}}]}}"
	)
	long := `"` + strings.Repeat("1", 400_000) + `"`
	e.Do(http.MethodPost, core+"pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`).Is(http.StatusCreated)
	container := func(cpu string) string {
		return `"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":` + cpu + `}}}]}`
	}
	many := strings.Repeat(digits+"e9999, a: ", 500) + digits + "e9999"
	for i := range 500 {
		many = strings.Replace(many, ", a:", fmt.Sprintf(", example.com/a%d:", i), 1)
	}
	for name, r := range map[string]struct{ method, path, mediaType, body string }{
		"a media type with a malformed parameter": {http.MethodPatch, "pods/p", strategic + "; =", "{" + container(`"`+digits+`e999999"`) + "}"},
		"apply with a malformed parameter":        {http.MethodPatch, "limitranges/l?fieldManager=m", "application/apply-patch+yaml;=", fmt.Sprintf(limits, digits+"e999999")},
		"an error before a long quantity":         {http.MethodPatch, "pods/p", strategic, `{"status":{"startTime":"bad"},` + container(long) + "}"},
		"lines that a backslash joins":            {http.MethodPost, "limitranges", "application/yaml", fmt.Sprintf(limits, `"`+digits+"e\\\n 999999\"")},
		"base64 in YAML":                          {http.MethodPost, "limitranges", "application/yaml", fmt.Sprintf(limits, "!!binary "+base64.StdEncoding.EncodeToString([]byte(digits+"e999999")))},
		"many":                                    {http.MethodPost, "limitranges", "application/yaml", fmt.Sprintf(limits, many)},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, e.URL+core+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", r.mediaType)
		before := cpuTime(t)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := cpuTime(t) - before; resp.StatusCode != http.StatusBadRequest || took > cheap() {
			t.Errorf("%s: %d after %v of CPU", name, resp.StatusCode, took)
		}
	}
	// Annotations stand for the fields that version 1 does not have.
	before := cpuTime(t)
	for name, text := range map[string]string{
		"metrics":  `[{"type":"Resource","resource":{"name":"cpu","targetAverageValue":"` + digits + `e999999"}}]`,
		"behavior": `{"ScaleUp":{"Tolerance":"` + digits + `e999999"}}`,
	} {
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": name, "annotations": map[string]any{"autoscaling.alpha.kubernetes.io/" + name: text}},
			"spec":     map[string]any{"maxReplicas": 3, "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		e.Do(http.MethodPost, "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", string(body)).Is(http.StatusCreated)
	}
	if took := cpuTime(t) - before; took > cheap() {
		t.Errorf("quantities in annotations took %v of CPU", took)
	}
}

// TestUnknownFieldBesideExponent: a text that looks like a large quantity does not make an
// error of a warning.
func TestUnknownFieldBesideExponent(t *testing.T) {
	e := start(t, ours()...)
	const object = `{"metadata":{"name":"a","annotations":{"a":"9e99999999"}},"unknown":1}`
	e.Do(http.MethodPost, "/api/v1/namespaces/default/configmaps?fieldValidation=Strict", object).Is(http.StatusBadRequest).Mentions(`unknown field "unknown"`)
	e.Do(http.MethodPost, "/api/v1/namespaces/default/configmaps", object).Is(http.StatusCreated)
	e.Patch("merge", "/api/v1/namespaces/default/configmaps/a", `{"other":1}`).Is(http.StatusOK).Has("metadata.name", "a")
}

// sendQuantity sends a quantity in all ways.
func sendQuantity(t *testing.T, kind, quoted string, pod func(name, cpu, value string) []byte, send func(method, path, mediaType string, body []byte) (int, string)) {
	t.Helper()
	patch := `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":` + quoted + `}}}]}}`
	for name, r := range map[string]struct {
		method, path, mediaType string
		body                    []byte
	}{
		"JSON":            {http.MethodPost, "", "application/json", pod("q", quoted, "")},
		"YAML":            {http.MethodPost, "", "application/yaml", pod("q", quoted, "")},
		"PUT":             {http.MethodPut, "/p", "application/json", pod("p", quoted, "")},
		"status":          {http.MethodPut, "/p/status", "application/json", pod("p", quoted, "")},
		"strategic merge": {http.MethodPatch, "/p", "application/strategic-merge-patch+json", []byte(patch)},
		"merge":           {http.MethodPatch, "/p", "application/merge-patch+json", []byte(patch)},
		"JSON patch": {
			http.MethodPatch, "/p", "application/json-patch+json",
			[]byte(`[{"op":"replace","path":"/spec/containers/0/resources/requests/cpu","value":` + quoted + `}]`),
		},
		"apply": {http.MethodPatch, "/p?fieldManager=m&force=true", "application/apply-patch+yaml", pod("p", quoted, "")},
	} {
		before := cpuTime(t)
		code, answer := send(r.method, r.path, r.mediaType, r.body)
		if code < 400 || code >= 500 || !strings.Contains(answer, "quantit") {
			t.Errorf("%s%s: %d %.300s", kind, name, code, answer)
		}
		// Reading two megabytes of escapes takes a second, some patches read them twice.
		if took := cpuTime(t) - before; took > cheap() && len(quoted) < 1<<20 || took > 10*time.Second {
			t.Errorf("%s%s took %v of CPU", kind, name, took)
		}
	}
}

// TestLongQuantityOfProtobuf decodes protobuf, which clients of Go cannot encode with a
// quantity like this.
func TestLongQuantityOfProtobuf(t *testing.T) {
	pods := resourceOf(t, "pods")
	scheme, err := newScheme([]Resource{pods})
	if err != nil {
		t.Fatal(err)
	}
	codecs := newCodecs(scheme)
	digits := strings.Repeat("1", 400_000)
	field := func(number int, inner []byte) []byte {
		return append(varint([]byte{byte(number<<3 | 2)}, len(inner)), inner...)
	}
	quantity := field(1, []byte(digits))
	entry := append(field(1, []byte("cpu")), field(2, quantity)...)
	container := append(field(1, []byte("c")), field(8, field(2, entry))...)
	pod := append(field(1, field(1, []byte("p"))), field(2, field(2, container))...)
	meta := append(field(1, []byte("v1")), field(2, []byte("Pod"))...)
	body := append([]byte("k8s\x00"), append(field(1, meta), field(2, pod)...)...)
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	before := cpuTime(t)
	_, _, err = boundedQuantities{codecs}.DecoderToVersion(info.Serializer, schema.GroupVersion{Version: "v1"}).Decode(body, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "quantit") {
		t.Errorf("the error is %v", err)
	}
	if took := cpuTime(t) - before; took > cheap() {
		t.Errorf("it took %v of CPU", took)
	}
}

func varint(to []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		to = append(to, byte(n)|0x80)
	}
	return append(to, byte(n))
}

// cheap is what a request may take of the processor. Other servers of the process take some of it, and the race detector
// multiplies both.
func cheap() time.Duration {
	if costtest.Race {
		return 4 * time.Second
	}
	return time.Second
}

// cpuTime is that of the process: the machine may be shared.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
