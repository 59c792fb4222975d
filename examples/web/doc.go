// Command web serves a form for the objects of a CRD. The fields come from the schema, and Espalier validates what
// users send and fills in defaults. There is no API server and no JavaScript.
//
//	schema ──▶ form ──POST──▶ object ──▶ Admit ─┬─▶ errors, each at its field
//	                                            └─▶ the object as an API server stores it
package main
