package main

import (
	"path"
	"slices"
	"strings"
)

// serviceLinks are the variables that Kubernetes gives to every container of a
// namespace with a Service named podmq or podmq-…. No setting may ever match.
var serviceLinks = []string{"PODMQ_*SERVICE_HOST", "PODMQ_*SERVICE_PORT*", "PODMQ_*PORT", "PODMQ_*PORT_*"}

// unknownVariable is one that looks as if it were a setting.
type unknownVariable struct{ name, nearest string }

// unknownVariables finds those in environ (name=value each) that are no setting
// in known, and for each the setting that its name is nearest to.
func unknownVariables(environ, known []string) []unknownVariable {
	var unknown []unknownVariable
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, prefix+"_") || slices.Contains(known, name) || isServiceLink(name) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
		unknown = append(unknown, unknownVariable{name, nearest})
	}
	slices.SortFunc(unknown, func(a, b unknownVariable) int { return strings.Compare(a.name, b.name) })
	return unknown
}

func isServiceLink(name string) bool {
	return slices.ContainsFunc(serviceLinks, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// distance is how many bytes must be put in, taken out or replaced to make b of
// a (Levenshtein's).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
