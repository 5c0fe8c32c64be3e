/** A host made of texts: files by their path, everything else fixed. A file that is not given does not exist. */

import type { FileSystemStats } from '../../../../server/wings/host/proc.ts'
import type { HostAccess } from '../../../../server/wings/host/snapshot.ts'

export interface FakeHost extends HostAccess {
  readonly files: Map<string, string>
  readonly processes: string[]
  readonly spaces: Map<string, FileSystemStats>
  /** Every file that was read, in order. */
  readonly reads: string[]
}

export function fakeHost(platform: NodeJS.Platform = 'linux'): FakeHost {
  const files = new Map<string, string>()
  const processes: string[] = []
  const spaces = new Map<string, FileSystemStats>()
  const reads: string[] = []
  return {
    platform,
    files,
    processes,
    spaces,
    reads,
    readFile: (path) => {
      reads.push(path)
      return files.get(path) ?? absent(path)
    },
    readDirectory: (path) => (path === '/proc' ? processes : absent(path)),
    statfs: (path) => {
      reads.push(path)
      return spaces.get(path) ?? absent(path)
    },
    os: {
      cpus: () => [cpu(10, 5, 25, 60), cpu(30, 5, 5, 60)],
      freemem: () => 2048,
      hostname: () => 'n1',
      loadavg: () => [1, 2, 3],
      machine: () => 'x86_64',
      release: () => '24.0.1',
      totalmem: () => 4096,
      type: () => 'Darwin',
      uptime: () => 77.5,
    },
  }
}

/** A /proc/stat with one CPU; its times in ticks. */
export function statOf(user: number, idle: number): string {
  return `cpu  ${user} 0 0 ${idle} 0 0 0 0\ncpu0 ${user} 0 0 ${idle} 0 0 0 0\n`
}

function cpu(user: number, nice: number, sys: number, idle: number) {
  return { model: '', speed: 0, times: { user, nice, sys, idle, irq: 1000 } }
}

function absent(path: string): never {
  throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
}
