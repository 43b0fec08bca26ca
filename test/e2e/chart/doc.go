// Package chart tests what the charts render, without a cluster: golden files,
// refusals, alerts, the dashboard and the documents made from the values. It
// needs helm, and promtool for the alerts.
package chart
