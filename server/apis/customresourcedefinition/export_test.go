package customresourcedefinition

// ParsePosition is for tests.
var ParsePosition = parsePosition
