/** Parsers of the files in /proc that need no state: load, uptime, memory, network, mounts and disks; and of numbers in them. */

/** The load averages of /proc/loadavg: `0.07 0.15 0.09 1/88 4080`. The numbers after the third count threads, not processes. */
export type Load = Readonly<Record<'one' | 'five' | 'fifteen', number | undefined>>

export function parseLoadavg(text: string): Load {
  const [one, five, fifteen] = words(text)
  return { one: decimal(one), five: decimal(five), fifteen: decimal(fifteen) }
}

/** The seconds of /proc/uptime: `698.27 1272.65`. The second number is the idle time summed over all CPUs. */
export function parseUptime(text: string): number | undefined {
  return decimal(words(text)[0])
}

type MemoryField = 'total' | 'free' | 'available' | 'cached' | 'buffers' | 'swap_total' | 'swap_free' | 'swap_used'

/** Sizes in bytes. */
export type Memory = Readonly<Record<MemoryField, bigint | undefined>>

const LINE = /^(\w+):\s+(\d+) kB\s*$/

/**
 * Parses /proc/meminfo: `MemTotal:       24684096 kB`, where kB means 1,024 bytes. MemAvailable exists since Linux 3.14.
 * Kernels up to 2.4 begin with a table in bytes (`Mem:  131 ...`), followed by the same lines with kB.
 */
export function parseMeminfo(text: string): Memory {
  const bytes = new Map<string, bigint | undefined>()
  for (const line of text.split('\n')) {
    const [, name, kib] = LINE.exec(line) ?? []
    if (name !== undefined) bytes.set(name, scaled(uint64(kib), 1024n))
  }
  const swapTotal = bytes.get('SwapTotal')
  const swapFree = bytes.get('SwapFree')
  return {
    total: bytes.get('MemTotal'),
    free: bytes.get('MemFree'),
    available: bytes.get('MemAvailable'),
    cached: bytes.get('Cached'),
    buffers: bytes.get('Buffers'),
    swap_total: swapTotal,
    swap_free: swapFree,
    swap_used:
      swapTotal !== undefined && swapFree !== undefined && swapFree <= swapTotal ? swapTotal - swapFree : undefined,
  }
}

type NetField = 'received_bytes' | 'sent_bytes' | 'received_packets' | 'sent_packets' | 'receive_errors' | 'send_errors'

/** Counters since the interface appeared. */
export type NetIo = Readonly<Record<NetField, bigint | undefined>>

const LOOPBACK = 'lo'

/**
 * Parses /proc/net/dev. Two lines of headings name the columns, which differ between kernels (before 2.1 there are no
 * bytes). A large counter may follow the colon without a space. Names are those of this network namespace.
 */
export function parseNetDev(text: string): ReadonlyMap<string, NetIo> {
  const interfaces = new Map<string, NetIo>()
  let received: readonly string[] = []
  let sent: readonly string[] = []
  for (const line of text.split('\n')) {
    const headings = line.split('|')
    if (headings.length === 3) {
      received = words(headings[1] ?? '')
      sent = words(headings[2] ?? '')
      continue
    }
    // The name of an alias contains a colon (eth0:1), counters never do.
    const colon = line.lastIndexOf(':')
    const name = line.slice(0, Math.max(0, colon)).trim()
    if (name === '') continue
    const counters = words(line.slice(colon + 1))
    const count = (group: readonly string[], heading: string, before: number) => {
      const column = group.indexOf(heading)
      return column < 0 ? undefined : uint64(counters[before + column])
    }
    interfaces.set(name, {
      received_bytes: count(received, 'bytes', 0),
      sent_bytes: count(sent, 'bytes', received.length),
      received_packets: count(received, 'packets', 0),
      sent_packets: count(sent, 'packets', received.length),
      receive_errors: count(received, 'errs', 0),
      send_errors: count(sent, 'errs', received.length),
    })
  }
  return interfaces
}

/** The sums over all interfaces except the loopback. */
export function totalNetIo(interfaces: ReadonlyMap<string, NetIo>): NetIo {
  const outside = [...interfaces].filter(([name]) => name !== LOOPBACK).map(([, io]) => io)
  return {
    received_bytes: sumOf(outside.map((io) => io.received_bytes)),
    sent_bytes: sumOf(outside.map((io) => io.sent_bytes)),
    received_packets: sumOf(outside.map((io) => io.received_packets)),
    sent_packets: sumOf(outside.map((io) => io.sent_packets)),
    receive_errors: sumOf(outside.map((io) => io.receive_errors)),
    send_errors: sumOf(outside.map((io) => io.send_errors)),
  }
}

/** The result of statfs; `bavail` is the space left for ordinary users. */
export interface FileSystemStats {
  readonly bsize: bigint
  readonly blocks: bigint
  readonly bfree: bigint
  readonly bavail: bigint
}

/** Sizes in bytes. */
export type DiskSpace = Readonly<Record<'total' | 'free' | 'used', bigint | undefined>>

const REMOTE_TYPE = /^(nfs|cifs|smb|ncpfs|9p|ceph|afs|coda|lustre|beegfs|autofs|fuse)/

/**
 * Parses /proc/self/mounts into the file system type of each mount point; the last line of a mount point is the visible one.
 * Consumers may only name mount points, so that they cannot probe paths.
 */
export function parseMounts(text: string): ReadonlyMap<string, string> {
  const types = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, point, type] = line.split(' ')
    if (point?.startsWith('/') && type) types.set(unescaped(point), type)
  }
  return types
}

/** Whether statfs would wait for another machine or process, and block the server meanwhile. */
export function isRemote(type: string): boolean {
  return REMOTE_TYPE.test(type)
}

