/**
 * The rules that come with the server, `builtin` of [alerts]: about hosts, and about the server itself. They read what the history records
 * unless `history.metrics` says otherwise. Each has a test in test/server/wings/alerts/builtin.test.yml.
 */
import type { RuleFile } from './rules/files.ts'

/** In the place of a path: alerts are stored by it. */
const BUILTIN = 'builtin'

/** `CinnabarHostSilent` of hosts of Ganglia is no comparison, so nothing can be held: it ends after an hour. */
export const BUILTIN_RULES = `groups:
  - name: hosts
    rules:
      - alert: CinnabarHostDiskFills
        expr: host_disk_free / host_disk_total < 0.1
        recover: host_disk_free / host_disk_total > 0.12
        for: 10m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: '{{ $labels.mount }} of {{ $labels.host }} has {{ $value | humanizePercentage }} left.'
      - alert: CinnabarHostDiskFills
        expr: gmetric_disk_free / gmetric_disk_total < 0.1
        recover: gmetric_disk_free / gmetric_disk_total > 0.12
        for: 10m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: 'The disks of {{ $labels.host }} have {{ $value | humanizePercentage }} left.'
      - alert: CinnabarHostMemoryLow
        expr: host_mem_available / host_mem_total < 0.1
        recover: host_mem_available / host_mem_total > 0.15
        for: 10m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: 'Programs on {{ $labels.host }} can still get {{ $value | humanizePercentage }} of its memory.'
      - alert: CinnabarHostLoadHigh
        expr: host_load_fifteen / host_cpu_number > 2
        recover: host_load_fifteen / host_cpu_number < 1.5
        for: 15m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: 'The load of {{ $labels.host }} is {{ $value | humanize }} for each CPU.'
      - alert: CinnabarHostLoadHigh
        expr: gmetric_load_fifteen / gmetric_cpu_num > 2
        recover: gmetric_load_fifteen / gmetric_cpu_num < 1.5
        for: 15m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: 'The load of {{ $labels.host }} is {{ $value | humanize }} for each CPU.'
      - alert: CinnabarHostSilent
        expr: max by (host) (present_over_time(gmetric_load_one[1h])) unless max by (host) (gmetric_load_one)
        for: 2m
        labels: { severity: warning }
        annotations:
          summary: 'Nothing has come from {{ $labels.host }} for some time.'
      - alert: CinnabarTargetDown
        expr: up == 0
        for: 5m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: '{{ $labels.instance }} of the job {{ $labels.job }} cannot be scraped.'
  - name: server
    rules:
      - alert: CinnabarQueueGrows
        expr: producer_stats_unstored_bytes > 67108864
        recover: producer_stats_unstored_bytes < 33554432
        for: 5m
        no_data: hold
        labels: { severity: critical }
        annotations:
          summary: '{{ $value | humanize1024 }}B of values wait to be stored: the disk is full, has failed or is too slow.'
      - alert: CinnabarFaults
        expr: increase(producer_stats_faults[15m]) > 0
        labels: { severity: warning }
        annotations:
          summary: 'The server had unexpected errors: its log says which.'
      - alert: CinnabarBusy
        expr: rate(producer_stats_busy[5m]) > 0.9
        recover: rate(producer_stats_busy[5m]) < 0.8
        for: 10m
        no_data: hold
        labels: { severity: warning }
        annotations:
          summary: 'The event loop of the server works {{ $value | humanizePercentage }} of the time: what comes and goes waits.'
`

/** As a file among the others. */
export async function builtinRules(): Promise<RuleFile> {
  const { readRuleFile } = await import('./rules/rule-file.ts')
  const file = await readRuleFile(BUILTIN_RULES)
  return 'groups' in file
    ? { path: BUILTIN, groups: file.groups, problems: [] }
    : { path: BUILTIN, groups: [], problems: file.problems }
}
