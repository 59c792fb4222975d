package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// A CRD is what the harness changes of a CustomResourceDefinition.
type CRD struct {
	Resource string
	Schema   int    // N of the default p<N>; none if negative
	Storage  string // version
	Versions []string
	Webhook  *Webhook // converts, if not nil
}

// Path is that of the CRD.
func (d *CRD) Path() string { return crdsPath + "/" + d.Resource + "." + Group }

// body is the CRD at a revision; 0 for a create.
func (d *CRD) body(at string) []byte {
	spec := map[string]any{
		"log":   map[string]any{"type": "array", "default": []string{}, "items": map[string]any{"type": "string"}},
		"marks": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
	}
	if d.Schema >= 0 {
		spec[fmt.Sprintf("p%d", d.Schema)] = map[string]any{"type": "string", "default": "d"}
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "default": map[string]any{}, "properties": spec}}}
	var versions []any
	for _, v := range d.Versions {
		versions = append(versions, map[string]any{"name": v, "served": true, "storage": v == d.Storage, "schema": map[string]any{"openAPIV3Schema": schema}})
	}
	// The server protects the objects of a CRD from its deletion: here they are meant to go.
	meta := map[string]any{"name": d.Resource + "." + Group, "annotations": map[string]string{"espalier.dev/allow-deletion": "true"}}
	if at != "" {
		meta["resourceVersion"] = at
	}
	kind := Kind(d.Resource)
	out := map[string]any{"group": Group, "scope": "Namespaced", "versions": versions, "names": map[string]any{
		"plural": d.Resource, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List",
	}}
	if d.Webhook != nil {
		out["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []string{"v1"}, "clientConfig": d.Webhook.client("/convert"),
		}}
	}
	return encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": out})
}

// Kind is that of a resource: the singular in capitals.
func Kind(resource string) string {
	s := strings.TrimSuffix(resource, "s")
	return strings.ToUpper(s[:1]) + s[1:]
}

// crdState is what is read of a CRD.
type crdState struct {
	Metadata struct {
		ResourceVersion string
		Generation      int64
	}
	Spec struct {
		Versions []struct {
			Name    string
			Storage bool
			Schema  struct {
				OpenAPIV3Schema struct {
					Properties struct {
						Spec struct{ Properties map[string]any }
					}
				}
			}
		}
	}
	Status struct {
		ObservedGeneration int64
		Conditions         []struct{ Type, Status string }
	}
}

// schema is N of p<N>.
func (s *crdState) schema() int {
	out := -1
	for _, v := range s.Spec.Versions {
		for name := range v.Schema.OpenAPIV3Schema.Properties.Spec.Properties {
			if n, err := strconv.Atoi(strings.TrimPrefix(name, "p")); err == nil {
				out = max(out, n)
			}
		}
	}
	return out
}

func (s *crdState) storage() string {
	for _, v := range s.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// acknowledged reports whether all replicas are said to serve the CRD as it is.
func (s *crdState) acknowledged() bool {
	established := false
	for _, c := range s.Status.Conditions {
		established = established || c.Type == "Established" && c.Status == "True"
	}
	return established && s.Status.ObservedGeneration == s.Metadata.Generation
}

// readCRD reads a CRD. The state is nil if there was another answer than the CRD.
func (c *Client) readCRD(ctx context.Context, replica int, d *CRD) (*crdState, *Answer) {
	a := c.Ask(ctx, replica, http.MethodGet, d.Path(), "", nil)
	var s crdState
	if !a.OK() || json.Unmarshal(a.Data, &s) != nil {
		return nil, a
	}
	return &s, a
}

// ChangeCRD makes the CRD what d says, whether it is there or not, by the replica via, and waits until the replica ask shows that this
// is acknowledged. It returns nil if that did not happen in the time; the acknowledgement is recorded.
func (c *Client) ChangeCRD(ctx context.Context, d *CRD, via, ask int, patience time.Duration) *history.Ack {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ack := history.Ack{Resource: d.Resource, Schema: d.Schema, Storage: d.Storage}
	for sent := false; ctx.Err() == nil && !sent; {
		at, method, path := "", http.MethodPost, crdsPath
		s, a := c.readCRD(ctx, via, d)
		switch {
		case s != nil:
			at, method, path = s.Metadata.ResourceVersion, http.MethodPut, d.Path()
		case a.Code != http.StatusNotFound:
			launch.Pause(ctx, 20*time.Millisecond)
			continue
		}
		if ack.Sent == 0 {
			ack.Sent = c.rec.now()
		}
		a = c.Ask(ctx, via, method, path, asJSON, bytes.NewReader(d.body(at)))
		// A refusal is of a conflict: the server wrote the status.
		if sent = a.Outcome() != history.Refused; !sent {
			launch.Pause(ctx, 10*time.Millisecond)
		}
	}
	for ; ctx.Err() == nil; launch.Pause(ctx, 5*time.Millisecond) {
		s, _ := c.readCRD(ctx, ask, d)
		if s != nil && s.acknowledged() && s.schema() == d.Schema && s.storage() == d.Storage {
			ack.At, ack.Revision = c.rec.now(), revision(s.Metadata.ResourceVersion)
			c.rec.with(func(h *history.History) { h.Acks = append(h.Acks, ack) })
			return &ack
		}
	}
	return nil
}

// DeleteCRD deletes a CRD by the replica via and waits until the replica ask says that it is gone.
func (c *Client) DeleteCRD(ctx context.Context, d *CRD, via, ask int, patience time.Duration) *history.Ack {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ack := history.Ack{Resource: d.Resource, Schema: -1, Deleted: true, Sent: c.rec.now()}
	for ctx.Err() == nil && !c.Ask(ctx, via, http.MethodDelete, d.Path(), "", nil).OK() {
		if _, a := c.readCRD(ctx, via, d); a.Code == http.StatusNotFound {
			break
		}
		launch.Pause(ctx, 20*time.Millisecond)
	}
	for ; ctx.Err() == nil; launch.Pause(ctx, 10*time.Millisecond) {
		if _, a := c.readCRD(ctx, ask, d); a.Code == http.StatusNotFound {
			ack.At = c.rec.now()
			// What is written from now on is after the end of the CRD.
			var err error
			if ack.Revision, err = c.environment.Revision(ctx); err != nil {
				return nil
			}
			c.rec.with(func(h *history.History) { h.Acks = append(h.Acks, ack) })
			return &ack
		}
	}
	return nil
}
