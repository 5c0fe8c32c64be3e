/**
 * /proc/meminfo: `MemTotal:       24684096 kB`, where kB means 1,024 bytes. MemAvailable exists since Linux 3.14.
 * Kernels up to 2.4 open with a table in bytes (`Mem:  131 ...`); the lines with kB stand below it there too.
 */
import { scaled, uint64 } from './numbers.ts'

type MemoryField = 'total' | 'free' | 'available' | 'cached' | 'buffers' | 'swap_total' | 'swap_free' | 'swap_used'

/** Bytes. */
export type Memory = Readonly<Record<MemoryField, bigint | undefined>>

const LINE = /^(\w+):\s+(\d+) kB\s*$/

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
