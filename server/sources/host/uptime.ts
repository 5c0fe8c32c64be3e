/** /proc/uptime: `698.27 1272.65`; the second number is idle time summed over all CPUs, not a time of the host. */
import { decimal, words } from './numbers.ts'

/** Seconds. */
export function parseUptime(text: string): number | undefined {
  return decimal(words(text)[0])
}
