package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/endpoints"
)

// connection is a subresource through which kube-apiserver passes bytes on to a kubelet, a
// pod or a Service. This server connects to none of them. It answers as kube-apiserver
// does before it has a connection.
type connection struct {
	verbs   []string
	command bool // that runs something
	options func() runtime.Object
	connect func(ctx context.Context, name string, query url.Values) error
}

var _ endpoints.Connecter = connection{}

// New implements rest.Storage.
func (c connection) New() runtime.Object { return c.options() }

// Destroy implements rest.Storage.
func (connection) Destroy() {}

// Verbs implements endpoints.Connecter.
func (c connection) Verbs() []string { return c.verbs }

// Commands implements endpoints.Connecter.
func (c connection) Commands() bool { return c.command }

// Connect implements endpoints.Connecter.
func (c connection) Connect(ctx context.Context, name string, query url.Values) error {
	return c.connect(ctx, name, query)
}

// The verbs of commands, and of requests that are passed on.
var (
	commandVerbs = []string{"create", "get"}
	proxyVerbs   = []string{"create", "delete", "get", "patch", "update"}
)

// errNoConnection is the error where kube-apiserver would connect.
var errNoConnection = errors.New("this server connects to no node and no pod")

// addConnections adds the subresources of pods, nodes and Services that stand for
// connections.
func addConnections(pods, nodes, services *Resource) {
	var nodeStore *genericregistry.Store
	subresource(nodes, "proxy", func(s *genericregistry.Store) rest.Storage {
		nodeStore = s
		return connection{proxyVerbs, false, empty[corev1.NodeProxyOptions], func(ctx context.Context, name string, _ url.Values) error {
			_, node, _, ok := utilnet.SplitSchemeNamePort(name)
			if !ok {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid node request %q", name))
			}
			return reach(ctx, s, node, "nodes")
		}}
	})
	subresource(services, "proxy", func(*genericregistry.Store) rest.Storage {
		return connection{proxyVerbs, false, empty[corev1.ServiceProxyOptions], func(_ context.Context, name string, _ url.Values) error {
			_, service, _, ok := utilnet.SplitSchemeNamePort(name)
			if !ok {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", name))
			}
			return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", service))
		}}
	})
	subresource(pods, "proxy", func(s *genericregistry.Store) rest.Storage {
		return connection{proxyVerbs, false, empty[corev1.PodProxyOptions], func(ctx context.Context, name string, _ url.Values) error {
			_, pod, _, ok := utilnet.SplitSchemeNamePort(name)
			if !ok {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", name))
			}
			p, err := podOf(ctx, s, pod)
			switch {
			case err != nil:
				return err
			case p.Status.PodIP == "" && len(p.Status.PodIPs) == 0:
				return apierrors.NewBadRequest("address not allowed")
			}
			return apierrors.NewServiceUnavailable(errNoConnection.Error())
		}}
	})
	command := func(name string, options func() runtime.Object, verbs []string, containers bool, before func(string, url.Values) error) {
		subresource(pods, name, func(s *genericregistry.Store) rest.Storage {
			return connection{verbs, name != "log", options, func(ctx context.Context, pod string, query url.Values) error {
				if before != nil {
					if err := before(pod, query); err != nil {
						return err
					}
				}
				p, err := podOf(ctx, s, pod)
				if err != nil {
					return err
				}
				if containers {
					if err := checkContainer(p, query.Get("container")); err != nil {
						return err
					}
				}
				switch {
				case p.Spec.NodeName != "":
					return reach(ctx, nodeStore, p.Spec.NodeName, "pods")
				case name == "log":
					return nil // nothing was written
				}
				return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", p.Name))
			}}
		})
	}
	command("log", empty[corev1.Pod], []string{"get"}, true, checkLogOptions)
	command("exec", empty[corev1.PodExecOptions], commandVerbs, true, nil)
	command("attach", empty[corev1.PodAttachOptions], commandVerbs, true, nil)
	command("portforward", empty[corev1.PodPortForwardOptions], commandVerbs, false, nil)
}

// subresource adds a subresource.
func subresource(r *Resource, name string, of func(*genericregistry.Store) rest.Storage) {
	if r.Subresources == nil {
		r.Subresources = map[string]func(*genericregistry.Store) rest.Storage{}
	}
	r.Subresources[name] = of
}

func podOf(ctx context.Context, s *genericregistry.Store, name string) (*corev1.Pod, error) {
	obj, err := s.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}

// reach returns the error of a connection to a node. Kubernetes calls a node that is not
// found by the resource of the request.
func reach(ctx context.Context, nodes *genericregistry.Store, name, resource string) error {
	obj, err := nodes.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(corev1.Resource(resource), name)
	}
	if err != nil {
		return err
	}
	if len(obj.(*corev1.Node).Status.Addresses) == 0 {
		return errors.New("no preferred addresses found; known addresses: []")
	}
	return errNoConnection
}

// checkContainer refuses a container that a pod does not have, and none if it has several.
func checkContainer(p *corev1.Pod, name string) error {
	main, first, added := containerNames(p.Spec.Containers), containerNames(p.Spec.InitContainers), []string{}
	for _, c := range p.Spec.EphemeralContainers {
		added = append(added, c.Name)
	}
	if name != "" {
		if slices.Contains(main, name) || slices.Contains(first, name) || slices.Contains(added, name) {
			return nil
		}
		return apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, p.Name))
	}
	if len(main) == 1 {
		return nil
	}
	text := fmt.Sprintf("a container name must be specified for pod %s", p.Name)
	if len(main) > 0 {
		text += fmt.Sprintf(", choose one of: [%s]", strings.Join(main, " "))
	}
	if len(first) > 0 {
		text += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(first, " "))
	}
	if len(added) > 0 {
		text += fmt.Sprintf(" or one of the ephemeral containers: [%s]", strings.Join(added, " "))
	}
	return apierrors.NewBadRequest(text)
}

func containerNames(list []corev1.Container) []string {
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// checkLogOptions refuses numbers that no log has.
func checkLogOptions(pod string, query url.Values) error {
	var errs field.ErrorList
	for _, one := range []struct {
		name  string
		least int64
		text  string
	}{
		{"tailLines", 0, "must be greater than or equal to 0"},
		{"limitBytes", 1, "must be greater than 0"},
		{"sinceSeconds", 1, "must be greater than 0"},
	} {
		text := query.Get(one.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if n < one.least {
			errs = append(errs, field.Invalid(field.NewPath(one.name), n, one.text))
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), pod, errs)
	}
	return nil
}
