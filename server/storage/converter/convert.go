package converter

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/webhook"
)

// PruneFunc brings a converted object into the shape that the schema of its new
// version allows, without filling in defaults.
type PruneFunc func(o *object.Object) (*object.Object, error)

// Factory makes converters. Those that call the same webhook share connections.
type Factory struct {
	clients webhookutil.ClientManager
}

// NewFactory returns a factory. services finds the address of a service; client
// makes the calls, without credentials.
func NewFactory(services webhookutil.ServiceResolver, client *webhook.Client) (*Factory, error) {
	clients, err := webhookutil.NewClientManager(nil) // reviews are bytes here: no types to register
	if err != nil {
		return nil, err
	}
	clients.SetAuthenticationInfoResolver(client.Anonymous())
	clients.SetServiceResolver(services)
	if err := clients.Validate(); err != nil {
		return nil, err
	}
	return &Factory{clients: clients}, nil
}

// For returns the converter of a CRD of apiextensions.k8s.io/v1. prune is
// called for every object that has been converted.
func (f *Factory) For(d *crd.CRD, prune PruneFunc) (*Converter, error) {
	r := resource{definition: d.Name, group: d.Group, versions: map[string]bool{}, prune: prune}
	for _, v := range d.Versions {
		r.versions[r.apiVersion(v.Name)] = true
	}
	if _, ok := d.Annotations[conversion.Annotation]; ok {
		return rulesOf(d, r)
	}
	switch c := &d.Conversion; c.Strategy {
	case "None":
		return &Converter{resource: r, translate: rename}, nil
	case "Webhook":
		w, err := f.webhookFor(d.Name, c)
		if err != nil {
			return nil, err
		}
		return &Converter{resource: r, translate: w.translate}, nil
	default:
		return nil, fmt.Errorf("unknown conversion strategy %q for CRD %s", c.Strategy, d.Name)
	}
}

// webhookFor returns the client of a conversion webhook.
func (f *Factory) webhookFor(definition string, c *crd.Conversion) (*hook, error) {
	from := c.Webhook
	if from == nil {
		return nil, errors.New("conversion of " + definition + ": there is no webhook.clientConfig")
	}
	config := webhookutil.ClientConfig{Name: "conversion_webhook_for_" + definition, URL: ptr.Deref(from.URL, "")}
	if len(bytes.TrimSpace(from.CABundle)) > 0 {
		config.CABundle = from.CABundle
	}
	if s := from.Service; s != nil {
		config.Service = &webhookutil.ClientConfigService{Name: s.Name, Namespace: s.Namespace, Port: s.Port, Path: ptr.Deref(s.Path, "")}
	}
	client, err := f.clients.HookClient(config)
	if err != nil {
		return nil, err
	}
	return newHook(definition, c.ReviewVersions, client), nil
}

// resource is what all converters know.
type resource struct {
	definition string
	group      string
	versions   map[string]bool // apiVersions of the resource
	prune      PruneFunc
}

func (r *resource) apiVersion(version string) string {
	return schema.GroupVersion{Group: r.group, Version: version}.String()
}

// Converter brings objects of one resource into its versions. It is safe for
// concurrent use.
type Converter struct {
	resource
	// translate is the strategy: it converts objects to the target version, and gets none
	// that have that version already.
	translate func(ctx context.Context, objs []*object.Object, target schema.GroupVersion) ([]*object.Object, error)
	rules     bool
}

// Rules reports whether the converter has valid rules of the CRD: whether an object can be converted depends on nothing
// but the object, and is known without a call.
func (c *Converter) Rules() bool { return c.rules }

// Convert returns the objects, in the order given, in the version of that
// name. Those that are in it already come back as they are; the others share
// calls of a webhook. It does not change its input.
func (c *Converter) Convert(ctx context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
	target := schema.GroupVersion{Group: c.group, Version: version}
	wanted := target.String()
	if !c.versions[wanted] {
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", wanted)
	}
	var other []*object.Object
	for i, o := range objs {
		switch {
		case o.APIVersion() == wanted:
			continue
		case c.versions[o.APIVersion()]:
			other = append(other, o)
		case len(objs) == 1:
			return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", o.APIVersion())
		default:
			return nil, fmt.Errorf("request to convert CR list failed, list index %d has invalid group/version: %s", i, o.APIVersion())
		}
	}
	if len(other) == 0 {
		return objs, nil
	}
	converted, err := c.translate(ctx, other, target)
	if err != nil {
		return nil, err
	}
	result := make([]*object.Object, len(objs))
	for i, o := range objs {
		if o.APIVersion() != wanted {
			if o, err = c.prune(converted[0]); err != nil {
				return nil, err
			}
			converted = converted[1:]
		}
		result[i] = o
	}
	return result, nil
}

// rename is the strategy None.
func rename(_ context.Context, objs []*object.Object, target schema.GroupVersion) ([]*object.Object, error) {
	result := make([]*object.Object, len(objs))
	for i, o := range objs {
		renamed := o.DeepCopy()
		renamed.SetGroupVersionKind(target.WithKind(o.Kind()))
		renamed.SetSource(nil) // is about the version that it has left
		result[i] = renamed
	}
	return result, nil
}
