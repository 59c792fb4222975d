package fields

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/server/object"
)

// Creation gives new objects their managed fields, in place of the field
// manager: the creator owns everything, and to find that out takes no comparing.
type Creation struct {
	// Plan is the schema of the objects.
	Plan *plan.Node
	// Except are the members at the root that a create request does not set.
	Except []string
	// Manager is for objects whose fields have to be compared.
	Manager *managedfields.FieldManager
	// Kind is what the objects are.
	Kind schema.GroupVersionKind
}

// Scope returns the scope of create requests: that of the others, in which the
// field manager finds nothing to compare a new object with, and leaves it as it
// is.
func (c *Creation) Scope(scope *handlers.RequestScope) *handlers.RequestScope {
	own := *scope
	own.Creater = withoutMetadata{scope.Creater}
	return &own
}

// withoutMetadata makes objects that have no metadata.
type withoutMetadata struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (withoutMetadata) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &metav1.Status{}, nil
}

// Own writes that the sender of a create request owns all fields of its object.
// It is admission's first step, so that all others see what is stored. Patches
// may create objects too: their fields are the field manager's.
func (c *Creation) Own(ctx context.Context, a admission.Attributes, o *object.Object) {
	if agent, ok := ctx.Value(agentKey{}).(string); ok {
		c.own(o, managerOf(agent, a))
	}
}

// own writes that a manager owns all fields of an object.
func (c *Creation) own(o *object.Object, manager string) {
	fields, ok := c.fields(o)
	switch {
	case !ok:
		c.Manager.UpdateNoErrors(object.New(c.Kind), o, manager)
	case string(fields) == "{}":
		o.SetManagedFields(nil)
	default:
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: c.Kind.GroupVersion().String(),
			Time: &metav1.Time{Time: time.Now().UTC()}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
		}})
	}
}

// fields returns the fields of an object, unless its sender says who manages
// them or they have to be compared.
func (c *Creation) fields(o *object.Object) ([]byte, bool) {
	if len(o.GetManagedFields()) > 0 {
		return nil, false
	}
	d, err := jsondoc.Parse(o.JSON(), jsondoc.Limits{})
	if err != nil {
		return nil, false
	}
	defer d.Release()
	return exec.AppendFields(nil, c.Plan, d, c.Except...)
}

type agentKey struct{}

// WithUserAgent marks a create request, and remembers what the client calls
// itself: that is who owns the fields, unless the client says otherwise.
func WithUserAgent(req *http.Request) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), agentKey{}, req.UserAgent()))
}

// managerOf is what the client calls itself: in the options, or up to the first
// slash of its user agent.
func managerOf(agent string, a admission.Attributes) string {
	if options, ok := a.GetOperationOptions().(*metav1.CreateOptions); ok && options.FieldManager != "" {
		return options.FieldManager
	}
	agent, _, _ = strings.Cut(agent, "/")
	name := strings.Builder{}
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if name.Len()+utf8.RuneLen(r) > maxManager {
			break
		}
		name.WriteRune(r)
	}
	return name.String()
}

// maxManager is the most bytes that the name of a manager has.
const maxManager = 128
