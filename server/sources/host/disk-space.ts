/**
 * /proc/self/mounts and statfs: how full a mounted file system is. Only mount points can be asked for, so that a
 * consumer cannot probe paths, and not those of network or user-space file systems: statfs waits for their server,
 * and with it the whole process. "/" is always readable; if it hangs, so does everything else.
 */
import { scaled } from './numbers.ts'

/** What statfs gives; `bavail` is what is left for ordinary users. */
export interface FileSystemStats {
  readonly bsize: bigint
  readonly blocks: bigint
  readonly bfree: bigint
  readonly bavail: bigint
}

/** Bytes. */
export type DiskSpace = Readonly<Record<'total' | 'free' | 'used', bigint | undefined>>

const REMOTE_TYPE = /^(nfs|cifs|smb|ncpfs|9p|ceph|afs|coda|lustre|beegfs|autofs|fuse)/

/** Mount points and the type of what is mounted there; the last line of a mount point is the one that is seen. */
export function parseMounts(text: string): ReadonlyMap<string, string> {
  const types = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, point, type] = line.split(' ')
    if (point?.startsWith('/') && type) types.set(unescaped(point), type)
  }
  return types
}

export function isRemote(type: string): boolean {
  return REMOTE_TYPE.test(type)
}

/** As `df`: what is reserved for root counts as neither free nor used. */
export function spaceOf(stats: FileSystemStats): DiskSpace {
  return {
    total: scaled(stats.blocks, stats.bsize),
    free: scaled(stats.bavail, stats.bsize),
    used: stats.bfree <= stats.blocks ? scaled(stats.blocks - stats.bfree, stats.bsize) : undefined,
  }
}

/** A space in a mount point is written `\040`. */
function unescaped(path: string): string {
  return path.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}
