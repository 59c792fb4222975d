package impact_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/impact"
)

// benchCRD has a schema of some size, and a last property that changes.
func benchCRD(tb testing.TB, last string) *crd.CRD {
	tb.Helper()
	var fields []string
	for i := range 12 {
		fields = append(fields, fmt.Sprintf(`"field%d":{"type":"object","properties":{"name":{"type":"string","maxLength":100},"count":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"}}}}`, i))
	}
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"crons.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"crons","singular":"cron","kind":"Cron","listKind":"CronList"},"conversion":{"strategy":"None"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{` + strings.Join(fields, ",") + `,` + last + `}}}}}}]}}`))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// benchObjects are of one KB.
func benchObjects(n int) [][]byte {
	var list [][]byte
	for i := range n {
		var fields []string
		for f := range 8 {
			fields = append(fields, fmt.Sprintf(`"field%d":{"count":%d,"name":"the name of a field %d","tags":["a","b"]}`, f, i, f))
		}
		fields = append(fields, `"last":"x"`)
		list = append(list, []byte(fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Cron","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,`+
			`"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:field0":{},"f:last":{}}},"manager":"bench","operation":"Update","time":"2026-01-01T00:00:00Z"}],`+
			`"name":"object-%d","namespace":"default","uid":"00000000-0000-0000-0000-%012d"},"spec":{%s}}`, i, i, strings.Join(fields, ","))))
	}
	return list
}

func BenchmarkPage(b *testing.B) {
	const text = `"last":{"type":"string"}`
	objects := benchObjects(250)
	for name, last := range map[string]string{"same": text, "tightened": `"last":{"type":"string","maxLength":5}`, "pruned": `"other":{"type":"string"}`, "refused": `"last":{"type":"string","minLength":5}`, "defaulted": text + `,"more":{"type":"string","default":"a"}`} {
		b.Run(name, func(b *testing.B) {
			c, err := impact.New(benchCRD(b, text), benchCRD(b, last), impact.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(objects[0])))
			b.ReportAllocs()
			var s impact.Summary
			for i := 0; i < b.N; i += len(objects) {
				list, err := c.Page(context.Background(), objects)
				if err != nil {
					b.Fatal(err)
				}
				for i := range list {
					s.Add(&list[i])
				}
			}
		})
	}
}
