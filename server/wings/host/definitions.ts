/**
 * The host metrics as data: the catalogue, docs/sources/host.md and the reader all come from this table. A metric's `field`
 * is the key under which its group's reading holds the value, always the last word of the name.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'

/** Metrics that are read together. */
export type HostGroup = 'cpu' | 'load' | 'mem' | 'disk-space' | 'disk-io' | 'net' | 'uptime' | 'process' | 'static'

/** The optional parameter that selects a part of the host. */
export type HostParameter = 'cpu' | 'mount' | 'device' | 'interface'

export interface HostDefinition {
  readonly name: string
  readonly field: string
  readonly group: HostGroup
  readonly type: BasicType
  /** `percent`, `B`, `s`, `1` for plain numbers, empty for text. */
  readonly unit: string
  /** One sentence, without a full stop. */
  readonly description: string
  readonly parameter?: HostParameter
  /** Set if its values only grow until the host, or a part of it, starts again. */
  readonly isCounter?: true
  /** `unix` means every platform except Windows. */
  readonly platforms: 'all' | 'unix' | 'linux'
}

const CPU: Family = { prefix: 'host.cpu.', group: 'cpu', type: BasicType.DOUBLE, unit: 'percent', parameter: 'cpu' }
const MEM: Family = { prefix: 'host.mem.', group: 'mem', type: BasicType.UINT64, unit: 'B' }
const LOAD: Family = { prefix: 'host.load.', group: 'load', type: BasicType.DOUBLE, unit: '1' }
const SPACE: Family = {
  prefix: 'host.disk.',
  group: 'disk-space',
  type: BasicType.UINT64,
  unit: 'B',
  parameter: 'mount',
}
const DISK: Family = {
  prefix: 'host.disk.',
  group: 'disk-io',
  type: BasicType.UINT64,
  unit: 'B',
  parameter: 'device',
  isCounter: true,
}
const NET: Family = {
  prefix: 'host.net.',
  group: 'net',
  type: BasicType.UINT64,
  unit: 'B',
  parameter: 'interface',
  isCounter: true,
}
const PROCESS: Family = { prefix: 'host.process.', group: 'process', type: BasicType.UINT32, unit: '1' }
const STATIC: Family = { prefix: 'host.', group: 'static', type: BasicType.STRING, unit: '' }

export const HOST_DEFINITIONS: readonly HostDefinition[] = [
  {
    name: 'host.cpu.number',
    field: 'number',
    group: 'cpu',
    type: BasicType.UINT32,
    unit: '1',
    description: 'CPUs that are switched on',
    platforms: 'all',
  },
  ...family(CPU, 'all', {
    user: 'Time in programs, guests of virtual machines included',
    system: 'Time in the kernel',
    idle: 'Time with nothing to do',
  }),
  ...family(CPU, 'unix', { nice: 'Time in programs of lowered priority' }),
  ...family(CPU, 'linux', {
    iowait: 'Time with nothing to do but wait for disks',
    irq: 'Time in hardware interrupts',
    softirq: 'Time in software interrupts',
    steal: 'Time in which the hypervisor ran somebody else',
  }),
  ...family(LOAD, 'unix', {
    one: 'Load average over one minute',
    five: 'Load average over five minutes',
    fifteen: 'Load average over fifteen minutes',
  }),
  ...family(MEM, 'all', {
    total: 'Memory that the system can use',
    free: 'Memory that holds nothing',
  }),
  ...family(MEM, 'linux', {
    available: 'Memory that programs can still get without swapping (Linux 3.14 and newer)',
    cached: 'Memory that holds the contents of files',
    buffers: 'Memory that holds raw disk blocks',
    swap_total: 'Swap space',
    swap_free: 'Swap space that holds nothing',
    swap_used: 'Swap space in use',
  }),
  ...family(SPACE, 'all', {
    total: 'Size of a file system',
    free: 'Space that ordinary users can still fill',
    used: 'Space in use, without what is reserved for root',
  }),
  ...family(DISK, 'linux', {
    read_bytes: 'Bytes read from disks since they appeared',
    written_bytes: 'Bytes written to disks since they appeared',
  }),
  ...family({ ...DISK, unit: '1' }, 'linux', {
    reads: 'Reads that disks completed since they appeared',
    writes: 'Writes that disks completed since they appeared',
  }),
  ...family(NET, 'linux', {
    received_bytes: 'Bytes received since the interfaces appeared',
    sent_bytes: 'Bytes sent since the interfaces appeared',
  }),
  ...family({ ...NET, unit: '1' }, 'linux', {
    received_packets: 'Packets received since the interfaces appeared',
    sent_packets: 'Packets sent since the interfaces appeared',
    receive_errors: 'Packets that arrived damaged or could not be taken',
    send_errors: 'Packets that could not be sent',
  }),
  {
    name: 'host.uptime',
    field: 'uptime',
    group: 'uptime',
    type: BasicType.DOUBLE,
    unit: 's',
    description: 'Time since the host started',
    platforms: 'all',
  },
  {
    name: 'host.boot_time',
    field: 'boot_time',
    group: 'uptime',
    type: BasicType.UINT64,
    unit: 's',
    description: 'When the host started, in seconds since 1970',
    platforms: 'linux',
  },
  ...family(PROCESS, 'linux', {
    number: 'Processes that the server can see',
    running: 'Threads that run or wait for a CPU',
  }),
  ...family(STATIC, 'all', {
    name: 'Host name',
    os: 'Name of the operating system, as uname -s',
    kernel: 'Release of the kernel, as uname -r',
    arch: 'Machine architecture, as uname -m',
  }),
]

/** The metrics that are available on a platform; on an old kernel, some of them may still be VOID. */
export function availableDefinitions(platform: NodeJS.Platform): readonly HostDefinition[] {
  return HOST_DEFINITIONS.filter(
    ({ platforms }) => platform === 'linux' || platforms === 'all' || (platforms === 'unix' && platform !== 'win32'),
  )
}

interface Family extends Pick<HostDefinition, 'group' | 'type' | 'unit' | 'parameter' | 'isCounter'> {
  readonly prefix: string
}

function family(
  { prefix, ...common }: Family,
  platforms: HostDefinition['platforms'],
  descriptions: Readonly<Record<string, string>>,
): readonly HostDefinition[] {
  return Object.entries(descriptions).map(([field, description]) => ({
    name: prefix + field,
    field,
    ...common,
    description,
    platforms,
  }))
}
