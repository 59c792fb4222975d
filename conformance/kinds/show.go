package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

func showExchange(w io.Writer, x *Exchange) {
	r := x.Request
	fmt.Fprintf(w, "=== %s: %s %s\n", r.Purpose, r.Method, r.path(x.There.Normalizer))
	if r.Body != nil {
		fmt.Fprintf(w, "%s\n%s\n", r.Type, indent(x.There.Normalizer.Fill(r.Body)))
	}
	fmt.Fprintf(w, "--- there: %d %q\n%s\n", x.There.Code, x.There.Warnings, indent(x.There.Body))
	fmt.Fprintf(w, "--- here: %d %q\n%s\n", x.Here.Code, x.Here.Warnings, indent(x.Here.Body))
	for _, m := range x.Outcome.Misses {
		fmt.Fprintf(w, "*** %s: %s\n%s\n", m.What, m.Rule, m.Detail)
	}
}

func indent(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// checkSeed creates a seed and, where the kind has a status, writes the status that the seed has.
func checkSeed(ctx context.Context, o Options, k *Kind, which int) error {
	object := k.seed(which, which)
	n := answer.NewNormalizer(time.Now())
	r := &Request{Method: http.MethodPost, Path: k.path(), Query: url.Values{"fieldValidation": {"Strict"}}, Type: "application/json", Body: object}
	a, err := o.There.do(ctx, r, n)
	if err != nil {
		return err
	}
	if !a.Accepted() {
		_, message, _ := a.Status()
		return fmt.Errorf("seed %d of %s was refused: %d %s", which, k.ID, a.Code, message)
	}
	stored := a.Object()
	defer func() {
		s := &script{kind: k, exchanges: []*Exchange{{Request: r}}}
		s.remove(ctx, o.There, n, answer.NewSide(a, n))
	}()
	status, ok := object["status"]
	if _, has := k.Sub["status"]; !ok || !has {
		return nil
	}
	stored["status"] = status
	b, err := o.There.do(ctx, &Request{Method: http.MethodPut, Path: k.path(), Name: answer.Name(stored), Sub: "status", Query: r.Query, Type: r.Type, Body: stored}, n)
	if err != nil {
		return err
	}
	if !b.Accepted() {
		_, message, _ := b.Status()
		return fmt.Errorf("status of seed %d of %s was refused: %d %s", which, k.ID, b.Code, message)
	}
	return nil
}
