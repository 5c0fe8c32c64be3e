/** Waiting for what another process, a socket or a disk does. */
import { vi } from 'vitest'

/**
 * Waits until `check` throws nothing, and fails with what it threw last. The limit ends what would never come, before the
 * limit of the test, which could not say why; it is no measure of speed.
 */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 45_000, interval: 10 })
}
