package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

const (
	asJSON  = "application/json"
	asPatch = "application/json-patch+json"
	asMerge = "application/merge-patch+json"
	asApply = "application/apply-patch+yaml"
)

// A Target is an object, by which version and at which replica it is asked for.
type Target struct {
	Replica                int
	Resource, Version, Key string
}

func (t Target) apiVersion() string { return Group + "/" + t.Version }

// Traits are what a create gives an object besides its spec.
type Traits struct {
	Labels     map[string]string
	Finalizers []string
	Owners     []history.Item
}

// Create makes an object.
func (c *Client) Create(ctx context.Context, t Target, traits Traits) *history.Operation {
	o := c.operation(t.Replica, history.Create, t.Resource, t.Key)
	o.ID = c.id()
	o.Sent = history.Item{Resource: t.Resource, Name: t.Key, Log: []string{o.ID}, Schema: -1, APIVersion: t.apiVersion(), Finalizers: traits.Finalizers, Labels: traits.Labels}
	for _, owner := range traits.Owners {
		o.Sent.Owners = append(o.Sent.Owners, owner.UID)
	}
	path, _ := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodPost, path, asJSON, body(&o.Sent, traits.Owners)))
}

// Update appends to the log of what the client has seen last; release removes the finalizers. It reads if it has seen nothing.
func (c *Client) Update(ctx context.Context, t Target, release bool) *history.Operation {
	return c.update(ctx, t, "", release)
}

// update is Update with a write whose ID begins with a text.
func (c *Client) update(ctx context.Context, t Target, begins string, release bool) *history.Operation {
	seen, ok := c.last(t.Resource, t.Key)
	if !ok {
		return c.Get(ctx, t, "")
	}
	o := c.operation(t.Replica, history.Update, t.Resource, t.Key)
	o.ID, o.Revision, o.UID = begins+c.id(), seen.Revision, seen.UID
	o.Sent = seen
	o.Sent.Log = append(append([]string{}, seen.Log...), o.ID)
	o.Sent.APIVersion, o.Sent.Schema = t.apiVersion(), -1
	if release {
		o.Sent.Finalizers = nil
	}
	path, name := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodPut, path+"/"+name, asJSON, body(&o.Sent, nil)))
}

// Patch appends to the log, as a JSON patch.
func (c *Client) Patch(ctx context.Context, t Target) *history.Operation {
	o := c.operation(t.Replica, history.Patch, t.Resource, t.Key)
	o.ID, o.Mode = c.id(), "json"
	path, name := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodPatch, path+"/"+name, asPatch, fmt.Appendf(nil, `[{"op":"add","path":"/spec/log/-","value":%q}]`, o.ID)))
}

// Merge appends to the log that the client has seen last, as a merge patch with its revision. It reads if it has seen nothing.
func (c *Client) Merge(ctx context.Context, t Target) *history.Operation {
	seen, ok := c.last(t.Resource, t.Key)
	if !ok {
		return c.Get(ctx, t, "")
	}
	o := c.operation(t.Replica, history.Patch, t.Resource, t.Key)
	o.ID, o.Mode, o.Revision = c.id(), "merge", seen.Revision
	o.Sent = history.Item{Resource: t.Resource, Name: t.Key, Log: append(append([]string{}, seen.Log...), o.ID), Schema: -1}
	path, name := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodPatch, path+"/"+name, asMerge, encode(map[string]any{
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(seen.Revision)}, "spec": map[string]any{"log": o.Sent.Log},
	})))
}

// Apply sets the mark of a manager. It creates the object if it does not exist.
func (c *Client) Apply(ctx context.Context, t Target, manager string) *history.Operation {
	o := c.operation(t.Replica, history.Apply, t.Resource, t.Key)
	o.ID, o.Mode = c.id(), manager
	path, name := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodPatch, path+"/"+name+"?force=true&fieldManager="+manager, asApply, encode(map[string]any{
		"apiVersion": t.apiVersion(), "kind": Kind(t.Resource), "metadata": map[string]any{"name": name},
		"spec": map[string]any{"marks": map[string]string{manager: o.ID}},
	})))
}

// Preconditions of a delete.
type Preconditions struct{ UID, Revision bool }

