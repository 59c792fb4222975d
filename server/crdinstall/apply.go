package crdinstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

const (
	// atATime is how many CRDs are sent at a time: while the server waits for etcd it works
	// on another one.
	atATime = 8
	// poll is how often to look whether CRDs are served.
	poll = 5 * time.Millisecond
)

// A Client installs CRDs on one server.
type Client struct{ rest *rest.RESTClient }

// NewClient returns a client for the server of a configuration.
func NewClient(c *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	own := rest.CopyConfig(c)
	own.QPS = -1 // no client-side rate limit
	own.APIPath, own.GroupVersion = "/apis", &schema.GroupVersion{}
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, err
	}
	return &Client{client}, nil
}

func path(d *Definition) []string {
	if d.Beta {
		return []string{"/apis", beta, "customresourcedefinitions"}
	}
	return []string{"/apis", stable, "customresourcedefinitions"}
}

// Apply creates or replaces CRDs, and returns when all of them are served. It tries all,
// and returns all errors.
func (c *Client) Apply(ctx context.Context, definitions []Definition) error {
	err := each(definitions, func(d *Definition) error { return c.write(ctx, d) })
	if err != nil {
		return err
	}
	// A server answers when it serves them, mostly: one look at all is enough.
	known, err := c.discover(ctx)
	if err != nil {
		return err
	}
	return each(definitions, func(d *Definition) error {
		if known.has(d) {
			return nil
		}
		return c.served(ctx, d.Name)
	})
}

// each calls do for all CRDs, some at a time.
func each(definitions []Definition, do func(*Definition) error) error {
	errs := make([]error, len(definitions)) // each has a place of its own
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range definitions {
		group.Go(func() error {
			d := &definitions[i]
			if err := do(d); err != nil {
				errs[i] = fmt.Errorf("%s (%s): %w", d.Name, d.Source, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors have their places
	return errors.Join(errs...)
}

func (c *Client) write(ctx context.Context, d *Definition) error {
	err := c.rest.Post().AbsPath(path(d)...).Body(d.JSON).SetHeader("Content-Type", runtime.ContentTypeJSON).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return c.replace(ctx, d)
	}
	return err
}

// resources are what discovery shows, as group/version/plural.
type resources map[string]bool

// discover asks for all resources at once. A server that does not have discovery has
// none to show.
func (c *Client) discover(ctx context.Context) (resources, error) {
	data, err := c.rest.Get().AbsPath("/apis").SetHeader("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").Do(ctx).Raw()
	if err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsNotAcceptable(err) {
			return nil, nil
		}
		return nil, err
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	known := resources{}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				known[group.Name+"/"+version.Version+"/"+r.Resource] = true
			}
		}
	}
	return known, nil
}

// has reports whether the server serves all served versions of a CRD.
func (known resources) has(d *Definition) bool {
	if len(known) == 0 {
		return false
	}
	served, err := d.Resources()
	return err == nil && len(served) > 0 && !slices.ContainsFunc(served, func(name string) bool { return !known[name] })
}

// replace overwrites an existing CRD.
func (c *Client) replace(ctx context.Context, d *Definition) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := c.get(ctx, d.Name)
		if err != nil {
			return err
		}
		body, err := withVersion(d.JSON, now.ResourceVersion)
		if err != nil {
			return err
		}
		return c.rest.Put().AbsPath(append(path(d), d.Name)...).Body(body).SetHeader("Content-Type", runtime.ContentTypeJSON).Do(ctx).Error()
	})
}

// withVersion returns an object with a resource version, and otherwise as it is
// written.
func withVersion(object []byte, version string) ([]byte, error) {
	var fields, metadata map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(fields["metadata"], &metadata); err != nil {
		return nil, err
	}
	var err error
	if metadata["resourceVersion"], err = json.Marshal(version); err != nil {
		return nil, err
	}
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Current returns a CRD as the server has it now, as JSON; nil if it does not exist.
func (c *Client) Current(ctx context.Context, name string) ([]byte, error) {
	data, err := c.rest.Get().AbsPath("/apis", stable).Resource("customresourcedefinitions").Name(name).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return data, err
}

func (c *Client) get(ctx context.Context, name string) (*apiextensions.CustomResourceDefinition, error) {
	data, err := c.rest.Get().AbsPath("/apis", stable, "customresourcedefinitions", name).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	// The schema, which is most of it, is not looked at.
	var d struct {
		Metadata metav1.ObjectMeta                            `json:"metadata"`
		Status   apiextensions.CustomResourceDefinitionStatus `json:"status"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	return &apiextensions.CustomResourceDefinition{ObjectMeta: d.Metadata, Status: d.Status}, nil
}

// served waits until a CRD's objects can be created.
func (c *Client) served(ctx context.Context, name string) error {
	for {
		d, err := c.get(ctx, name)
		if err != nil {
			return err
		}
		var last string
		for _, condition := range d.Status.Conditions {
			switch {
			case condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue:
				return nil
			case condition.Type == apiextensions.NamesAccepted && condition.Status == apiextensions.ConditionFalse:
				return fmt.Errorf("its names are not accepted: %s", condition.Message)
			}
			last = condition.Message
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it is not served: %w (%s)", context.Cause(ctx), last)
		case <-time.After(poll):
		}
	}
}
