package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// The objects to measure: CRDs that many clusters have, at sizes that such objects have, and some beyond.
var wanted = []wantedObject{
	{"certificates.cert-manager.io/v1", 500},
	{"certificates.cert-manager.io/v1", 1400},
	{"nodepools.karpenter.sh/v1", 1500},
	{"servicemonitors.monitoring.coreos.com/v1", 2000},
	{"ciliumnetworkpolicies.cilium.io/v2", 3000},
	{"httproutes.gateway.networking.k8s.io/v1", 6000},
	{"clusters.cluster.x-k8s.io/v1beta1", 9000},
	{"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io/v1beta1", 9000},
	{"applications.argoproj.io/v1alpha1", 16000},
	{"prometheuses.monitoring.coreos.com/v1", 30000},
	{"pipelineruns.tekton.dev/v1", 60000},
	{"applications.argoproj.io/v1alpha1", 225000},
}

// A wantedObject is a version of a CRD and the size of an object of it, in bytes.
type wantedObject struct {
	crd  string
	size int
}

// metadata is what an object has picked up after a while in a cluster.
const metadata = `{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"orchard.example/v1\",\"kind\":\"Tree\",\"metadata\":{\"name\":\"espalier-7\"}}\n",` +
	`"orchard.example/contact":"gardeners@orchard.example"},"creationTimestamp":"2024-05-17T12:30:00Z","finalizers":["orchard.example/cleanup"],"generation":4,` +
	`"labels":{"app.kubernetes.io/instance":"espalier","app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"tree","app.kubernetes.io/part-of":"orchard"},` +
	`"managedFields":[{"apiVersion":"orchard.example/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},` +
	`"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},"f:spec":{".":{},"f:name":{},"f:template":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2024-05-17T12:30:00Z"},` +
	`{"apiVersion":"orchard.example/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}}}},` +
	`"manager":"controller","operation":"Update","subresource":"status","time":"2024-05-17T12:31:10Z"}],"name":"espalier-7","namespace":"orchard","ownerReferences":[{"apiVersion":"orchard.example/v1",` +
	`"blockOwnerDeletion":true,"controller":true,"kind":"Wall","name":"south","uid":"0e1c1d1e-9dc0-11d1-b245-5ffdce74fad2"}],"resourceVersion":"4881305","uid":"7d444840-9dc0-11d1-b245-5ffdce74fad2"}`

// smallMetadata is for objects that are smaller than that.
const smallMetadata = `{"creationTimestamp":"2024-05-17T12:30:00Z","generation":1,"labels":{"app":"tree"},"name":"espalier-7","namespace":"orchard","resourceVersion":"4881305","uid":"7d444840-9dc0-11d1-b245-5ffdce74fad2"}`

func metadataFor(size int) string {
	if size < 3*len(metadata) {
		return smallMetadata
	}
	return metadata
}

// A subject is an object in one form, with its schema.
type subject struct {
	crd, form string
	schema    []byte
	object    []byte
}

// subjects makes both forms of every wanted object.
func subjects(set *corpus.Set) ([]subject, error) {
	var list []subject
	for i, w := range wanted {
		s, ok := set.Find(w.crd)
		if !ok {
			return nil, fmt.Errorf("the corpus has no %s", w.crd)
		}
		theirs, err := oracle.Compile(s.JSON)
		if err != nil {
			return nil, err
		}
		client, err := clientForm(s.JSON, w.size, uint64(i))
		if err != nil {
			return nil, err
		}
		out := theirs.Normalize(client, oracle.Request)
		if out.Err != nil {
			return nil, fmt.Errorf("%s: %w", w.crd, out.Err)
		}
		list = append(list,
			subject{w.crd, "canonical", s.JSON, out.Bytes},
			subject{w.crd, "client", s.JSON, client})
	}
	return list, nil
}

// clientForm makes an object of about the wanted size, with unsorted keys, with some unknown fields.
// The generator leaves optional fields out, so that defaults are missing.
func clientForm(schema []byte, size int, seed uint64) ([]byte, error) {
	plan, err := generate.Compile(schema)
	if err != nil {
		return nil, err
	}
	meta := metadataFor(size)
	// The generator aims at a size and misses it; the nearest of some seeds is near enough.
	var best []byte
	for try := range uint64(60) {
		b := plan.Append(nil, seed<<32+try, generate.Options{Size: size - len(meta)/2, Compact: true, Metadata: meta})
		if best == nil || abs(len(b)-size) < abs(len(best)-size) {
			best = b
		}
	}
	root, err := tree.Parse(best)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, name := range []string{"spec", "status"} {
		if part := root.Get(name); part != nil && part.Kind == tree.Object {
			disturb(part, r)
		}
	}
	shuffle(root, r)
	unique(root)
	return root.Bytes(), nil
}

// unique removes all but the last of members with the same key, which the generator's maps have now and then and the scanner refuses.
func unique(n *tree.Node) {
	for i := len(n.Keys) - 1; i >= 0; i-- {
		if n.Find(tree.Unquote(n.Keys[i])) != i {
			n.Cut(i)
		}
	}
	for _, k := range n.Kids {
		unique(k)
	}
}

func abs(n int) int { return max(n, -n) }

// disturb adds unknown fields: one at the top, and one in every tenth object below.
func disturb(n *tree.Node, r *rand.Rand) {
	n.Add("notInTheSchema", tree.Str("some value"))
	var down func(*tree.Node)
	down = func(n *tree.Node) {
		if n.Kind == tree.Object && r.IntN(10) == 0 {
			n.Add("legacyField", tree.Must(`{"enabled":true}`))
		}
		for _, k := range n.Kids {
			down(k)
		}
	}
	for _, k := range n.Kids {
		down(k)
	}
}

func shuffle(n *tree.Node, r *rand.Rand) {
	if n.Kind == tree.Object {
		r.Shuffle(len(n.Kids), func(i, j int) {
			n.Kids[i], n.Kids[j] = n.Kids[j], n.Kids[i]
			n.Keys[i], n.Keys[j] = n.Keys[j], n.Keys[i]
		})
	}
	for _, k := range n.Kids {
		shuffle(k, r)
	}
}
