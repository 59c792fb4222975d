package server

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/espalier-dev/espalier/server/controllers/leaderelection"
)

// The controllers, under the names that kube-controller-manager has for them.
const (
	requestSigner    = "certificatesigningrequest-signing-controller"
	roleAggregator   = "clusterrole-aggregation-controller"
	garbageCollector = "garbage-collector-controller"
	namespaceEmptier = "namespace-controller"
	quotaCounter     = "resourcequota-controller"
	rootPublisher    = "root-ca-certificate-publisher-controller"
	serviceKeeper    = "kubernetes-service-controller" // kube-apiserver has it within
	accountCreator   = "serviceaccount-controller"
	storageMigrator  = "storage-version-migrator-controller"
	// Kubernetes has none of these.
	crdRoller     = "crd-rollout-controller"
	tenantRemover = "tenant-controller"
)

// controllerNames are all controllers, in their order.
var controllerNames = []string{requestSigner, roleAggregator, garbageCollector, namespaceEmptier, quotaCounter, rootPublisher, serviceKeeper, accountCreator, storageMigrator, crdRoller, tenantRemover}

// allControllers stands for the controllers that run by default.
const allControllers = "*"

func controllersHelp() string {
	return "Controllers that run on one replica at a time: a list of names; * is all that run by default, -NAME excludes one, and an empty list is none. " +
		"The syntax and the names are those of kube-controller-manager: " + strings.Join(controllerNames, ", ") + ". " +
		"By default, " + rootPublisher + " runs with --kinds=all only, and " + serviceKeeper + " can run only then; with --kinds=custom both are off, as are " + requestSigner + " and " + accountCreator + ", whose resources are missing. " + tenantRemover + " runs with --tenants only. " +
		"Give all replicas the same list. Example: --controllers=*,-" + garbageCollector + "."
}

// running are the controllers that are on.
func (o *Options) running(all map[string]func(context.Context) error) []leaderelection.Task {
	var tasks []leaderelection.Task
	for _, name := range controllerNames {
		if o.runs(name) {
			tasks = append(tasks, leaderelection.Task{Name: name, Run: all[name]})
		}
	}
	return tasks
}

// runs reports whether a controller is on. The first entry that names it counts.
func (o *Options) runs(name string) bool {
	for _, entry := range o.Controllers {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	if o.lacks(name) || name == tenantRemover && !o.Tenants || name == rootPublisher && o.Kinds != KindsAll {
		return false
	}
	return slices.Contains(o.Controllers, allControllers)
}

// lacks reports whether the resources of a controller are off.
func (o *Options) lacks(name string) bool {
	if name == serviceKeeper {
		return o.Kinds != KindsAll
	}
	return o.Kinds == KindsCustom && (name == requestSigner || name == accountCreator || name == rootPublisher)
}

// needed are the kinds that have the resources of a controller.
func needed(name string) Kinds {
	if name == serviceKeeper {
		return KindsAll
	}
	return KindsControlPlane
}

func (o *Options) validateControllers() []error {
	var errs []error
	for _, entry := range o.Controllers {
		name := strings.TrimPrefix(entry, "-")
		switch {
		case entry == allControllers:
		case !slices.Contains(controllerNames, name):
			errs = append(errs, fmt.Errorf("--controllers has %q, which is not the name of a controller; the names are %s", entry, strings.Join(controllerNames, ", ")))
		case entry == name && o.lacks(name):
			errs = append(errs, fmt.Errorf("--controllers has %s, whose resources do not exist with --kinds=%s; leave it out, or set --kinds=%s", name, o.Kinds, needed(name)))
		}
	}
	return errs
}

// rootCA returns how to read the CA that verifies the server: --root-ca-file, or else the
// last certificate of the chain that the server presents.
func (o *Options) rootCA(serving *genericapiserver.SecureServingInfo) func() ([]byte, error) {
	if o.RootCAFile != "" {
		return func() ([]byte, error) { return os.ReadFile(o.RootCAFile) }
	}
	return func() ([]byte, error) {
		if serving == nil || serving.Cert == nil {
			return nil, errors.New("the server has no certificate; give --root-ca-file")
		}
		chain, _ := serving.Cert.CurrentCertKeyContent()
		var last *pem.Block
		for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "CERTIFICATE" {
				last = block
			}
		}
		if last == nil {
			return nil, errors.New("the server's certificate is not PEM; give --root-ca-file")
		}
		return pem.EncodeToMemory(&pem.Block{Type: last.Type, Bytes: last.Bytes}), nil
	}
}
