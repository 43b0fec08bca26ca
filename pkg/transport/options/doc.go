// Package options reads the options of a topic and of a group by name: those of
// PUT /v1/topics/{topic} and PUT /v1/topics/{topic}/groups/{group}, which are
// the same in a query as in the environment.
//
// It reads text into a specification and says which text it cannot read; the
// bounds are core's. All functions are safe for concurrent use.
package options
