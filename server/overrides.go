package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// Resources that can be in another etcd. Writes of others have conditions about objects
// of other resources, and the garbage collector and quotas follow them: one etcd must have
// all of these.
var (
	coreEvents = corev1.Resource("events")
	leases     = coordinationv1.Resource("leases")

	overridable = map[schema.GroupResource]schema.GroupResource{
		coreEvents: coreEvents, {Group: eventsv1.GroupName, Resource: "events"}: coreEvents, leases: leases,
	}
)

// An override is an etcd that has some of the built-in resources.
type override struct {
	servers   []string
	resources []schema.GroupResource
	backend   *store.Backend
}

// overrides reads --etcd-servers-overrides. Resources with the same servers share an override.
func (o *Options) overrides() ([]*override, []error) {
	const flag = "--etcd-servers-overrides"
	parsed, err := options.ParseEtcdServersOverrides(o.Etcd.EtcdServersOverrides)
	if err != nil {
		return nil, []error{fmt.Errorf("%s must be GROUP/RESOURCE#URL;URL, separated by commas, such as /events#https://etcd-events:2379", flag)}
	}
	var all []*override
	var errs []error
	seen := map[schema.GroupResource][]string{}
	for _, one := range parsed {
		resource, ok := overridable[one.GroupResource]
		servers := slices.Sorted(slices.Values(one.Servers))
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s: %s/%s cannot be in another etcd: only /events, events.k8s.io/events and coordination.k8s.io/leases can; others are written under conditions that one etcd has to check", flag, one.GroupResource.Group, one.GroupResource.Resource))
			continue
		case !o.Kinds.has(resource):
			errs = append(errs, fmt.Errorf("%s: the server does not have %s with --kinds=%s; leave it out", flag, resource, o.Kinds))
			continue
		case seen[resource] != nil && !slices.Equal(seen[resource], servers):
			errs = append(errs, fmt.Errorf("%s: %s is there twice, with other servers; events of both groups are the same objects", flag, resource))
			continue
		case seen[resource] != nil:
			continue
		}
		seen[resource] = servers
		same := slices.IndexFunc(all, func(other *override) bool { return slices.Equal(slices.Sorted(slices.Values(other.servers)), servers) })
		if same < 0 {
			all, same = append(all, &override{servers: one.Servers}), len(all)
		}
		all[same].resources = append(all[same].resources, resource)
	}
	return all, errs
}

// validateServers checks the URLs of an etcd that a flag names.
func (o *Options) validateServers(flag string, servers []string) (errs []error) {
	transport := &o.Etcd.StorageConfig.Transport
	secure := transport.CertFile != "" || transport.TrustedCAFile != ""
	for _, server := range servers {
		u, err := url.Parse(server)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "unix" && u.Scheme != "unixs":
			errs = append(errs, fmt.Errorf("%s: %q has no scheme: write https://host:port", flag, server))
		case u.Scheme == "http" && secure:
			errs = append(errs, fmt.Errorf("%s: %s is not encrypted, though --etcd-cafile or --etcd-certfile is given: write https://%s", flag, server, u.Host))
		}
	}
	if open := unencrypted(servers); len(open) > 0 && !secure && !o.EtcdInsecure {
		errs = append(errs, fmt.Errorf("%s: %s is on another machine and not encrypted: anyone on the network could read all objects, secrets included, and anyone who can connect could change them; "+
			"write https, and give --etcd-cafile, --etcd-certfile and --etcd-keyfile; or, if the network encrypts by itself, --etcd-insecure", flag, strings.Join(open, ", ")))
	}
	return errs
}

// openOverrides connects to the etcds of some resources.
func (s *Server) openOverrides(ctx context.Context, o *Options, c *genericapiserver.Config) error {
	all, errs := o.overrides()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, one := range all {
		config := storeConfig(o, c)
		config.Transport.ServerList, config.Beside = one.servers, s.backend
		var err error
		if one.backend, err = store.Open(ctx, config); err != nil {
			return fmt.Errorf("--etcd-servers-overrides: %w", err)
		}
		s.elsewhere = append(s.elsewhere, one)
		limited := &rareCheck{check: one.backend.Healthy}
		check := func(req *http.Request) error { return limited.result(req.Context()) }
		c.AddReadyzChecks(healthz.NamedCheck(fmt.Sprintf("etcd-override-%d", i), check), healthz.NamedCheck(fmt.Sprintf("etcd-override-readiness-%d", i), check))
		c.AddHealthzChecks(healthz.NamedCheck(fmt.Sprintf("etcd-override-%d", i), check))
	}
	return nil
}

// backendOf returns the etcd that has a resource.
func (s *Server) backendOf(resource schema.GroupResource) *store.Backend {
	for _, one := range s.elsewhere {
		if slices.Contains(one.resources, resource) {
			return one.backend
		}
	}
	return s.backend
}

// folderOf is where objects of a resource that can be in another etcd are.
func folderOf(resource schema.GroupResource) string { return "/" + resource.Resource }

// count counts the objects below a key in the etcd that has them.
func (s *Server) count(ctx context.Context, key string) (storage.Stats, error) {
	for _, one := range s.elsewhere {
		if slices.ContainsFunc(one.resources, func(r schema.GroupResource) bool { return folderOf(r) == key }) {
			return one.backend.Count(ctx, key)
		}
	}
	return s.backend.Count(ctx, key)
}

// routes are the folders in other etcds.
func (s *Server) routes() map[string]*store.Backend {
	all := map[string]*store.Backend{}
	for _, one := range s.elsewhere {
		for _, r := range one.resources {
			all[folderOf(r)] = one.backend
		}
	}
	return all
}
