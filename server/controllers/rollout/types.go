package rollout

import (
	_ "embed" // the CRD
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// CRD is the CRD of CRDRollouts, as YAML.
//
//go:embed crd.yaml
var CRD []byte

// Resource is that of CRDRollouts.
var Resource = schema.GroupVersionResource{Group: "espalier.dev", Version: "v1alpha1", Resource: "crdrollouts"}

// Phase is how far a rollout has come.
type Phase string

// The phases, in their order.
const (
	Expand   Phase = "Expand"
	Backfill Phase = "Backfill"
	Verify   Phase = "Verify"
	Contract Phase = "Contract"
	Done     Phase = "Done"
	Undoing  Phase = "Undoing"
	Undone   Phase = "Undone"
	Failed   Phase = "Failed"
)

// Undo is no phase. As an approval, it lets an undo remove data.
const Undo Phase = "Undo"

// ended reports whether a rollout is over, unless it is undone.
func (p Phase) ended() bool { return p == Done || p == Undone || p == Failed }

// rollout is a CRDRollout.
type rollout struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              spec   `json:"spec"`
	Status            status `json:"status"`
}

type spec struct {
	CRD           string   `json:"crd"`
	Expand        manifest `json:"expand"`
	Contract      manifest `json:"contract"`
	Gates         []Phase  `json:"gates"`
	Approvals     []Phase  `json:"approvals"`
	KeepPreimages string   `json:"keepPreimages"`
	Undo          bool     `json:"undo"`
}

// manifest is what a rollout sets of a CRD.
type manifest struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        map[string]any    `json:"spec"`
}

type status struct {
	Phase              Phase           `json:"phase,omitempty"`
	Message            string          `json:"message,omitempty"`
	ObservedGeneration int64           `json:"observedGeneration,omitempty"`
	sight                              // of the CRD as the controller has seen it last
	Before             *manifest       `json:"before,omitempty"`
	Plan               json.RawMessage `json:"plan,omitempty"`
	Migration          string          `json:"migration,omitempty"`
	Step               string          `json:"step,omitempty"` // of an undo: the one that is done
}

// sight tells a CRD apart from what others make of it. The generation does not change with annotations, and a CRD that is
// created again may have the same.
type sight struct {
	UID         types.UID `json:"crdUID,omitempty"`
	Generation  int64     `json:"crdGeneration,omitempty"`
	Annotations string    `json:"crdAnnotations,omitempty"` // digest of those that the rollout sets
}

// waits reports whether a phase needs an approval that it does not have.
func (r *rollout) waits(p Phase) bool {
	return slices.Contains(r.Spec.Gates, p) && !slices.Contains(r.Spec.Approvals, p)
}

// read decodes a CRDRollout. The CRD's schema has validated it.
func read(u *unstructured.Unstructured) (*rollout, error) {
	r := &rollout{}
	data, err := u.MarshalJSON()
	if err == nil {
		err = utiljson.Unmarshal(data, r) // integers stay integers
	}
	return r, err
}

// with returns the object with another status.
func with(u *unstructured.Unstructured, s *status) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(data, &fields); err != nil { // integers stay integers
		return nil, err
	}
	u = u.DeepCopy()
	u.Object["status"] = fields
	return u, nil
}
