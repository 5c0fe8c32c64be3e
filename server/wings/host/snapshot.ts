/**
 * The state of the host in one tick: each file is read and parsed on first use, and at most once. The next tick needs a new
 * snapshot. On Linux the source is /proc; elsewhere it is node:os, and everything else is not available.
 */

import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import type { CpuInfo } from 'node:os'
import os from 'node:os'
import { type CpuSample, type CpuTimes, parseStat } from './cpu.ts'
import {
  type DiskIo,
  type DiskSpace,
  type FileSystemStats,
  type Load,
  type Memory,
  type NetIo,
  parseDiskstats,
  parseLoadavg,
  parseMeminfo,
  parseMounts,
  parseNetDev,
  parseUptime,
  spaceOf,
  totalDiskIo,
  totalNetIo,
} from './proc.ts'

/**
 * The access to the machine, which tests replace. All calls are synchronous: reading and parsing a file of /proc takes 10 to
 * 40 us, and there is one reading per tick. Everything except `os` may throw what node:fs throws.
 */
export interface HostAccess {
  readonly platform: NodeJS.Platform
  readonly os: Pick<
    typeof os,
    'cpus' | 'freemem' | 'hostname' | 'loadavg' | 'machine' | 'release' | 'totalmem' | 'type' | 'uptime'
  >
  readFile(path: string): string
  readDirectory(path: string): readonly string[]
  statfs(path: string): FileSystemStats
}

export function systemAccess(): HostAccess {
  return {
    platform: process.platform,
    os,
    readFile: (path) => readFileSync(path, 'utf8'),
    readDirectory: (path) => readdirSync(path),
    statfs: (path) => statfsSync(path, { bigint: true }),
  }
}

/** Returns the result of `read`, or `absent` if this kernel does not have the file or does not let us read it. */
function unlessAbsent<T>(read: () => T, absent: T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && ABSENT.has(error.code)) return absent
    throw error
  }
}

const ABSENT: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENOSYS'])

/** The keys of readings are the last words of metric names; what is not available is undefined or missing. */
export interface HostSnapshot {
  cpu(): CpuSample
  load(): Load
  memory(): Memory
  /** The file system type of each mount point. */
  mounts(): ReadonlyMap<string, string>
  space(mount: string): DiskSpace | undefined
  disks(): ReadonlyMap<string, DiskIo>
  allDisks(): DiskIo
  interfaces(): ReadonlyMap<string, NetIo>
  allInterfaces(): NetIo
  uptime(): { readonly uptime: number | undefined; readonly boot_time: bigint | undefined }
  processes(): { readonly number: number | undefined; readonly running: number | undefined }
}

export function takeSnapshot(access: HostAccess): HostSnapshot {
  return access.platform === 'linux' ? linuxSnapshot(access) : portableSnapshot(access)
}

function linuxSnapshot(access: HostAccess): HostSnapshot {
  const text = (path: string) => unlessAbsent(() => access.readFile(path), '')
  const stat = once(() => parseStat(text('/proc/stat')))
  const disks = once(() => parseDiskstats(text('/proc/diskstats')))
  const interfaces = once(() => parseNetDev(text('/proc/net/dev')))
  return {
    cpu: () => stat().cpu,
    load: once(() => parseLoadavg(text('/proc/loadavg'))),
    memory: once(() => parseMeminfo(text('/proc/meminfo'))),
    mounts: once(() => parseMounts(text('/proc/self/mounts'))),
    space: spaceReader(access),
    disks,
    allDisks: once(() => totalDiskIo(disks())),
    interfaces,
    allInterfaces: once(() => totalNetIo(interfaces())),
    uptime: once(() => ({ uptime: parseUptime(text('/proc/uptime')), boot_time: stat().bootTime })),
    processes: once(() => ({ number: processNumber(access), running: stat().running })),
  }
}

function portableSnapshot(access: HostAccess): HostSnapshot {
  const { os } = access
  return {
    cpu: once(() => portableCpu(os.cpus())),
    load: once(() => {
      const [one, five, fifteen] = os.loadavg()
      return { one, five, fifteen }
    }),
    memory: once(() => ({
      ...parseMeminfo(''),
      total: BigInt(os.totalmem()),
      free: BigInt(os.freemem()),
    })),
    // Without a list of mounts, "/" is the only mount point: see parseMounts on probing paths.
    mounts: () => new Map(),
    space: spaceReader(access),
    disks: () => new Map(),
    allDisks: () => totalDiskIo(new Map()),
    interfaces: () => new Map(),
    allInterfaces: () => totalNetIo(new Map()),
    uptime: once(() => ({ uptime: os.uptime(), boot_time: undefined })),
    processes: () => ({ number: undefined, running: undefined }),
  }
}

/** node:os counts in ms. Its `irq` is omitted: it is part of `sys` on Windows and always 0 on macOS. */
function portableCpu(cpus: readonly CpuInfo[]): CpuSample {
  const sum = { user: 0, nice: 0, sys: 0, idle: 0 }
  const each = new Map<number, CpuTimes>()
  for (const [cpu, { times }] of cpus.entries()) {
    each.set(cpu, portableTimes(times))
    sum.user += times.user
    sum.nice += times.nice
    sum.sys += times.sys
    sum.idle += times.idle
  }
  return { all: each.size > 0 ? portableTimes(sum) : undefined, each }
}

function portableTimes(times: Omit<CpuInfo['times'], 'irq'>): CpuTimes {
  const { user, nice, sys: system, idle } = times
  return { user, nice, system, idle, iowait: undefined, irq: undefined, softirq: undefined, steal: undefined }
}

/** Counts the directories of /proc named by a number, one per process, without those that the kernel hides from us. */
function processNumber(access: HostAccess): number | undefined {
  return unlessAbsent(() => access.readDirectory('/proc'), []).filter((name) => /^\d+$/.test(name)).length || undefined
}

function spaceReader(access: HostAccess): (mount: string) => DiskSpace | undefined {
  const spaces = new Map<string, DiskSpace | undefined>()
  return (mount) => {
    if (!spaces.has(mount)) {
      spaces.set(
        mount,
        unlessAbsent(() => spaceOf(access.statfs(mount)), undefined),
      )
    }
    return spaces.get(mount)
  }
}

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
