package builtin

import (
	"context"

	flowv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

const flowVersion = flowv1.GroupName + "/v1"

func flowSchemas() Resource {
	return Resource{
		Group: flowv1.GroupName, Version: "v1", Plural: "flowschemas", Singular: "flowschema", Kind: "FlowSchema",
		New:     func() runtime.Object { return &flowv1.FlowSchema{} },
		NewList: func() runtime.Object { return &flowv1.FlowSchemaList{} },
		Columns: flowSchemaColumns,
		Row:     func(obj runtime.Object) []any { return flowSchemaRow(obj.(*flowv1.FlowSchema)) },
		Rules: Rules{
			Name: validation.NameIsDNSSubdomain,
			Default: func(obj runtime.Object) {
				if spec := &obj.(*flowv1.FlowSchema).Spec; spec.MatchingPrecedence == 0 {
					spec.MatchingPrecedence = 1000
				}
			},
			Create: func(_ context.Context, obj runtime.Object) {
				obj.(*flowv1.FlowSchema).Status = flowv1.FlowSchemaStatus{}
			},
			Update: func(_ context.Context, obj, old runtime.Object) {
				obj.(*flowv1.FlowSchema).Status = old.(*flowv1.FlowSchema).Status
			},
			Validate: func(_ context.Context, obj runtime.Object) field.ErrorList {
				return validateFlowSchema(obj.(*flowv1.FlowSchema))
			},
			ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
				return validateFlowSchema(obj.(*flowv1.FlowSchema))
			},
			Unconditional: true,
			Generation: func(obj, old runtime.Object) bool {
				return !equality.Semantic.DeepEqual(obj.(*flowv1.FlowSchema).Spec, old.(*flowv1.FlowSchema).Spec)
			},
			Reset: ResetFields(flowVersion, "status"),
		},
		Subresources: map[string]func(*genericregistry.Store) rest.Storage{"status": Part(flowSchemaStatus())},
	}
}

func flowSchemaStatus() Rules {
	return Rules{
		Update: func(_ context.Context, obj, old runtime.Object) {
			s, before := obj.(*flowv1.FlowSchema), old.(*flowv1.FlowSchema)
			s.Spec = before.Spec
			metav1.ResetObjectMetaForStatus(s, before)
		},
		ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
			return validateFlowSchemaStatus(&obj.(*flowv1.FlowSchema).Status)
		},
		Unconditional: true,
		Reset:         ResetFields(flowVersion, "metadata", "spec"),
	}
}

func priorityLevelConfigurations() Resource {
	return Resource{
		Group: flowv1.GroupName, Version: "v1", Plural: "prioritylevelconfigurations", Singular: "prioritylevelconfiguration", Kind: "PriorityLevelConfiguration",
		New:     func() runtime.Object { return &flowv1.PriorityLevelConfiguration{} },
		NewList: func() runtime.Object { return &flowv1.PriorityLevelConfigurationList{} },
		Columns: priorityLevelColumns,
		Row:     func(obj runtime.Object) []any { return priorityLevelRow(obj.(*flowv1.PriorityLevelConfiguration)) },
		Rules: Rules{
			Name:    validation.NameIsDNSSubdomain,
			Default: func(obj runtime.Object) { defaultPriorityLevel(&obj.(*flowv1.PriorityLevelConfiguration).Spec) },
			Create: func(_ context.Context, obj runtime.Object) {
				obj.(*flowv1.PriorityLevelConfiguration).Status = flowv1.PriorityLevelConfigurationStatus{}
			},
			Update: func(_ context.Context, obj, old runtime.Object) {
				obj.(*flowv1.PriorityLevelConfiguration).Status = old.(*flowv1.PriorityLevelConfiguration).Status
			},
			Validate: func(_ context.Context, obj runtime.Object) field.ErrorList {
				return validatePriorityLevel(obj.(*flowv1.PriorityLevelConfiguration))
			},
			ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
				return validatePriorityLevel(obj.(*flowv1.PriorityLevelConfiguration))
			},
			Unconditional: true,
			Generation: func(obj, old runtime.Object) bool {
				return !equality.Semantic.DeepEqual(obj.(*flowv1.PriorityLevelConfiguration).Spec, old.(*flowv1.PriorityLevelConfiguration).Spec)
			},
			Reset: ResetFields(flowVersion, "status"),
		},
		Subresources: map[string]func(*genericregistry.Store) rest.Storage{"status": Part(priorityLevelStatus())},
	}
}

