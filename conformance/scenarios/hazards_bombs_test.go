package scenarios

import (
	"fmt"
	"net/http"
	"strings"
)

// yamlBombs are documents of little text and much work (CVE-2019-11253).
var yamlBombs = func() map[string]string {
	const head = "apiVersion: hazards.example.com/v1\nkind: Pot\nmetadata: {name: bomb}\n"
	laughs := head + "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'z'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	var merges strings.Builder
	merges.WriteString(head + "m0: &m0 {k0: 1}\n")
	for i := 1; i < 2000; i++ {
		fmt.Fprintf(&merges, "m%d: &m%d {<<: *m%d, k%d: 1}\n", i, i, i-1, i)
	}
	return map[string]string{
		"aliases of aliases":      laughs + "spec: {a: *z}\n",
		"merges of merges":        merges.String(),
		"an alias of itself":      head + "spec: &s {a: *s}\n",
		"100,000 open brackets":   head + "spec: {a: " + strings.Repeat("[", 100_000) + "}\n",
		"100,000 lists":           head + "spec: {a: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}\n",
		"100,000 open braces":     head + "spec: " + strings.Repeat("{a: ", 100_000),
		"100,000 dashes":          head + "spec:\n  " + strings.Repeat("- ", 100_000) + "x\n",
		"100,000 question marks":  head + "spec:\n  " + strings.Repeat("? ", 100_000) + "x\n",
		"an indentation of 3,000": head + "spec:\n" + stairs(3000),
		"four megabytes":          head + "spec: {text: " + strings.Repeat("x", 4<<20) + "}\n",
	}
}()

