/**
 * /proc/diskstats, one line per disk and partition:
 *
 *   major minor name reads merged sectors-read ms writes merged sectors-written ms ...
 *   major minor name reads sectors-read writes sectors-written                          (partitions before 2.6.25)
 *
 * A sector here is 512 bytes, whatever the disk's own sectors are.
 */
import { scaled, sumOf, uint64, words } from './numbers.ts'

type DiskField = 'read_bytes' | 'written_bytes' | 'reads' | 'writes'

/** Counters since the device appeared. */
export type DiskIo = Readonly<Record<DiskField, bigint | undefined>>

const SECTOR_BYTES = 512n
const SHORT_LINE_COLUMNS = 7

/** Made of other disks or of memory: their input and output is counted at those disks, or is none. */
const VIRTUAL = /^(loop|ram|zram|dm-|md|drbd|bcache|zd)[\d_]/

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

/** All whole disks together, each byte once. */
export function totalDiskIo(disks: ReadonlyMap<string, DiskIo>): DiskIo {
  const whole = wholeDisks(disks.keys()).map((name) => disks.get(name))
  return {
    read_bytes: sumOf(whole.map((disk) => disk?.read_bytes)),
    written_bytes: sumOf(whole.map((disk) => disk?.written_bytes)),
    reads: sumOf(whole.map((disk) => disk?.reads)),
    writes: sumOf(whole.map((disk) => disk?.writes)),
  }
}

/** The names without partitions and without devices that lie on top of others. */
export function wholeDisks(names: Iterable<string>): readonly string[] {
  const all = new Set(names)
  const multipath = new Set<string>()
  for (const name of all) {
    // An NVMe namespace with several paths counts at each path (nvme0c1n1); nvme0n1 repeats the sum or stays 0.
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