func priorityLevelStatus() Rules {
	return Rules{
		Update: func(_ context.Context, obj, old runtime.Object) {
			l, before := obj.(*flowv1.PriorityLevelConfiguration), old.(*flowv1.PriorityLevelConfiguration)
			l.Spec = before.Spec
			metav1.ResetObjectMetaForStatus(l, before)
		},
		ValidateUpdate: func(_ context.Context, obj, _ runtime.Object) field.ErrorList {
			return validatePriorityLevelStatus(&obj.(*flowv1.PriorityLevelConfiguration).Status)
		},
		Unconditional: true,
		Reset:         ResetFields(flowVersion, "metadata", "spec"),
	}
}

func defaultPriorityLevel(spec *flowv1.PriorityLevelConfigurationSpec) {
	if exempt := spec.Exempt; exempt != nil {
		defaultPointer(&exempt.NominalConcurrencyShares, 0)
		defaultPointer(&exempt.LendablePercent, 0)
	}
	if limited := spec.Limited; limited != nil {
		defaultPointer(&limited.NominalConcurrencyShares, 30)
		defaultPointer(&limited.LendablePercent, 0)
		if q := limited.LimitResponse.Queuing; q != nil {
			defaultNumber(&q.HandSize, 8)
			defaultNumber(&q.Queues, 64)
			defaultNumber(&q.QueueLengthLimit, 50)
		}
	}
}

func defaultNumber(n *int32, value int32) {
	if *n == 0 {
		*n = value
	}
}

var flowSchemaColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "PriorityLevel", Type: "string", Description: flowv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"]},
	{Name: "MatchingPrecedence", Type: "string", Description: flowv1.FlowSchemaSpec{}.SwaggerDoc()["matchingPrecedence"]},
	{Name: "DistinguisherMethod", Type: "string", Description: flowv1.FlowSchemaSpec{}.SwaggerDoc()["distinguisherMethod"]},
	ageColumn,
	{Name: "MissingPL", Type: "string", Description: "references a broken or non-existent PriorityLevelConfiguration"},
}

func flowSchemaRow(s *flowv1.FlowSchema) []any {
	method, missing := "<none>", "?"
	if s.Spec.DistinguisherMethod != nil {
		method = string(s.Spec.DistinguisherMethod.Type)
	}
	for _, c := range s.Status.Conditions {
		if c.Type == flowv1.FlowSchemaConditionDangling {
			missing = string(c.Status)
		}
	}
	return []any{s.Name, s.Spec.PriorityLevelConfiguration.Name, s.Spec.MatchingPrecedence, method, created(s), missing}
}

var priorityLevelColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "Type", Type: "string", Description: flowv1.PriorityLevelConfigurationSpec{}.SwaggerDoc()["type"]},
	{Name: "NominalConcurrencyShares", Type: "string", Description: flowv1.LimitedPriorityLevelConfiguration{}.SwaggerDoc()["nominalConcurrencyShares"]},
	{Name: "Queues", Type: "string", Description: flowv1.QueuingConfiguration{}.SwaggerDoc()["queues"]},
	{Name: "HandSize", Type: "string", Description: flowv1.QueuingConfiguration{}.SwaggerDoc()["handSize"]},
	{Name: "QueueLengthLimit", Type: "string", Description: flowv1.QueuingConfiguration{}.SwaggerDoc()["queueLengthLimit"]},
	ageColumn,
}

func priorityLevelRow(l *flowv1.PriorityLevelConfiguration) []any {
	var shares, queues, hand, length any = "<none>", "<none>", "<none>", "<none>"
	if limited := l.Spec.Limited; limited != nil {
		if limited.NominalConcurrencyShares != nil {
			shares = *limited.NominalConcurrencyShares
		}
		if q := limited.LimitResponse.Queuing; q != nil {
			queues, hand, length = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return []any{l.Name, string(l.Spec.Type), shares, queues, hand, length, created(l)}
}
