package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/apis/services"
)

// serviceRanges are where cluster IPs and node ports come from.
func (o *Options) serviceRanges() (services.Options, error) {
	ips, err := services.ParseClusterIPs(o.ServiceClusterIPRange)
	if err != nil {
		return services.Options{}, fmt.Errorf("--service-cluster-ip-range: %w", err)
	}
	ports, err := services.ParseNodePorts(o.ServiceNodePortRange)
	if err != nil {
		return services.Options{}, fmt.Errorf("--service-node-port-range: %w", err)
	}
	return services.Options{ClusterIPs: ips, NodePorts: ports}, nil
}

// allocate gives Services cluster IPs and node ports, if the server has Services.
func (s *Server) allocate(o *Options, list []builtin.Resource) error {
	for i := range list {
		if list[i].Group != "" || list[i].Plural != "services" {
			continue
		}
		ranges, err := o.serviceRanges()
		if err != nil {
			return err
		}
		ranges.Backend = s.backend
		if s.allocator, err = services.New(ranges); err != nil {
			return err
		}
		before := list[i].Wrap
		list[i].Wrap = func(store *genericregistry.Store) rest.Storage {
			if before != nil {
				before(store) // it sets options of the store
			}
			return s.allocator.Wrap(store)
		}
	}
	return nil
}

// publishService keeps the Service default/kubernetes, with the address of the replica
// that runs controllers, and repairs allocations.
func (s *Server) publishService(ctx context.Context, c *genericapiserver.Config) error {
	if s.tenant != nil {
		// A Service has no place for the path of a tenant: clients would reach the server.
		if err := persist(ctx, "the ServiceCIDR kubernetes", func() error { return s.allocator.EnsureRanges(ctx, s.controlPlane.client) }); err != nil {
			return err
		}
		return s.allocator.Repair(ctx)
	}
	address, err := serverAddress(c)
	if err != nil {
		return fmt.Errorf("publishing the Service default/kubernetes failed: %w", err)
	}
	if err := persist(ctx, "the Service default/kubernetes", func() error { return s.allocator.EnsureKubernetes(ctx, s.controlPlane.client, address) }); err != nil {
		return err
	}
	return s.allocator.Repair(ctx)
}

// createService creates the Service default/kubernetes, if there is none.
func (s *Server) createService(ctx context.Context, client kubernetes.Interface, c *genericapiserver.Config) error {
	address, err := serverAddress(c)
	if err != nil {
		return err
	}
	return s.allocator.CreateKubernetes(ctx, client, address)
}

// serverAddress is where clients in the network reach the server.
func serverAddress(c *genericapiserver.Config) (netip.AddrPort, error) {
	ip, ok := netip.AddrFromSlice(c.PublicAddress)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%s is not an IP address", c.PublicAddress)
	}
	listening, ok := c.SecureServing.Listener.Addr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("the server does not listen on a TCP port but on %s", c.SecureServing.Listener.Addr())
	}
	return netip.AddrPortFrom(ip.Unmap(), listening.AddrPort().Port()), nil
}
