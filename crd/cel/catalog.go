package cel

import "github.com/espalier-dev/espalier/finding"

const (
	celKEP   = "KEP-2876 validation rules"
	upstream = "apiextensions.k8s.io/v1 validation"
)

// Checks is the table of what Check finds. All findings are errors.
var Checks = []finding.Check{
	finding.New(RuleExpression, finding.Error, "The rule of x-kubernetes-validations must be a CEL expression that compiles and returns a bool.", celKEP),
	finding.New(RuleMessageExpression, finding.Error, "A messageExpression must be a CEL expression that compiles and returns a string.", celKEP),
	finding.New(RuleType, finding.Error, "CEL rules require a schema that specifies the type of the value.", celKEP),
	finding.New(RuleCost, finding.Error, "The estimated cost of a CEL rule must not exceed the limit per rule. The estimate assumes the largest object that the schema allows.", celKEP),
	finding.New(RuleTotalCost, finding.Error, "The estimated cost of all CEL rules of a schema must not exceed the total limit. The estimate assumes the largest object that the schema allows.", celKEP),
	finding.New(RuleOldSelf, finding.Error, "A CEL rule must not read oldSelf below a list of type atomic or set.", celKEP),
	finding.New(RuleOptionalOldSelf, finding.Error, "optionalOldSelf requires a CEL rule that reads oldSelf.", upstream),
	finding.New(RuleDefault, finding.Error, "A default must satisfy the CEL rules that apply to it.", upstream),
}
