package customresourcedefinition

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints"
)

// PlanSubresource is the name of the subresource that plans changes of a CRD.
const PlanSubresource = "plan"

// planAPIVersion is of the answers.
const planAPIVersion = "plan.espalier.dev/v1alpha1"

const (
	// planTime is how long a page reads objects at most; a request may take a minute.
	planTime = 10 * time.Second
	// defaultListed and maxListed are how many affected objects a page lists.
	defaultListed, maxListed = 20, 1000
)

// Plan is the answer to a change of a CRD that was planned. The summary is of this page alone: the
// client adds up pages until Continue is empty.
type Plan struct {
	metav1.TypeMeta `json:",inline"`
	CRD             string `json:"crd"`
	Generation      int64  `json:"generation"` // of the stored CRD
	Revision        string `json:"revision"`   // at which objects were read
	Digest          string `json:"digest"`     // of the CRD that is stored, the new spec and the conversion rules
	// ID is what the annotation espalier.dev/approved-plan of the new CRD approves.
	ID       string         `json:"id"`
	Total    int64          `json:"total"` // objects in etcd
	Continue string         `json:"continue"`
	Refused  []string       `json:"refused,omitempty"` // why the server refuses the new CRD
	Summary  impact.Summary `json:"summary"`
}

// planStorage is the subresource plan: POST a CRD to learn what becomes of the objects of the one
// that is stored. It stores nothing.
type planStorage struct {
	main       main
	planner    *planner
	authorizer authorizer.UnconditionalAuthorizer
}

var _ endpoints.Answerer = planStorage{}

// New implements rest.Storage.
func (planStorage) New() runtime.Object { return blankObject() }

// Destroy implements rest.Storage. The store belongs to the resource itself.
func (planStorage) Destroy() {}

// Answer implements endpoints.Answerer.
func (s planStorage) Answer(ctx context.Context, name string, body runtime.Object, query url.Values) (any, error) {
	now, ok := body.(*object.Object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a CRD", body))
	}
	scan, err := scanOf(query)
	if err != nil {
		return nil, err
	}
	obj, err := s.main.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	old := obj.(*object.Object)
	if now.GetName() != name && now.GetName() != "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", now.GetName(), name))
	}
	plan := &Plan{
		TypeMeta: metav1.TypeMeta{APIVersion: planAPIVersion, Kind: "Plan"},
		CRD:      name, Generation: old.GetGeneration(), Digest: digest(old.GetUID(), now),
	}
	if err := s.mayPlan(ctx, old, now); err != nil {
		return nil, err
	}
	end, err := s.planner.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, err := range s.main.UpdateStrategy.ValidateUpdate(ctx, asUpdate(ctx, s.main, now, old), old) {
		plan.Refused = append(plan.Refused, err.Error())
	}
	return plan, s.page(ctx, plan, old, now, scan, query.Get("continue"))
}

// asUpdate prepares a CRD like one of an update request: with the metadata and the status that are
// stored.
func asUpdate(ctx context.Context, m main, now, old *object.Object) *object.Object {
	now.SetName(old.GetName())
	now.SetUID(old.GetUID())
	now.SetResourceVersion(old.GetResourceVersion())
	now.SetGeneration(old.GetGeneration())
	now.SetCreationTimestamp(old.GetCreationTimestamp())
	now.SetManagedFields(nil)
	m.UpdateStrategy.PrepareForUpdate(ctx, now, old)
	return now
}

// page fills in the plan of a page of objects.
func (s planStorage) page(ctx context.Context, plan *Plan, old, now *object.Object, scan scan, token string) error {
	change, err := s.planner.change(old, now)
	switch {
	case len(plan.Refused) > 0 && (err != nil || callsOther(old, now)):
		return nil // it is refused, and there is no schema to apply, or a webhook that must not be called
	case err != nil:
		return apierrors.NewBadRequest("the new CRD cannot be planned: " + err.Error())
	}
	_, folder := resourceOf(plan.CRD)
	if token == "" {
		total, err := s.planner.backend.CountKeys(ctx, folder)
		if err != nil {
			return err
		}
		plan.Total = int64(total)
	} else {
		from, err := parsePosition(token)
		if err != nil {
			return err
		}
		if from.UID != string(old.GetUID()) || from.Generation != plan.Generation {
			return apierrors.NewResourceExpired("the CRD " + plan.CRD + " has changed since the plan began; start again without continue")
		}
		if from.Digest != plan.Digest {
			return apierrors.NewBadRequest("continue is of a plan for another spec; start again without continue")
		}
		scan.after, scan.revision, plan.Total = string(from.After), from.Revision, from.Total
	}
	found, err := s.planner.scan(ctx, plan.CRD, change, scan)
	if err != nil {
		return planError(err)
	}
	found.summary.Order()
	plan.Summary, plan.Revision = found.summary, strconv.FormatInt(found.Revision, 10)
	plan.ID = newPlanID(old, found.Revision, plan.Digest).String()
	if found.More {
		plan.Continue = position{string(old.GetUID()), plan.Generation, plan.Digest, found.Revision, []byte(found.Last), plan.Total}.String()
	}
	return nil
}

// planError words errors of a scan that are not statuses.
func planError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return apierrors.NewTimeoutError("reading or converting the objects took too long; ask for fewer at a time with limit", 0)
	}
	return err
}

// scanOf reads the parameters of a request.
func scanOf(query url.Values) (scan, error) {
	s := scan{time: planTime, list: defaultListed}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return s, apierrors.NewBadRequest(fmt.Sprintf("limit is %q and must be a number of objects", text))
		}
		s.limit = n
	}
	if text := query.Get("list"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxListed {
			return s, apierrors.NewBadRequest(fmt.Sprintf("list is %q and must be a number from 0 to %d", text, maxListed))
		}
		s.list = n
	}
	return s, nil
}

// position is where the next page begins.
type position struct {
	UID        string `json:"u"`
	Generation int64  `json:"g"`
	Digest     string `json:"d"`
	Revision   int64  `json:"r"`
	After      []byte `json:"a"` // a key may have any bytes
	Total      int64  `json:"t"`
}

// String is the token for clients.
func (p position) String() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// parsePosition reads a token. A client can make up any: it says where to go on in the folder of the
// resource, which the client may plan anyway.
func parsePosition(token string) (position, error) {
	var p position
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Revision <= 0 || len(p.After) == 0 {
		return p, apierrors.NewBadRequest("continue is no token of a plan; start again without continue")
	}
	return p, nil
}
