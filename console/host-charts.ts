/** The charts of one host: what its sources call CPU, load, memory, disk and network. */
import type { ChartSpec, Scale } from './board.ts'
import type { LineArguments } from './series-watch.ts'

interface Source {
  readonly metrics: readonly string[]
  /** What is drawn of them, in Prometheus' language, where a server has a history; `selector`: the host. */
  readonly expr?: (selector: string) => string
  readonly args?: LineArguments
  readonly scale?: Scale
}

interface HostChart {
  readonly title: string
  /** The first one of which the host has a metric is drawn. */
  readonly sources: readonly Source[]
}

const CHARTS: readonly HostChart[] = [
  {
    title: 'CPU',
    sources: [
      { metrics: ['host.cpu.user', 'host.cpu.system', 'host.cpu.iowait', 'host.cpu.steal'] },
      { metrics: ['gmetric.cpu_user', 'gmetric.cpu_system', 'gmetric.cpu_wio', 'gmetric.cpu_nice'] },
      // A series for each processor and mode says little: what matters is the share of all processors.
      {
        metrics: ['prometheus.node_cpu_seconds_total'],
        expr: (selector) => `100 * avg without (cpu) (rate(node_cpu_seconds_total{${selector}, mode!="idle"}[5m]))`,
      },
    ],
  },
  {
    title: 'Load',
    sources: [
      { metrics: ['gmetric.load_one', 'gmetric.load_five', 'gmetric.load_fifteen'] },
      { metrics: ['host.load.one', 'host.load.five', 'host.load.fifteen'] },
      { metrics: ['prometheus.node_load1', 'prometheus.node_load5', 'prometheus.node_load15'] },
    ],
  },
  {
    title: 'Memory',
    sources: [
      { metrics: ['gmetric.mem_total', 'gmetric.mem_free', 'gmetric.mem_cached', 'gmetric.mem_buffers'] },
      { metrics: ['host.mem.total', 'host.mem.available', 'host.mem.free', 'host.mem.swap_used'] },
      { metrics: ['prometheus.node_memory_MemTotal_bytes', 'prometheus.node_memory_MemAvailable_bytes'] },
    ],
  },
  {
    title: 'Disk',
    sources: [
      { metrics: ['host.disk.read_bytes', 'host.disk.written_bytes'], scale: 'rate' },
      { metrics: ['prometheus.node_disk_read_bytes_total', 'prometheus.node_disk_written_bytes_total'], scale: 'rate' },
    ],
  },
  {
    title: 'Disk space free',
    sources: [
      { metrics: ['gmetric.disk_free'] },
      { metrics: ['host.disk.free'], args: { mount: '*' } },
      { metrics: ['prometheus.node_filesystem_avail_bytes'] },
    ],
  },
  {
    title: 'Network',
    sources: [
      { metrics: ['gmetric.bytes_in', 'gmetric.bytes_out'] },
      { metrics: ['host.net.received_bytes', 'host.net.sent_bytes'], scale: 'rate' },
      {
        metrics: ['prometheus.node_network_receive_bytes_total', 'prometheus.node_network_transmit_bytes_total'],
        scale: 'rate',
      },
    ],
  },
]

/** The metrics of each chart, from each source that may have them. */
export function chartSources(): readonly (readonly string[])[] {
  return CHARTS.flatMap(({ sources }) => sources.map(({ metrics }) => metrics))
}

export interface TitledChart {
  readonly title: string
  readonly spec: ChartSpec
}

/** Those that a host with these metrics has; `place`: the arguments that name the host. Expressions need a history of this server. */
export function hostCharts(
  metrics: ReadonlySet<string>,
  place: LineArguments,
  mayEvaluate: boolean,
): readonly TitledChart[] {
  return CHARTS.flatMap(({ title, sources }): TitledChart[] => {
    for (const { metrics: names, args, scale, expr } of sources) {
      if (expr !== undefined && !mayEvaluate) continue
      const lines = names.filter((name) => metrics.has(name)).map((metric) => ({ metric, args: { ...place, ...args } }))
      if (lines.length === 0) continue
      if (expr !== undefined) return [{ title, spec: { lines: [], expr: expr(selectorOf(place)) } }]
      return [{ title, spec: { lines, ...(scale !== undefined && { scale }) } }]
    }
    return []
  })
}

function selectorOf(place: LineArguments): string {
  return Object.entries(place)
    .map(([label, text]) => `${label}=${JSON.stringify(text)}`)
    .join(', ')
}
