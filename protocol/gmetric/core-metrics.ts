/**
 * The metrics that Ganglia 2.5 and 3.0 knew by number: the packet is the number and one value, nothing else.
 * The index into the table is the number; 0 stands for a metric that brings its own name.
 */
import type { ValueType } from './packet.ts'

export interface CoreMetric {
  readonly name: string
  readonly type: ValueType
}

const metrics = (type: ValueType, names: string): CoreMetric[] => names.split(' ').map((name) => ({ name, type }))

export const CORE_METRICS: readonly (CoreMetric | undefined)[] = [
  undefined,
  ...metrics('uint16', 'cpu_num'),
  ...metrics('uint32', 'cpu_speed mem_total swap_total boottime sys_clock'),
  ...metrics('string', 'machine_type os_name os_release'),
  ...metrics('float', 'cpu_user cpu_nice cpu_system cpu_idle cpu_aidle load_one load_five load_fifteen'),
  ...metrics('uint32', 'proc_run proc_total mem_free mem_shared mem_buffers mem_cached swap_free'),
  ...metrics('string', 'gexec'),
  ...metrics('uint32', 'heartbeat mtu'),
  ...metrics('string', 'location'),
  ...metrics('float', 'bytes_out bytes_in pkts_in pkts_out'),
  ...metrics('double', 'disk_total disk_free'),
  ...metrics('float', 'part_max_used cpu_wio bread_sec bwrite_sec lread_sec lwrite_sec rcache wcache'),
  ...metrics('float', 'phread_sec phwrite_sec cpu_intr cpu_sintr'),
  ...metrics('uint32', 'mem_arm mem_rm mem_avm mem_vm'),
]