/** Sizes as `df` shows them: space reserved for root counts as neither free nor used. */
export function spaceOf(stats: FileSystemStats): DiskSpace {
  return {
    total: scaled(stats.blocks, stats.bsize),
    free: scaled(stats.bavail, stats.bsize),
    used: stats.bfree <= stats.blocks ? scaled(stats.blocks - stats.bfree, stats.bsize) : undefined,
  }
}

/** Decodes `\040`, a space in a mount point. */
function unescaped(path: string): string {
  return path.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

type DiskField = 'read_bytes' | 'written_bytes' | 'reads' | 'writes'

/** Counters since the device appeared. */
export type DiskIo = Readonly<Record<DiskField, bigint | undefined>>

const SECTOR_BYTES = 512n
const SHORT_LINE_COLUMNS = 7

/** Devices made of other disks, which count the same bytes, or of memory. */
const VIRTUAL = /^(loop|ram|zram|dm-|md|drbd|bcache|zd)[\d_]/

/**
 * Parses /proc/diskstats, which has one line per disk and partition:
 *
 *   major minor name reads merged sectors-read ms writes merged sectors-written ms ...
 *   major minor name reads sectors-read writes sectors-written                          (partitions before 2.6.25)
 *
 * A sector is 512 bytes here, whatever the sector size of the disk is.
 */
export function parseDiskstats(text: string): ReadonlyMap<string, DiskIo> {
  const disks = new Map<string, DiskIo>()
  for (const line of text.split('\n')) {
    const columns = words(line)
    const name = columns[2]
    if (name === undefined) continue
    const [reads, sectorsRead, writes, sectorsWritten] =
      columns.length === SHORT_LINE_COLUMNS ? columns.slice(3) : [columns[3], columns[5], columns[7], columns[9]]
    disks.set(name, {
      read_bytes: scaled(uint64(sectorsRead), SECTOR_BYTES),
      written_bytes: scaled(uint64(sectorsWritten), SECTOR_BYTES),
      reads: uint64(reads),
      writes: uint64(writes),
    })
  }
  return disks
}

/** The sums over all whole disks; each byte counts once. */
export function totalDiskIo(disks: ReadonlyMap<string, DiskIo>): DiskIo {
  const whole = wholeDisks(disks.keys()).map((name) => disks.get(name))
  return {
    read_bytes: sumOf(whole.map((disk) => disk?.read_bytes)),
    written_bytes: sumOf(whole.map((disk) => disk?.written_bytes)),
    reads: sumOf(whole.map((disk) => disk?.reads)),
    writes: sumOf(whole.map((disk) => disk?.writes)),
  }
}

/** The names without partitions and without devices on top of others. */
export function wholeDisks(names: Iterable<string>): readonly string[] {
  const all = new Set(names)
  const multipath = new Set<string>()
  for (const name of all) {
    // An NVMe namespace with several paths counts on each path (nvme0c1n1); nvme0n1 repeats the sum or stays 0.
    const [, subsystem, namespace] = /^nvme(\d+)c\d+n(\d+)$/.exec(name) ?? []
    if (subsystem !== undefined) multipath.add(`nvme${subsystem}n${namespace}`)
  }
  return [...all].filter((name) => {
    const parent = parentOf(name)
    return !VIRTUAL.test(name) && !multipath.has(name) && (parent === undefined || !all.has(parent))
  })
}

/** The disk that a name would be a partition of: `sda1` of `sda`, but `nvme0n1p1` of `nvme0n1`. */
function parentOf(name: string): string | undefined {
  return /^(.*\d)p\d+$/.exec(name)?.[1] ?? /^(.*\D)\d+$/.exec(name)?.[1]
}

// Numbers in kernel text. A token that is missing, is not a number or does not fit becomes undefined, which is VOID on the
// wire: never NaN, and never a wrapped or rounded counter.

const MAX_UINT32 = 0xffff_ffff
const MAX_UINT64 = 0xffff_ffff_ffff_ffffn
const DIGITS = /^\d{1,20}$/
const DECIMAL = /^\d{1,300}(\.\d{1,300})?$/

export function uint64(token: string | undefined): bigint | undefined {
  if (token === undefined || !DIGITS.test(token)) return undefined
  return fit64(BigInt(token))
}

/** `count` times `unit`, for values that the kernel counts in KiB or sectors; undefined if the product exceeds 64 bits. */
export function scaled(count: bigint | undefined, unit: bigint): bigint | undefined {
  return count === undefined ? undefined : fit64(count * unit)
}

export function uint32(token: string | undefined): number | undefined {
  const value = uint53(token)
  return value !== undefined && value <= MAX_UINT32 ? value : undefined
}

export function uint53(token: string | undefined): number | undefined {
  if (token === undefined || !DIGITS.test(token)) return undefined
  const value = Number(token)
  return Number.isSafeInteger(value) ? value : undefined
}

export function decimal(token: string | undefined): number | undefined {
  return token !== undefined && DECIMAL.test(token) ? Number(token) : undefined
}

/** The words of a line; none for an empty one. */
export function words(line: string): readonly string[] {
  return line.match(/\S+/g) ?? []
}

/** Adds up one counter of several devices, modulo 2^64 as the kernel does; undefined if no device has it. */
export function sumOf(counts: Iterable<bigint | undefined>): bigint | undefined {
  let sum: bigint | undefined
  for (const count of counts) {
    if (count !== undefined) sum = BigInt.asUintN(64, (sum ?? 0n) + count)
  }
  return sum
}

function fit64(value: bigint): bigint | undefined {
  return value <= MAX_UINT64 ? value : undefined
}
