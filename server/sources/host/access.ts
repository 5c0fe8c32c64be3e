/**
 * The access of the host metrics to the machine, which tests replace. All calls are synchronous: reading and parsing a file
 * of /proc takes 10 to 40 us, and there is one reading per tick.
 */
import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import os from 'node:os'
import type { FileSystemStats } from './proc.ts'

/** Everything except `os` may throw what node:fs throws. */
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
export function unlessAbsent<T>(read: () => T, absent: T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && ABSENT.has(error.code)) return absent
    throw error
  }
}

const ABSENT: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENOSYS'])