// stairs is a document in which every line is one deeper.
func stairs(n int) string {
	var b strings.Builder
	for i := range min(n, 1500) {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String() + strings.Repeat(" ", n) + "\t- [\n"
}

func (a *attacker) yamlBombs() {
	for name, body := range yamlBombs {
		status, _, answer := a.send(http.MethodPost, hazardGroup+"/namespaces/default/pots", yamlType, body)
		if status < 400 || status > 499 {
			a.t.Errorf("%s: %d: %.300s", name, status, answer)
		}
	}
	for _, body := range []string{strings.Repeat("{", 3_000_000), strings.Repeat("[", 3_000_000), strings.Repeat("&a ", 500_000), strings.Repeat("a: 1\n", 50_000), strings.Repeat("---\n", 700_000)} {
		a.refused(http.MethodPost, hazardGroup+"/namespaces/default/pots", yamlType, body)
	}
}

// deepBodies are objects of 10,000 levels and more, in a field where anything may be.
func (a *attacker) deepBodies() {
	for _, levels := range []int{10_000, 100_000, 300_000} {
		for _, way := range [][2]string{{`{"a":`, "}"}, {"[", "]"}} {
			spec := `{"any":` + strings.Repeat(way[0], levels) + "1" + strings.Repeat(way[1], levels) + "}"
			for _, contentType := range []string{jsonType, yamlType} {
				a.refused(http.MethodPost, hazardGroup+"/namespaces/default/pots", contentType, hazard("Pot", fmt.Sprintf("deep-%d", levels), spec))
			}
			a.refused(http.MethodPut, hazardGroup+"/namespaces/default/pots/one", jsonType, hazard("Pot", "one", spec))
		}
		a.refused(http.MethodPost, hazardGroup+"/namespaces/default/pots", jsonType, strings.Repeat("[", levels))
		a.refused(http.MethodDelete, hazardGroup+"/namespaces/default/pots/one", jsonType, `{"kind":"DeleteOptions","apiVersion":"v1","x":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+"}")
	}
}

// deepSchemas are CRDs of so many levels. What is refused must be so in time; what is accepted must be served.
func (a *attacker) deepSchemas() {
	for _, levels := range []int{100, 1000, 4000, 10_000, 50_000} {
		for _, way := range [][2]string{
			{`{"type":"object","properties":{"a":`, `}}`},
			{`{"type":"array","items":`, `}`},
			{`{"type":"object","additionalProperties":`, `}`},
			{`{"not":`, `}`},
			{`{"allOf":[`, `]}`},
		} {
			schema := strings.Repeat(way[0], levels) + `{"type":"string"}` + strings.Repeat(way[1], levels)
			body := strings.Replace(hazardCRD("deeps", "Deep", "Cluster", ""), `"replicas":{"type":"integer"},"number"`, `"deep":`+schema+`,"number"`, 1)
			status, _, answer := a.send(http.MethodPost, crdsPath, jsonType, body)
			switch {
			case status == http.StatusCreated:
				a.send(http.MethodPost, hazardGroup+"/deeps", jsonType, hazard("Deep", "one", `{"deep":"x"}`))
				if status, _, answer := a.send(http.MethodDelete, crdsPath+"/deeps.hazards.example.com", "", ""); status != http.StatusOK {
					a.t.Fatalf("deleting a CRD of %d levels: %d: %.300s", levels, status, answer)
				}
				eventually(a.t, patience, "the CRD is gone", func() bool {
					status, _, _ := a.send(http.MethodGet, crdsPath+"/deeps.hazards.example.com", "", "")
					return status == http.StatusNotFound
				})
			case status < 400 || status > 499:
				a.t.Errorf("%d levels of %s: %d: %.300s", levels, way[0], status, answer)
			}
		}
	}
}

// columnBombs are printer columns whose cost would be exponential (kubernetes/kubernetes#93400).
func (a *attacker) columnBombs() {
	for i, path := range []string{"." + strings.Repeat("..", 20), strings.Repeat(".", 500), ".spec" + strings.Repeat("..*", 30), strings.Repeat("..*", 30), ".spec" + strings.Repeat("[*]", 50),
		"." + strings.Repeat("..a", 10_000), ".spec.list" + strings.Repeat("[0:9]", 100), ".spec" + strings.Repeat("[?(@.a==1)]", 200), strings.Repeat("{", 10_000), ".spec[?(@" + strings.Repeat("(", 10_000)} {
		plural := fmt.Sprintf("columns%c", 'a'+i)
		crd := hazardCRD(plural, fmt.Sprintf("Column%c", 'a'+i), "Cluster", fmt.Sprintf(`{"name":"Bomb","type":"string","jsonPath":%q}`, path))
		status, _, answer := a.send(http.MethodPost, crdsPath, jsonType, crd)
		if status >= 400 && status <= 499 {
			continue
		}
		if status != http.StatusCreated {
			a.t.Errorf("a column %.50s: %d: %.300s", path, status, answer)
			continue
		}
		nested := strings.Repeat(`{"a":[`, 50) + "1" + strings.Repeat("]}", 50)
		eventually(a.t, patience, plural+" are served", func() bool {
			status, _, _ := a.send(http.MethodPost, hazardGroup+"/"+plural, jsonType, hazard(fmt.Sprintf("Column%c", 'a'+i), "one", `{"any":`+nested+`}`))
			return status == http.StatusCreated || status == http.StatusConflict
		})
		if status, answer := a.table(hazardGroup + "/" + plural); status != http.StatusOK {
			a.t.Errorf("a table with a column %.50s: %d: %.300s", path, status, answer)
		}
	}
}

// contentTypes are bodies that are not what they are said to be; some make upstream's server panic.
func (a *attacker) contentTypes() {
	for _, contentType := range []string{"application/vnd.kubernetes.protobuf", "application/cbor", "application/cbor-seq", "text/plain", "application/json;charset=utf-16", ";", "application/json, application/yaml", "*/*"} {
		for _, head := range []string{"", "k8s\x00", "k8s\x00\x0a\x10\x0a\x02v1\x12", "\xd9\xd9\xf7", "\xd9\xd9\xf7\xa1"} {
			a.refusedOrMade(http.MethodPost, hazardGroup+"/namespaces/default/pots", contentType, head+hazard("Pot", "typed", `{}`))
			a.refusedOrMade(http.MethodPut, hazardGroup+"/namespaces/default/pots/one", contentType, head+hazard("Pot", "one", `{}`))
			a.refusedOrMade(http.MethodPatch, hazardGroup+"/namespaces/default/pots/one", contentType, head+`{}`)
			a.refusedOrMade(http.MethodPost, crdsPath, contentType, head+hazardCRD("typed", "Typed", "Cluster", ""))
			a.refusedOrMade(http.MethodDelete, hazardGroup+"/namespaces/default/pots/typed", contentType, head+`{"kind":"DeleteOptions","apiVersion":"v1"}`)
		}
	}
}

// refusedOrMade sends what may be understood or not, but must not be the server's fault.
func (a *attacker) refusedOrMade(method, path, contentType, body string) {
	a.t.Helper()
	if status, _, answer := a.send(method, path, contentType, body); status > 499 {
		a.t.Errorf("%s %s as %s: %d: %.300s", method, path, contentType, status, answer)
	}
}
