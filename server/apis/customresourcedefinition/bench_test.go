package customresourcedefinition

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// large returns a CRD of the size that real ones have on average, 43 KB
// of JSON.
func large(tb testing.TB) []byte {
	tb.Helper()
	var b strings.Builder
	b.WriteString(widgets)
	for i := range 12 {
		fmt.Fprintf(&b, "          part%d:\n            type: object\n            description: %s\n            required: [name]\n            properties:\n", i, strings.Repeat("what this part is about ", 12))
		for j := range 12 {
			fmt.Fprintf(&b, "              field%d: {type: array, description: %s, items: {type: object, properties: {name: {type: string, pattern: '^[a-z]+$', maxLength: 63}, count: {type: integer, format: int32, minimum: 1}}}}\n",
				j, strings.Repeat("how it is used ", 6))
		}
		b.WriteString("              name: {type: string, minLength: 1}\n")
	}
	return asJSON(tb, b.String())
}

func BenchmarkCreate(b *testing.B) {
	data := large(b)
	ctx, s, f := through("v1"), strategy{}, NewDecoder("v1")
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, _, err := f.FromRequest(data, nil, true); err != nil {
				b.Fatal(err)
			}
		}
	})
	o, _, _, err := f.FromRequest(data, nil, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("prepare-validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := o.DeepCopy()
			s.PrepareForCreate(ctx, c)
			if errs := s.Validate(ctx, c); len(errs) > 0 {
				b.Fatal(errs)
			}
			s.WarningsOnCreate(ctx, c)
		}
	})
	b.Run("from-storage", func(b *testing.B) {
		stored := o.JSON()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := f.FromStorage(stored); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("to-v1beta1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (convertor{beta}).object(o); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("over-http", func(b *testing.B) { // all but the write to etcd
		testServer := serve(b)
		b.ReportAllocs()
		for b.Loop() {
			if a := testServer.do(b, "POST", "v1/"+plural+"?dryRun=All&fieldValidation=Warn", asJSONBody, data); a.code != http.StatusCreated {
				b.Fatal(a.body)
			}
		}
	})
}
