/**
 * Rules as public collections have them for hosts, Kubernetes, queues and web servers: their shapes, written anew, each for several
 * metrics. All of them load, are printed as they were meant, and can be evaluated.
 */
import { expect, it } from 'vitest'
import { MemorySource } from '../../../../../promql/memory-source.ts'
import { PreparedQuery } from '../../../../../promql/query.ts'
import { finish } from '../../../../../server/kernel/core/fair-work.ts'
import { RuleEvaluation } from '../../../../../server/wings/alerts/rules/evaluation.ts'
import { rulesOf } from '../../../../../server/wings/alerts/rules/group.ts'
import { readRuleFile } from '../../../../../server/wings/alerts/rules/rule-file.ts'

const METRICS = ['disk', 'memory', 'network', 'requests', 'queue', 'volume', 'replica', 'certificate']

/** M is a metric. */
const ALERTS = [
  'M_free_bytes{fstype!="",mountpoint!=""} / M_size_bytes{fstype!="",mountpoint!=""} * 100 < 5 and M_readonly{fstype!=""} == 0',
  '(M_free{job="node"} / M_size{job="node"} * 100 < 15 and predict_linear(M_free{job="node"}[6h], 4 * 60 * 60) < 0) and M_readonly == 0',
  'rate(M_errors_total{job="node"}[2m]) / rate(M_packets_total{job="node"}[2m]) > 0.01',
  '(M_used / M_limit) > 0.75 and M_limit > 0',
  'increase(M_resets_total{job=~".+"}[5m]) > 0',
  'max_over_time(M_offset_seconds[5m]) >= 0 and deriv(M_offset_seconds[5m]) >= 0 or (M_offset_seconds < -0.05 and deriv(M_offset_seconds[5m]) <= 0)',
  'min_over_time(M_sync_status[5m]) == 0 and M_max_error >= 16',
  'M_state{state="degraded"} > 0 or M_failed{device!~"md.*|loop[0-9]+"} > ignoring (device) group_left M_allowed',
  'sum by (namespace, pod, cluster) (max by (namespace, pod, cluster) (M_phase{phase=~"Pending|Unknown|Failed"}) * on (namespace, pod, cluster) group_left (owner_kind) topk by (namespace, pod, cluster) (1, max by (namespace, pod, owner_kind, cluster) (M_owner{owner_kind!="Job"}))) > 0',
  'M_spec_replicas{job="state"} != M_available_replicas{job="state"} and changes(M_updated_replicas{job="state"}[10m]) == 0',
  'absent(up{job="M"} == 1)',
  'M_condition{condition="Ready",status="true"} == 0 and on (cluster, node) M_unschedulable == 0',
  'count by (cluster) (count by (version, cluster) (label_replace(M_build_info, "version", "$1", "version", "(v[0-9]*.[0-9]*).*"))) > 1',
  'sum(rate(M_seconds_bucket{le="+Inf",verb=~"LIST|GET"}[1h])) - sum(rate(M_seconds_bucket{le=~"1(.0)?"}[1h])) > 14.4 * 0.01',
  'histogram_quantile(0.99, sum by (cluster, instance, le) (rate(M_duration_seconds_bucket{quantile="0.99"}[5m]))) >= 60',
  '100 * count by (cluster, job, service) (up{job="M"} == 0) / count by (cluster, job, service) (up{job="M"}) > 10',
  'time() - M_last_success_timestamp_seconds > 3600 unless on (instance) M_paused == 1',
  'quantile_over_time(0.9, M_seconds[15m:1m]) > 2 * avg_over_time(M_seconds[1h] offset 1d)',
  'sum without (reason) (rate(M_failed_total[5m])) / on (job) group_left sum without (reason) (rate(M_total[5m])) > bool 0.01',
  'day_of_week() > 0 and hour() >= 8 and on () vector(1) and M_idle == 1',
  'stddev(rate(M_load[5m])) by (cluster) > 2 and count(M_load) by (cluster) >= 3',
  'clamp_max(M_lag, 1e6) > scalar(avg(M_lag)) * 3',
] as const

const RECORDED = [
  '1 - avg without (cpu) (sum without (mode) (rate(M_seconds_total{job="node",mode=~"idle|iowait|steal"}[5m])))',
  'M_active / (M_total - (M_free + M_cached) or M_available)',
  'sum by (cluster, namespace, pod, container) (irate(M_usage_seconds_total{image!=""}[5m])) * on (cluster, namespace, pod) group_left (node) topk by (cluster, namespace, pod) (1, max by (cluster, namespace, pod, node) (M_info{node!=""}))',
  'label_join(label_replace(M_owner{owner_kind="ReplicaSet"}, "workload", "$1", "owner_name", "(.*)"), "id", "/", "namespace", "workload")',
  'histogram_quantile(0.9, sum by (le) (rate(M_bucket[5m])))',
  'avg_over_time(sum(M_up)[30m:30s] offset 5m)',
] as const

function fileOf(): string {
  const groups = METRICS.map((metric) => {
    const rule = (kind: string, expr: string): string =>
      `      - { ${kind}, expr: ${JSON.stringify(expr.replaceAll('M', metric))} }`
    const alerts = ALERTS.map((expr, index) =>
      rule(`alert: ${metric}${index}, for: 15m, labels: { severity: critical }`, expr),
    )
    const recorded = RECORDED.map((expr, index) => rule(`record: "${metric}:r${index}:rate5m"`, expr))
    return `  - name: ${metric}.rules\n    interval: 30s\n    rules:\n${[...recorded, ...alerts].join('\n')}`
  })
  return `groups:\n${groups.join('\n')}\n`
}

it('a few hundred rules load, and each can be evaluated', async () => {
  const file = await readRuleFile(fileOf())
  if ('problems' in file) throw new Error(JSON.stringify(file.problems.slice(0, 5)))
  const rules = file.groups.flatMap((group) => rulesOf(group))
  expect(rules).toHaveLength(METRICS.length * (ALERTS.length + RECORDED.length))
  for (const rule of rules) {
    const { printed } = rule.definition.query
    expect(new PreparedQuery(printed).printed).toBe(printed)
    const evaluation = new RuleEvaluation(new MemorySource(), 1e12, { externalLabels: new Map(), externalUrl: '' })
    expect(finish(rule.evaluate(evaluation)).failure).toBeUndefined()
  }
})