// Delete deletes an object, if it still is what the client has seen last.
func (c *Client) Delete(ctx context.Context, t Target, p Preconditions) *history.Operation {
	o := c.operation(t.Replica, history.Delete, t.Resource, t.Key)
	o.ID = c.id()
	conditions := map[string]any{}
	if seen, ok := c.last(t.Resource, t.Key); ok {
		if p.UID {
			o.UID = seen.UID
			conditions["uid"] = seen.UID
		}
		if p.Revision {
			o.Revision = seen.Revision
			conditions["resourceVersion"] = fmt.Sprint(seen.Revision)
		}
	}
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
	if len(conditions) > 0 {
		options["preconditions"] = conditions
	}
	path, name := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodDelete, path+"/"+name, asJSON, encode(options)))
}

// DeleteCollection deletes what has the label.
func (c *Client) DeleteCollection(ctx context.Context, replica int, namespace, label string) *history.Operation {
	o := c.operation(replica, history.DeleteCollection, Things, "")
	o.ID, o.Mode = c.id(), label
	a := c.send(ctx, o, http.MethodDelete, collection(Things, "v1", namespace)+"?labelSelector="+url.QueryEscape(label), "", nil)
	if a.OK() {
		if page, err := pageOf(Things, a.Data); err == nil {
			o.Items, o.ListRevision = page.items, page.revision
		}
	}
	c.rec.add(o)
	return o
}

// Get reads an object. Modes are "", "0" and "min:<revision>".
func (c *Client) Get(ctx context.Context, t Target, m string) *history.Operation {
	o := c.operation(t.Replica, history.Get, t.Resource, t.Key)
	o.Mode = m
	q := url.Values{}
	mode(q, m)
	q.Del("resourceVersionMatch") // only lists have it: of a get, a version is the oldest that will do
	path, name := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.send(ctx, o, http.MethodGet, path+"/"+name+"?"+q.Encode(), "", nil))
}

// page is one answer to a list.
type page struct {
	items    []history.Item
	revision int64
	next     string
}

func pageOf(resource string, data []byte) (*page, error) {
	var l struct {
		Metadata struct{ ResourceVersion, Continue string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, err
	}
	p := &page{revision: revision(l.Metadata.ResourceVersion), next: l.Metadata.Continue, items: []history.Item{}}
	for _, raw := range l.Items {
		it, err := ItemOf(resource, raw)
		if err != nil {
			return nil, err
		}
		p.items = append(p.items, it)
	}
	return p, nil
}

// A Listing says how to list a namespace.
type Listing struct {
	Replica           int
	Resource, Version string
	Namespace         string
	Mode              string // "", "0", "exact:<revision>", "min:<revision>"
	Limit             int    // of a page
	Pause             time.Duration
}

// List reads all pages, with a pause between two of them.
func (c *Client) List(ctx context.Context, l Listing) *history.Operation {
	o := c.operation(l.Replica, history.List, l.Resource, "")
	o.Mode = l.Mode
	q := url.Values{}
	mode(q, l.Mode)
	if l.Limit > 0 {
		o.Mode += fmt.Sprintf("/%d", l.Limit)
		q.Set("limit", fmt.Sprint(l.Limit))
	}
	for {
		a := c.send(ctx, o, http.MethodGet, collection(l.Resource, l.Version, l.Namespace)+"?"+q.Encode(), "", nil)
		if !a.OK() {
			o.Items = nil
			break
		}
		p, err := pageOf(l.Resource, a.Data)
		if err != nil {
			c.rec.find("answer", "client %d, replica %d: unreadable list: %v", c.ID, l.Replica, err)
			o.Outcome = history.Unknown
			break
		}
		if o.Pages == 0 {
			o.ListRevision = p.revision
		}
		o.Pages++
		o.Items = append(o.Items, p.items...)
		o.PageRevisions = append(o.PageRevisions, p.revision)
		if p.next == "" {
			break
		}
		q = url.Values{"limit": {fmt.Sprint(l.Limit)}, "continue": {p.next}}
		if l.Pause > 0 {
			time.Sleep(l.Pause)
		}
	}
	c.rec.add(o)
	return o
}

// labelsOf are the labels of objects by their name: those that are deleted together have one.
func labelsOf(name string) map[string]string {
	switch {
	case strings.HasPrefix(name, "slow"):
		return map[string]string{"slow": "yes"}
	case strings.HasPrefix(name, "bulk"):
		return map[string]string{"pool": "bulk"}
	}
	return nil
}
