package builtin

import (
	flowv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/crd/rules"
)

func flowSchemas() Resource {
	r := flowResource("flowschemas", "flowschema", &rules.FlowSchema)
	r.New, r.NewList = empty[flowv1.FlowSchema], empty[flowv1.FlowSchemaList]
	r.Columns, r.Row = flowSchemaColumns, row(flowSchemaRow)
	return r
}

func priorityLevelConfigurations() Resource {
	type level = flowv1.PriorityLevelConfiguration
	r := flowResource("prioritylevelconfigurations", "prioritylevelconfiguration", &rules.PriorityLevelConfiguration)
	r.New, r.NewList = empty[level], empty[flowv1.PriorityLevelConfigurationList]
	r.Columns, r.Row = priorityLevelColumns, row(priorityLevelRow)
	return r
}

// flowResource is what both resources of flowcontrol.apiserver.k8s.io have.
func flowResource(plural, singular string, all *rules.Rules) Resource {
	r := Resource{
		Group: flowv1.GroupName, Version: "v1", Plural: plural, Singular: singular, Kind: all.Kind,
		Strategy: Ruled(all, Strategy{Unconditional: true}),
	}
	withStatus(&r, all.Status)
	return r
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
