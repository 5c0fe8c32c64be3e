/** Boards that are there without anybody having made them: for the server itself, and for sources that it has. */
import type { ChartSpec, Scale } from './board.ts'
import type { LineArguments } from './series-watch.ts'

export interface ReadyBoard {
  readonly title: string
  /** Whoever may read this metric is offered the board. */
  readonly metric: string
  readonly charts: readonly ChartSpec[]
}

function chart(metrics: readonly string[], args: LineArguments = {}, scale?: Scale): ChartSpec {
  return { lines: metrics.map((metric) => ({ metric, args })), ...(scale !== undefined && { scale }) }
}

export const READY_BOARDS: readonly ReadyBoard[] = [
  {
    title: 'This server',
    metric: 'producer.stats.busy',
    charts: [
      chart(['producer.stats.accepted_values', 'producer.stats.sent_values'], {}, 'rate'),
      chart(['producer.stats.channels', 'producer.stats.connections']),
      chart(['producer.stats.busy'], {}, 'rate'),
      chart(['producer.stats.resident_bytes']),
      chart(['producer.stats.unstored_bytes']),
      chart(['producer.stats.disk_free_bytes']),
    ],
  },
  {
    title: 'Machine of the server',
    metric: 'host.load.one',
    charts: [
      chart(['host.cpu.user', 'host.cpu.system', 'host.cpu.iowait', 'host.cpu.steal']),
      chart(['host.load.one', 'host.load.five', 'host.load.fifteen']),
      chart(['host.mem.total', 'host.mem.available', 'host.mem.free', 'host.mem.swap_used']),
      chart(['host.disk.free'], { mount: '*' }),
      chart(['host.disk.read_bytes', 'host.disk.written_bytes'], {}, 'rate'),
      chart(['host.net.received_bytes', 'host.net.sent_bytes'], {}, 'rate'),
    ],
  },
  {
    title: 'Ganglia cluster',
    metric: 'gmetric.load_one',
    charts: ['load_one', 'cpu_user', 'cpu_system', 'mem_free', 'disk_free', 'bytes_in', 'bytes_out'].map((name) =>
      chart([`gmetric.${name}`]),
    ),
  },
  {
    title: 'node_exporter',
    metric: 'prometheus.node_load1',
    charts: [
      chart(['prometheus.node_load1']),
      chart(['prometheus.node_cpu_seconds_total'], { mode: 'user' }, 'rate'),
      chart(['prometheus.node_memory_MemAvailable_bytes']),
      chart(['prometheus.node_filesystem_avail_bytes']),
      chart(['prometheus.node_disk_read_bytes_total'], {}, 'rate'),
      chart(['prometheus.node_disk_written_bytes_total'], {}, 'rate'),
      chart(['prometheus.node_network_receive_bytes_total'], {}, 'rate'),
      chart(['prometheus.node_network_transmit_bytes_total'], {}, 'rate'),
    ],
  },
]
