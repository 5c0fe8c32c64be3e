/**
 * Everything the host metrics touch of the machine, so that a test can hand in another one. All calls are
 * synchronous: measured, a file of /proc takes 10 to 40 us to read and parse, and there is one reading per tick.
 */
import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import os from 'node:os'
import type { FileSystemStats } from './disk-space.ts'

/** All but the facts of `os` may throw what node:fs throws. */
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

/** What `read` gives, or `absent` where this kernel does not have the file or does not show it to us. */
export function unlessAbsent<T>(read: () => T, absent: T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && ABSENT.has(error.code)) return absent
    throw error
  }
}

const ABSENT: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENOSYS'])
